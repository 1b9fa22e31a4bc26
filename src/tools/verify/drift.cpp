// SPDX-License-Identifier: Apache-2.0
// `toto drift`: today's forecasts against a record, for a job that runs every day.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/verify/groups.h"

namespace toto {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

std::string_view status_word(ExitStatus status) {
  if (status == ExitStatus::ok) return "same";
  return status == ExitStatus::attention ? "drifted" : "not compared";
}

/// Of the checks of a drift: that of the model is no drift where it fails.
bool is_model(const Check& check) { return check.name == "against: model"; }

}  // namespace

VerifyReport verify_drift(const VerifyOptions& asked) {
  VerifyOptions options = asked;
  options.load = complete(asked.load);
  const verify::Harness harness(options);
  verify::SuiteState state(options, harness);
  const std::vector<verify::Item> items = {
      {"history", "against",
       [v = state.in_force()](verify::SuiteState& x) { return compare_history(x, v); }}};
  return run_items(state, items);
}

ExitStatus drift_status(const VerifyReport& report) {
  const auto any = [&](const auto& test) {
    return std::any_of(report.checks.begin(), report.checks.end(), test);
  };
  if (report.checks.empty() || any([](const Check& c) {
        return c.verdict == Verdict::could_not_run || (is_model(c) && !c.holds());
      })) {
    return ExitStatus::verification_failed;
  }
  return any([](const Check& c) { return !c.holds(); }) ? ExitStatus::attention : ExitStatus::ok;
}

std::string drift_json(const VerifyReport& report) {
  double largest = 0;
  ordered_json checks = ordered_json::array();
  for (const Check& c : report.checks) {
    if (!is_model(c) && std::isfinite(c.value)) largest = std::max(largest, c.value);
    checks.push_back({{"name", c.name},
                      {"measure", c.measure},
                      {"value", number(c.value)},
                      {"bound", c.bound},
                      {"verdict", word(c.verdict)},
                      {"why", c.why}});
  }
  const ordered_json all = {
      {"format", "toto-drift 1"},  {"status", status_word(drift_status(report))},
      {"model", report.model},     {"model_hash", report.model_hash},
      {"program", report.program}, {"data", report.data},
      {"started", report.started}, {"seconds", report.seconds},
      {"largest", largest},        {"checks", checks}};
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace toto
