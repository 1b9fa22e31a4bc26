// SPDX-License-Identifier: Apache-2.0
// Named time zones: what the clock on the wall shows, with summer time. The rules are those of the
// machine's tz database.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace toto::data {

class Zone {
 public:
  /// `name` as in the tz database: Europe/Berlin. Throws Error unknown_timezone (2).
  explicit Zone(const std::string& name);

  /// Minutes east of UTC at a time, ms since 1970 UTC.
  [[nodiscard]] int offset_at(std::int64_t time) const;

  struct Instants {
    std::int64_t first;  ///< ms since 1970 UTC
    std::int64_t last;   ///< later than `first` where the clock shows the time twice
  };
  /// When the clock on the wall shows `local`. Where it is put forward over that time, the instant
  /// at which it would have shown it.
  [[nodiscard]] Instants instants_of(std::int64_t local) const;

 private:
  struct Rules;
  std::shared_ptr<Rules> rules_;
};

}  // namespace toto::data
