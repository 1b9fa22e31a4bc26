// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace toto::verify {

const std::vector<std::string> kGroupColumns = {
    "group", "checks", "hold", "warn", "fail", "could not run", "closest to its bound"};
const std::vector<std::string> kAttentionColumns = {"verdict", "check", "measured", "bound", "why"};
const std::vector<std::string> kCheckColumns = {"check",  "what was measured", "measured", "bound",
                                                "margin", "verdict",           "why"};

std::string report_title(const VerifyReport& report) {
  return fmt::format("Verification of {}: suite {}", report.model, word(report.suite));
}

std::string summary(const VerifyReport& report) {
  const auto count = [&](Verdict v) {
    return std::count_if(report.checks.begin(), report.checks.end(),
                         [v](const Check& c) { return c.verdict == v; });
  };
  const char* verdict = report.holds()   ? "Every check ran and held"
                        : report.partial ? "Not a verdict: only some checks were asked for"
                                         : "Do not deploy";
  return fmt::format("{}: {} checks, {} hold, {} warn, {} fail, {} could not run; {:.0f} s.",
                     verdict, report.checks.size(), count(Verdict::holds), count(Verdict::warning),
                     count(Verdict::fails), count(Verdict::could_not_run), report.seconds);
}

std::vector<std::string> groups(const VerifyReport& report) {
  std::vector<std::string> names;
  for (const Check& c : report.checks) {
    if (std::find(names.begin(), names.end(), c.group) == names.end()) names.push_back(c.group);
  }
  return names;
}

std::string heading(const std::string& group) {
  std::string text = group;
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

Rows head_rows(const VerifyReport& r) {
  Rows rows = {{"model", r.model},
               {"content hash", r.model_hash},
               {"data", r.data},
               {"program", r.program},
               {"started", r.started}};
  if (r.synthetic) {
    rows.push_back({"weights", "SYNTHETIC: their forecasts mean nothing, their arithmetic does"});
  }
  return rows;
}

Rows group_rows(const VerifyReport& report) {
  Rows rows;
  for (const std::string& group : groups(report)) {
    std::size_t all = 0, counts[4] = {};
    const Check* closest = nullptr;
    for (const Check& c : report.checks) {
      if (c.group != group) continue;
      ++all;
      ++counts[static_cast<std::size_t>(c.verdict)];
      if (!(c.bound > 0) || !std::isfinite(c.value)) continue;
      if (closest == nullptr || c.margin() / c.bound < closest->margin() / closest->bound) {
        closest = &c;
      }
    }
    rows.push_back(
        {heading(group), fmt::format("{}", all), fmt::format("{}", counts[0]),
         fmt::format("{}", counts[1]), fmt::format("{}", counts[2]), fmt::format("{}", counts[3]),
         closest == nullptr ? std::string("all are exact")
                            : fmt::format("{} ({} left)", closest->name, margin_text(*closest))});
  }
  return rows;
}

Rows attention_rows(const VerifyReport& report) {
  Rows rows;
  for (const Verdict verdict : {Verdict::could_not_run, Verdict::fails, Verdict::warning}) {
    for (const Check& c : report.checks) {
      if (c.verdict != verdict) continue;
      std::string title = c.group;
      title += ": ";
      title += c.name;
      rows.push_back({std::string(word(verdict)), title, amount(c.value, c.unit),
                      amount(c.bound, c.unit), c.why});
    }
  }
  return rows;
}

Rows check_rows(const VerifyReport& report, const std::string& group) {
  Rows rows;
  for (const Check& c : report.checks) {
    if (c.group != group) continue;
    rows.push_back({c.name, c.measure, amount(c.value, c.unit), amount(c.bound, c.unit),
                    margin_text(c), std::string(word(c.verdict)), c.why});
  }
  return rows;
}

Rows environment_rows(const VerifyReport& report) {
  Rows rows;
  for (const auto& [name, value] : report.environment) rows.push_back({name, value});
  return rows;
}

Rows reproduce_rows(const VerifyReport& report) {
  Rows rows;  // one for each command, which stands for all lines that it measures
  for (const Check& c : report.checks) {
    const auto same = [&](const std::vector<std::string>& row) { return row[1] == c.reproduce; };
    if (std::any_of(rows.begin(), rows.end(), same)) continue;
    const std::string::size_type colon = c.name.find(": ");
    std::string title = heading(c.group);
    if (colon != std::string::npos) {
      title += ": ";
      title += c.name.substr(0, colon);
    }
    rows.push_back({title, c.reproduce});
  }
  return rows;
}

std::string amount(double value, const std::string& unit) {
  if (!std::isfinite(value)) return "none";
  std::string text = fmt::format("{:.3g}", value);
  if (!unit.empty()) {
    text += ' ';
    text += unit;
  }
  return text;
}

std::string margin_text(const Check& check) {
  if (!std::isfinite(check.value) || !std::isfinite(check.bound)) return "none";
  if (check.bound == 0) return check.value == 0 ? "exact" : "exceeded";
  return fmt::format("{:.0f} %", 100 * check.margin() / check.bound);
}

}  // namespace toto::verify
