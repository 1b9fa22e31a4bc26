// SPDX-License-Identifier: Apache-2.0
// Any bytes as a plan entry, as they are and as a body under a correct checksum: a miss, or an
// entry that is written as the same bytes again and can be merged and named.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/plan_entry.h"
#include "engine/plan_files.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool check(std::string_view file) {
  const auto found = toto::decode(file);
  if (!found) return false;
  require(toto::encode(*found) == file);
  require(toto::is_plan_file_name(toto::plan_file_name(found->key)));
  const toto::PlanEntry once = toto::merge({}, found->entry);
  require(toto::merge(once, found->entry) == once);
  require(once.choices.size() <= found->entry.choices.size());
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  check(text);
  check(toto::seal_plan(text));
  return 0;
}
