// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/atomic_file.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/trusted_folder.h"
#include "engine/plan_files.h"

namespace toto {
namespace {

// A write takes milliseconds; a temporary file this old belongs to nobody.
constexpr std::int64_t kStaleSeconds = 600;

/// Makes the folder and those above it, for this user only. The errno of a failure, or 0.
int make_folders(const std::string& folder) {
  for (std::size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    if (::mkdir(folder.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) return errno;
    if (slash == std::string::npos) return 0;
  }
}

}  // namespace

std::string plan_folder_problem(const std::string& folder, bool for_writing) {
  return folder_problem(folder, for_writing);
}

PlanCache::PlanCache(std::string folder, CachePolicy policy, LogSink log)
    : folder_(std::move(folder)),
      policy_(policy),
      log_(std::move(log)),
      usable_(policy != CachePolicy::never && !folder_.empty()) {
  if (!usable_) return;
  const std::string problem = plan_folder_problem(folder_, policy_ == CachePolicy::prefer);
  if (!problem.empty()) give_up(problem);
}

void PlanCache::give_up(std::string_view reason) {
  if (!usable_.exchange(false)) return;
  log_warning(log_, Topic::cache, "plan_cache_unusable",
              fmt::format("running without the plan cache {}: {}", folder_, reason));
}

std::optional<PlanEntry> PlanCache::find(const PlanCacheKey& key) const {
  if (!usable_) return std::nullopt;
  std::optional<KeyedPlanEntry> found = decode(read_plan_file(folder_ + "/" + plan_file_name(key)));
  if (!found || found->key != key) return std::nullopt;
  return std::move(found->entry);
}

std::optional<PlanEntry> PlanCache::load(const PlanCacheKey& key) const {
  std::optional<PlanEntry> entry = find(key);
  if (!entry && policy_ == CachePolicy::only) {
    throw Error(ExitStatus::bad_config, "plan_cache_miss",
                fmt::format("no plans for this model ({}, {} on {}, toto {})", key.type, key.isa,
                            key.device, key.program),
                folder_, "run once with --plan-cache prefer on such a machine");
  }
  return entry;
}

bool PlanCache::store(const PlanCacheKey& key, const PlanEntry& entry) {
  if (policy_ != CachePolicy::prefer || !usable_) return false;
  if (const int error = make_folders(folder_); error != 0) {
    give_up(std::strerror(error));
    return false;
  }
  // Again, because the folder may not have been there before.
  if (const std::string problem = plan_folder_problem(folder_, true); !problem.empty()) {
    give_up(problem);
    return false;
  }
  remove_stale_plan_files(folder_, std::time(nullptr) - kStaleSeconds);
  KeyedPlanEntry all = {key, entry};
  if (const auto known = find(key)) all.entry = merge(entry, *known);
  try {
    AtomicFile file(folder_ + "/" + plan_file_name(key), kPlanTemporaryTag);
    file.write(encode(all));
    file.commit();
  } catch (const Error& error) {
    if (error.status() != ExitStatus::io) throw;
    log_warning(log_, Topic::cache, "plan_cache_not_written",
                fmt::format("the plan cache was not written: {}", error.what()));
    return false;
  }
  return true;
}

}  // namespace toto
