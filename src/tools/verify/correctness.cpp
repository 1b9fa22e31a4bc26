// SPDX-License-Identifier: Apache-2.0
// Every way of running against `eager` and against float64, before anything is drawn.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/verify/groups.h"
#include "toto/settings.hpp"

namespace toto::verify {
namespace {

// docs/production.md, "How close modes are".
constexpr double kMean = 1e-6;
constexpr double kLargest = 1e-5;
constexpr double kNoFarther = 1.25;
// Two programs, each within half of a bound of the truth, are within the bound of each other.
constexpr double kShareOfBound = 0.5;
// One that is 1.25 times as far from the truth as the other is at most 2.25 times that far from it.
constexpr double kBetween = 1 + kNoFarther;
constexpr double kExactMean = 5e-6, kExactLargest = 5e-4;

constexpr const char* kUnit = "of scale";
constexpr const char* kWithoutFloat64 =
    "held against eager alone: float64 is left to the suite full";

std::string at_patch(const Distance& d, const Record& record) {
  if (record.patches.size() < 2) return {};
  return fmt::format(", largest at patch {} of {}", d.patch + 1, record.patches.size());
}

/// The largest of several.
void widen(Distance& all, const Distance& one) {
  all.mean = std::max(all.mean, one.mean);
  all.largest = std::max(all.largest, one.largest);
}

/// How far `eager` is from float64 in all cases that float64 ran; infinite where one is.
Distance conditioning(SuiteState& state) {
  Distance all;
  for (std::size_t i = 0; i < state.cases().size(); ++i) {
    if (state.cases()[i].with_float64) {
      widen(all, distance(state.eager_records()[i], state.exact_records()[i]));
    }
  }
  return all;
}

bool too_far(const Distance& eager) {
  return eager.mean > kShareOfBound * kMean || eager.largest > kShareOfBound * kLargest;
}

Check absolute(const Case& one, const Distance& d, const std::string& why) {
  const bool mean_decides = d.mean / kMean > d.largest / kLargest;
  Check c = measured(one.name,
                     fmt::format("{} difference to eager: parameters and fed-back values",
                                 mean_decides ? "mean" : "largest"),
                     mean_decides ? d.mean : d.largest, mean_decides ? kMean : kLargest, kUnit,
                     "absolute criterion" + why);
  if (!(d.mean < kMean && d.largest < kLargest)) c.verdict = Verdict::fails;
  return c;
}

Check judge_float32(const Case& one, const Record& found, const Record& eager,
                    const Record& exact) {
  const Distance d = distance(found, eager);
  const Distance mine = distance(found, exact);
  const Distance its = distance(eager, exact);
  const std::string figures = fmt::format(
      "; to eager: mean {:.2g}, largest {:.2g}{}; to float64: mean {:.2g}, largest {:.2g} (eager: "
      "{:.2g}, {:.2g})",
      d.mean, d.largest, at_patch(d, eager), mine.mean, mine.largest, its.mean, its.largest);
  if (d.mean < kMean && d.largest < kLargest) return absolute(one, d, figures);
  if (!too_far(its)) {
    return absolute(one, d, ", since eager is close to float64 here" + figures);
  }
  return measured(one.name, "mean distance to float64 / that of eager", ratio(mine.mean, its.mean),
                  kNoFarther, "x",
                  "relative criterion, since the checkpoint is too badly conditioned for float32 "
                  "(eager itself is too far from float64)" +
                      figures);
}

/// `its`: how far eager is from float64 at most, in the cases that float64 ran.
Check judge_without_float64(const Case& one, const Record& found, const Record& eager,
                            const Distance& its) {
  const Distance d = distance(found, eager);
  const std::string figures = fmt::format(
      "; to eager: mean {:.2g}, largest {:.2g}{}; {} (eager in the other cases: mean "
      "{:.2g}, largest {:.2g} at most)",
      d.mean, d.largest, at_patch(d, eager), kWithoutFloat64, its.mean, its.largest);
  if ((d.mean < kMean && d.largest < kLargest) || !too_far(its)) return absolute(one, d, figures);
  return measured(one.name, "difference to eager / farthest that eager is from float64 elsewhere",
                  std::max(ratio(d.mean, its.mean), ratio(d.largest, its.largest)), kBetween, "x",
                  "relative criterion, since the checkpoint is too badly conditioned for float32 "
                  "(eager itself is too far from float64): within 1 + 1.25 of that" +
                      figures);
}

Check judge_narrow(const Case& one, Precision type, const Record& found, const Record& eager,
                   const Record& exact) {
  const NarrowBounds bounds = narrow_bounds(type);
  const Distance d = distance(found, eager);
  std::string to_exact = kWithoutFloat64;
  if (one.with_float64) {
    const Distance mine = distance(found, exact);
    to_exact = fmt::format("to float64: mean {:.2g}, largest {:.2g}", mine.mean, mine.largest);
  }
  const bool mean_decides = d.mean / bounds.mean > d.largest / bounds.largest;
  return measured(one.name,
                  fmt::format("{} difference to eager float32: parameters and fed-back values",
                              mean_decides ? "mean" : "largest"),
                  mean_decides ? d.mean : d.largest, mean_decides ? bounds.mean : bounds.largest,
                  kUnit,
                  fmt::format("documented bounds of {}; mean {:.2g}, largest {:.2g}{}; {}",
                              word(type), d.mean, d.largest, at_patch(d, eager), to_exact));
}

void list_cases(SuiteState& state) {
  VerifyTable& t = state.tables["3 cases"];
  t.title = "What was compared";
  t.note =
      "The requests behind the group Correctness. Every mode is held against eager on all of them.";
  t.columns = {"case", "series", "longest context", "steps forecast", "held against"};
  for (const Case& one : state.cases()) {
    std::size_t longest = 0;
    for (const OwnedSeries& s : one.series) {
      longest = std::max(longest, s.values.size() / s.variates);
    }
    t.rows.push_back({one.name, fmt::format("{}", one.series.size()), fmt::format("{}", longest),
                      fmt::format("{}", one.horizon),
                      one.with_float64 ? "eager and float64" : "eager; float64 in the suite full"});
  }
}

}  // namespace

std::vector<Check> eager_is_exact(SuiteState& state) {
  std::vector<Check> checks;
  const std::vector<Case>& cases = state.cases();
  list_cases(state);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].with_float64) continue;
    const Distance d = distance(state.eager_records()[i], state.exact_records()[i]);
    const bool mean_decides = d.mean / kExactMean >= d.largest / kExactLargest;
    checks.push_back(measured(
        cases[i].name, fmt::format("{} difference to float64", mean_decides ? "mean" : "largest"),
        mean_decides ? d.mean : d.largest, mean_decides ? kExactMean : kExactLargest, kUnit,
        fmt::format("mean {:.2g}, bound {:.0e}; largest {:.2g}{}, bound {:.0e}", d.mean, kExactMean,
                    d.largest, at_patch(d, state.exact_records()[i]), kExactLargest)));
    // Infinite distances are alike in whatever they are divided by.
    if (!std::isfinite(d.mean + d.largest)) checks.back().verdict = Verdict::fails;
  }
  return checks;
}

std::vector<Check> mode_is_eager(SuiteState& state, const Variant& variant) {
  std::vector<Check> checks;
  const std::vector<Case>& cases = state.cases();
  const Model& model = state.model(variant);
  const bool wide = !is_narrow(variant.precision, state.options.load.backend);
  const Distance conditioned = conditioning(state);
  Distance mine, its;  // the largest distances to float64 of all cases
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Record found = run_case(model, cases[i], state.options.forecaster);
    const Record& eager = state.eager_records()[i];
    const Record& exact = state.exact_records()[i];
    checks.push_back(!wide ? judge_narrow(cases[i], variant.precision, found, eager, exact)
                     : cases[i].with_float64
                         ? judge_float32(cases[i], found, eager, exact)
                         : judge_without_float64(cases[i], found, eager, conditioned));
    if (!cases[i].with_float64) continue;
    widen(mine, distance(found, exact));
    widen(its, distance(eager, exact));
  }
  if (wide) {
    checks.push_back(measured("all cases", "largest distance to float64 / that of eager",
                              ratio(mine.largest, its.largest), kNoFarther, "x",
                              fmt::format("over all cases, since one largest figure is chance; "
                                          "{:.2g} and {:.2g}",
                                          mine.largest, its.largest)));
  }
  return checks;
}

}  // namespace toto::verify
