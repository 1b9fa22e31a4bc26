// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "core/input_file.h"
#include "core/sha256.h"

namespace toto {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "plan-";
constexpr std::string_view kSuffix = ".bin";
constexpr std::size_t kDigits = 32;
constexpr std::string_view kTemporaryPrefix = ".toto-plan-";
static_assert(kTemporaryPrefix.substr(1, kPlanTemporaryTag.size()) == kPlanTemporaryTag);

bool is_digits_between(std::string_view name, std::string_view prefix, std::size_t digits,
                       std::string_view suffix) {
  return name.size() == prefix.size() + digits + suffix.size() && name.starts_with(prefix) &&
         name.ends_with(suffix) &&
         name.substr(prefix.size(), digits).find_first_not_of("0123456789abcdef") == name.npos;
}

/// Calls visit(name, status) for each regular file of ours; links are not followed. A folder that
/// is not there has none.
template <typename Visit>
std::error_code for_each_file(const std::string& folder, const Visit& visit) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!is_plan_file_name(name) && !is_plan_temporary_name(name)) continue;
    struct stat status = {};
    if (::lstat(at->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    visit(name, status);
  }
  if (error == std::errc::no_such_file_or_directory) error.clear();
  return error;
}

void throw_unreadable(const std::error_code& error, const std::string& folder) {
  if (error) throw Error(ExitStatus::io, "read_failed", "cannot read: " + error.message(), folder);
}

PlanFileState state_of(const std::string& name, const std::optional<KeyedPlanEntry>& content) {
  if (is_plan_temporary_name(name)) return PlanFileState::unfinished;
  if (!content || plan_file_name(content->key) != name) return PlanFileState::damaged;
  return content->key.program == plan_program_version() ? PlanFileState::valid
                                                        : PlanFileState::other_version;
}

}  // namespace

std::string plan_file_name(const PlanCacheKey& key) {
  Sha256 hash;
  for (const std::string* text : {&key.program, &key.model, &key.isa, &key.type, &key.device}) {
    hash.update(*text);
    hash.update(std::string_view("\0", 1));
  }
  hash.update(std::to_string(kPlanFormat));
  return fmt::format("{}{}{}", kPrefix, hash.hex().substr(0, kDigits), kSuffix);
}

bool is_plan_file_name(std::string_view name) {
  return is_digits_between(name, kPrefix, kDigits, kSuffix);
}

bool is_plan_temporary_name(std::string_view name) {
  return is_digits_between(name, kTemporaryPrefix, 16, ".tmp");
}

std::string read_plan_file(const std::string& path) {
  try {
    const InputFile file(path);
    if (file.size() > kMaxPlanEntryBytes) return {};
    std::string bytes(file.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  } catch (const Error&) {
    return {};
  }
}

std::string_view word(PlanFileState state) {
  switch (state) {
    case PlanFileState::valid:
      return "valid";
    case PlanFileState::other_version:
      return "other version";
    case PlanFileState::damaged:
      return "damaged";
    case PlanFileState::unfinished:
      return "unfinished";
  }
  return {};
}

std::vector<PlanFile> list_plan_files(const std::string& folder) {
  std::vector<PlanFile> files;
  throw_unreadable(for_each_file(folder,
                                 [&](const std::string& name, const struct stat& status) {
                                   PlanFile file;
                                   file.name = name;
                                   file.bytes = static_cast<std::uint64_t>(status.st_size);
                                   file.modified = status.st_mtime;
                                   file.content = decode(read_plan_file(folder + "/" + name));
                                   file.state = state_of(name, file.content);
                                   files.push_back(std::move(file));
                                 }),
                   folder);
  std::sort(files.begin(), files.end(),
            [](const PlanFile& a, const PlanFile& b) { return a.name < b.name; });
  return files;
}

PlanFilesRemoved clear_plan_files(const std::string& folder) {
  PlanFilesRemoved removed;
  throw_unreadable(
      for_each_file(folder,
                    [&](const std::string& name, const struct stat& status) {
                      const std::string path = folder + "/" + name;
                      if (::unlink(path.c_str()) == 0) {
                        ++removed.files;
                        removed.bytes += static_cast<std::uint64_t>(status.st_size);
                      } else if (errno != ENOENT) {  // another process may have been faster
                        throw Error(ExitStatus::io, "write_failed",
                                    std::string("cannot remove: ") + std::strerror(errno), path);
                      }
                    }),
      folder);
  return removed;
}

void remove_stale_plan_files(const std::string& folder, std::int64_t before) noexcept {
  try {
    std::ignore = for_each_file(folder, [&](const std::string& name, const struct stat& status) {
      if (is_plan_temporary_name(name) && status.st_mtime < before) {
        ::unlink((folder + "/" + name).c_str());
      }
    });
  } catch (const std::exception&) {
    return;  // out of memory: the files can stay
  }
}

}  // namespace toto
