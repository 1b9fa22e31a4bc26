// SPDX-License-Identifier: Apache-2.0
// toto cache list: what the plan cache holds. toto cache clear: removes it.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/json_text.h"
#include "engine/plan_cache.h"
#include "engine/plan_files.h"
#include "settings/resolver.h"
#include "toto/settings.hpp"

namespace toto::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kShortHash = 12;

struct CacheOptions {
  SettingsFlags flags;
  bool json = false;
};

std::string folder_of(const CacheOptions& options) {
  // Only what the folder needs: nonsense in other variables does no harm here.
  const Variables variables = process_variables();
  const Resolver from(options.flags, variables);
  Settings settings;
  settings.plan_cache_dir = from.plan_cache_dir();
  settings.plan_cache = from.plan_cache();
  settings.log = from.log();
  if (settings.plan_cache_dir.value.empty()) {
    throw Error(ExitStatus::bad_config, "invalid_setting", "there is no folder for the plan cache",
                "HOME is not set", "set TOTO_PLAN_CACHE_DIR");
  }
  // Says what is wrong with the folder, as a forecast would.
  const PlanCache cache(settings.plan_cache_dir.value, settings.plan_cache.value,
                        log_sink(settings));
  return settings.plan_cache_dir.value;
}

std::string age(std::int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s", std::max<std::int64_t>(seconds, 0));
  if (seconds < 120 * 60) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} days", seconds / 86400);
}

std::string size(std::uint64_t bytes) {
  return bytes < 10'000 ? fmt::format("{} B", bytes) : fmt::format("{} kB", bytes / 1000);
}

ordered_json to_json(const PlanFile& file, std::int64_t now) {
  ordered_json json = {{"file", file.name},
                       {"state", word(file.state)},
                       {"bytes", file.bytes},
                       {"age_seconds", std::max<std::int64_t>(now - file.modified, 0)}};
  if (!file.content) return json;
  const auto& [key, entry] = *file.content;
  json["program"] = key.program;
  json["model"] = key.model;
  json["type"] = key.type;
  json["isa"] = key.isa;
  json["device"] = key.device;
  json["kernels"] = entry.choices.size();
  json["shapes"] = ordered_json::array();
  for (const PlanShape& shape : entry.shapes) {
    json["shapes"].push_back({{"batch", shape.batch},
                              {"variates", shape.variates},
                              {"context", shape.context},
                              {"horizon", shape.horizon},
                              {"samples", shape.samples}});
  }
  return json;
}

std::string to_line(const PlanFile& file, std::int64_t now) {
  constexpr std::string_view layout =
      "{:12}  {:8}  {:11}  {:6}  {:8}  {:>8}  {:>8}  {:>7}  {:>6}  {}\n";
  const std::string when = age(now - file.modified);
  if (!file.content) {
    return fmt::format(layout, "-", "-", "-", "-", "-", when, size(file.bytes), "-", "-",
                       word(file.state));
  }
  const auto& [key, entry] = *file.content;
  return fmt::format(layout, key.model.substr(0, kShortHash), key.type, key.isa, key.device,
                     key.program, when, size(file.bytes), entry.choices.size(), entry.shapes.size(),
                     word(file.state));
}

ExitStatus run_list(const CacheOptions& options) {
  const std::string folder = folder_of(options);
  const std::vector<PlanFile> files = list_plan_files(folder);
  const std::int64_t now = std::time(nullptr);
  std::uint64_t bytes = 0;
  ordered_json entries = ordered_json::array();
  std::string lines =
      fmt::format("{:12}  {:8}  {:11}  {:6}  {:8}  {:>8}  {:>8}  {:>7}  {:>6}  {}\n", "model",
                  "type", "isa", "device", "version", "age", "size", "kernels", "shapes", "state");
  for (const PlanFile& file : files) {
    bytes += file.bytes;
    entries.push_back(to_json(file, now));
    lines += to_line(file, now);
  }
  if (options.json) {
    print(json_text({{"folder", folder}, {"bytes", bytes}, {"files", entries}}));
  } else if (files.empty()) {
    print(fmt::format("no plans in {}\n", folder));
  } else {
    print(fmt::format("{}{} files, {} in {}\n", lines, files.size(), size(bytes), folder));
  }
  return ExitStatus::ok;
}

ExitStatus run_clear(const CacheOptions& options) {
  const std::string folder = folder_of(options);
  const PlanFilesRemoved removed = clear_plan_files(folder);
  print(options.json
            ? json_text({{"folder", folder}, {"files", removed.files}, {"bytes", removed.bytes}})
            : fmt::format("removed {} files, {} from {}\n", removed.files, size(removed.bytes),
                          folder));
  return ExitStatus::ok;
}

void add_one(const Command& cache, Session& session, const std::string& name,
             const std::string& description, ExitStatus (*run)(const CacheOptions&)) {
  const auto options = std::make_shared<CacheOptions>();
  const Command command = add_command(
      cache, session, name, description,
      fmt::format("  toto cache {}\n  toto cache {} --plan-cache-dir plans --json\n", name, name));
  command
      .add_option("--plan-cache-dir", options->flags.plan_cache_dir,
                  "The folder (default: TOTO_PLAN_CACHE_DIR, then toto/plans in the user's cache "
                  "folder)")
      .type_name("DIR");
  command.add_flag("--json", options->json, "Print JSON");
  command.callback(
      [options, run, &session] { session.run = [options, run] { return run(*options); }; });
}

}  // namespace

void add_cache(const Command& app, Session& session) {
  const Command cache = app.add_subcommand("cache", "Looks at the plan cache, and empties it.");
  cache.require_one_subcommand();
  add_one(cache, session, "list",
          "Lists the plans kept on disk: for which model, type, instruction "
          "set, device and "
          "version, how old and large, and whether this version uses them.",
          run_list);
  add_one(cache, session, "clear",
          "Removes the plan cache's own files, and nothing else in the folder.", run_clear);
}

}  // namespace toto::cli
