// SPDX-License-Identifier: Apache-2.0
// Where and how this was run, and what about it should make one stop: names that nothing reads,
// plans of another version, the rollback in force.
#include <fmt/format.h>

#include <algorithm>

#include "core/cpu_info.h"
#include "engine/plan_files.h"
#include "models/checkpoint/checkpoint.h"
#include "tools/verify/groups.h"

namespace toto::verify {
namespace {

Check unknown_names(const VerifyOptions& options) {
  return measured("names", "TOTO_* variables that nothing reads",
                  static_cast<double>(options.unknown_variables.size()), 0, "names",
                  options.unknown_variables.empty()
                      ? "a setting that nothing reads is how people fool themselves"
                      : fmt::format("{}", fmt::join(options.unknown_variables, ", ")));
}

/// Entries of the plan cache that are not what this version would write.
Check stale_plans(const VerifyOptions& options) {
  std::size_t stale = 0, valid = 0;
  std::string names;
  if (options.forecaster.plan_cache != CachePolicy::never &&
      !options.forecaster.plan_cache_dir.empty()) {
    for (const PlanFile& file : list_plan_files(options.forecaster.plan_cache_dir)) {
      if (file.state == PlanFileState::valid) {
        ++valid;
        continue;
      }
      ++stale;
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", file.name, word(file.state));
    }
  }
  return measured("plan cache", "entries that are damaged, unfinished or of another version",
                  static_cast<double>(stale), 0, "files",
                  stale == 0 ? fmt::format("{} valid entries", valid)
                             : names + "; toto cache clear removes them");
}

Check mode_in_force(const SuiteState& state) {
  Check c =
      measured("mode in force", "whether the rollback is on", state.mode() == Mode::eager ? 1 : 0,
               1, {}, fmt::format("{} is what would be deployed", state.in_force().label()));
  if (state.mode() == Mode::eager) {
    c.verdict = Verdict::warning;
    c.why += ": the reference's order of operations, and slow";
  }
  return c;
}

Check threads(const SuiteState& state) {
  const int cores = available_cores();
  Check c = measured(
      "threads", "threads for each core", static_cast<double>(state.options.load.threads) / cores,
      1, {},
      fmt::format("{} threads, {} cores (0: one for each)", state.options.load.threads, cores));
  if (c.verdict == Verdict::fails) {
    c.verdict = Verdict::warning;  // slow, but no wrong number
    c.why += ": more threads than cores wait for each other";
  }
  return c;
}

}  // namespace

std::vector<Check> environment(SuiteState& state) {
  return {unknown_names(state.options), stale_plans(state.options), mode_in_force(state),
          threads(state)};
}

void describe_environment(SuiteState& state, VerifyReport& report) {
  const VerifyOptions& o = state.options;
  const Checkpoint checkpoint = open_checkpoint(o.query);
  report.program = fmt::format("toto {}", plan_program_version());
  report.model = checkpoint.info.name;
  report.model_hash = checkpoint.weights.source().content_hash();
  report.synthetic = checkpoint.info.synthetic;
  report.data = "no series were given: series made by a formula";
  if (!o.data.empty()) {
    report.data = fmt::format("{} series of {}", o.data.size(), o.data_name);
    const std::size_t most = state.quick() ? 8 : 64;
    if (o.data.size() > most) report.data += fmt::format(", of which the first {} were used", most);
  }
  auto& lines = report.environment;
  lines.emplace_back("family", checkpoint.info.architecture);
  lines.emplace_back("backend", o.load.backend);
  lines.emplace_back("processor", processor_name());
  lines.emplace_back("cores", fmt::format("{}", available_cores()));
  for (const SettingLine& line : o.settings) {
    // A report is shown around; where a user keeps plans is nobody's business.
    if (line.name == "plan-cache-dir") continue;
    lines.emplace_back(line.name, fmt::format("{} ({})", line.value, describe(line.origin)));
  }
}

}  // namespace toto::verify
