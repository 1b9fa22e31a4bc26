// SPDX-License-Identifier: Apache-2.0
// Members of a request that nothing reads, a misspelt option for example. Clients of other people's
// forms send more than is read here, so there they are warnings of the answer; in our own forms
// they are errors.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "server/json_field.h"
#include "server/json_text.h"

namespace toto::server {

/// At most kMaxWarnings members are told, each name once at its level: of many series that have the
/// same unread member the first one counts.
class Unread {
 public:
  static constexpr std::size_t kMaxWarnings = 16;

  /// What `object` has beside `known` and, where they may stand there, the options of
  /// read_options. `level` is the same for members of the same kind: "inputs". null is absent.
  void look(const JsonField& object, std::string_view level,
            std::initializer_list<std::string_view> known, bool options = false);

  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<std::string> told_;  // level and name
  std::vector<std::string> warnings_;
};

/// Throws Error unknown_option for a member that is not known, as above; null is no exception.
void require_known(const JsonField& object, std::initializer_list<std::string_view> known,
                   bool options = false);

/// "warnings", a list; nothing where there are none.
void write_warnings(JsonText& out, const std::vector<std::string>& warnings);

}  // namespace toto::server
