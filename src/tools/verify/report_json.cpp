// SPDX-License-Identifier: Apache-2.0
// The report for programs. docs/verify.schema.json describes it, and a test holds it to that.
#include <cmath>
#include <nlohmann/json.hpp>

#include "toto/tools/verify.hpp"

namespace toto {
namespace {

using nlohmann::ordered_json;

/// JSON has no infinity and no NaN: null says that there is no number.
ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

ordered_json to_json(const Check& c) {
  return {{"group", c.group},
          {"name", c.name},
          {"measure", c.measure},
          {"value", number(c.value)},
          {"bound", number(c.bound)},
          {"margin", number(c.margin())},
          {"unit", c.unit},
          {"verdict", word(c.verdict)},
          {"why", c.why},
          {"reproduce", c.reproduce}};
}

}  // namespace

std::string verify_json(const VerifyReport& report) {
  ordered_json environment = ordered_json::array();
  for (const auto& [name, value] : report.environment) {
    environment.push_back({{"name", name}, {"value", value}});
  }
  ordered_json checks = ordered_json::array();
  for (const Check& c : report.checks) checks.push_back(to_json(c));
  ordered_json tables = ordered_json::array();
  for (const VerifyTable& t : report.tables) {
    tables.push_back(
        {{"title", t.title}, {"note", t.note}, {"columns", t.columns}, {"rows", t.rows}});
  }
  const ordered_json all = {{"format", 1},
                            {"program", report.program},
                            {"suite", word(report.suite)},
                            {"holds", report.holds()},
                            {"partial", report.partial},
                            {"model", report.model},
                            {"model_hash", report.model_hash},
                            {"synthetic_weights", report.synthetic},
                            {"data", report.data},
                            {"command", report.command},
                            {"started", report.started},
                            {"seconds", report.seconds},
                            {"environment", environment},
                            {"checks", checks},
                            {"tables", tables}};
  // Names of files, folders and series may be any bytes.
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace toto
