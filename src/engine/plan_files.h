// SPDX-License-Identifier: Apache-2.0
// The files of a plan cache: their names, their bytes, listing and removing them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan_entry.h"

namespace toto {

/// Temporary files of entries are told from those of other output by this.
inline constexpr std::string_view kPlanTemporaryTag = "toto-plan";

/// Where the entry lies: "plan-", 32 hexadecimal digits of the key's hash, ".bin".
std::string plan_file_name(const PlanCacheKey& key);
bool is_plan_file_name(std::string_view name);
bool is_plan_temporary_name(std::string_view name);

/// The bytes of a regular file of at most kMaxPlanEntryBytes; empty for anything else.
std::string read_plan_file(const std::string& path);

enum class PlanFileState {
  valid,          // an entry of this program
  other_version,  // a whole entry of another version of the program
  damaged,        // or of another format: never used, replaced by the next write
  unfinished,     // what a writer that was killed left behind
};
std::string_view word(PlanFileState state);

struct PlanFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // seconds since 1970
  PlanFileState state = PlanFileState::damaged;
  std::optional<KeyedPlanEntry> content;  // of whole entries
};

/// The plan cache's own files in the folder, by name; what else lies there is not looked at. Throws
/// Error (74) read_failed for a folder that is there and cannot be read.
std::vector<PlanFile> list_plan_files(const std::string& folder);

struct PlanFilesRemoved {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

/// Removes the plan cache's own files, unfinished ones included. Throws Error (74) write_failed.
PlanFilesRemoved clear_plan_files(const std::string& folder);

/// Removes unfinished files last written to before this time (seconds since 1970). Never throws.
void remove_stale_plan_files(const std::string& folder, std::int64_t before) noexcept;

}  // namespace toto
