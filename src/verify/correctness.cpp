// SPDX-License-Identifier: Apache-2.0
// Every way of running against `eager` and against float64, before anything is drawn.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/groups.h"

namespace toto::verify {
namespace {

// docs/production.md, "How close modes are".
constexpr double kMean = 1e-6;
constexpr double kLargest = 1e-5;
constexpr double kNoFarther = 1.25;
// Two programs, each within half of a bound of the truth, are within the bound of each other.
constexpr double kShareOfBound = 0.5;
constexpr double kExactMean = 5e-6;
constexpr double kBfloat16Mean = 0.01, kBfloat16Largest = 0.25;

constexpr const char* kUnit = "of scale";

std::string at_patch(const Distance& d, const Record& record) {
  if (record.patches.size() < 2) return {};
  return fmt::format(", largest at patch {} of {}", d.patch + 1, record.patches.size());
}

Check judge_float32(const Case& one, const Record& found, const Record& eager,
                    const Record& exact) {
  const Distance d = distance(found, eager);
  const Distance mine = distance(found, exact);
  const Distance its = distance(eager, exact);
  const std::string figures = fmt::format(
      "to eager: mean {:.2g}, largest {:.2g}{}; to float64: mean {:.2g}, largest {:.2g} (eager: "
      "{:.2g}, {:.2g})",
      d.mean, d.largest, at_patch(d, eager), mine.mean, mine.largest, its.mean, its.largest);
  const bool mean_decides = d.mean / kMean > d.largest / kLargest;
  const bool holds = d.mean < kMean && d.largest < kLargest;
  const bool ill = its.mean > kShareOfBound * kMean || its.largest > kShareOfBound * kLargest;
  if (holds || !ill) {
    Check c = measured(one.name,
                       fmt::format("{} difference to eager: parameters and fed-back values",
                                   mean_decides ? "mean" : "largest"),
                       mean_decides ? d.mean : d.largest, mean_decides ? kMean : kLargest, kUnit,
                       "absolute criterion; " + figures);
    if (!holds) {
      c.verdict = Verdict::fails;
      c.why = "absolute criterion, since eager is close to float64 here; " + figures;
    }
    return c;
  }
  return measured(one.name, "mean distance to float64 / that of eager", mine.mean / its.mean,
                  kNoFarther, "x",
                  "relative criterion, since the checkpoint is too badly conditioned for float32 "
                  "(eager itself is too far from float64); " +
                      figures);
}

Check judge_bfloat16(const Case& one, const Record& found, const Record& eager,
                     const Record& exact) {
  const Distance d = distance(found, eager);
  const Distance mine = distance(found, exact);
  const bool mean_decides = d.mean / kBfloat16Mean > d.largest / kBfloat16Largest;
  return measured(
      one.name,
      fmt::format("{} difference to eager float32: parameters and fed-back values",
                  mean_decides ? "mean" : "largest"),
      mean_decides ? d.mean : d.largest, mean_decides ? kBfloat16Mean : kBfloat16Largest, kUnit,
      fmt::format("documented bounds of bfloat16; mean {:.2g}, largest {:.2g}{}; to float64: mean "
                  "{:.2g}, largest {:.2g}",
                  d.mean, d.largest, at_patch(d, eager), mine.mean, mine.largest));
}

}  // namespace

std::vector<Check> eager_is_exact(Experiment& e) {
  std::vector<Check> checks;
  const std::vector<Case>& cases = e.cases();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Distance d = distance(e.eager_records()[i], e.exact_records()[i]);
    checks.push_back(
        measured(cases[i].name, "mean difference of eager to float64", d.mean, kExactMean, kUnit,
                 fmt::format("largest {:.2g}{}", d.largest, at_patch(d, e.exact_records()[i]))));
  }
  return checks;
}

std::vector<Check> mode_is_eager(Experiment& e, const Subject& subject) {
  std::vector<Check> checks;
  const std::vector<Case>& cases = e.cases();
  const Model& model = e.model(subject);
  const bool wide = subject.precision == Precision::float32;
  double mine = 0, its = 0;  // the largest distances to float64 of all cases
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Record found = run_case(model, cases[i]);
    const Record& eager = e.eager_records()[i];
    const Record& exact = e.exact_records()[i];
    checks.push_back(wide ? judge_float32(cases[i], found, eager, exact)
                          : judge_bfloat16(cases[i], found, eager, exact));
    mine = std::max(mine, distance(found, exact).largest);
    its = std::max(its, distance(eager, exact).largest);
  }
  if (wide) {
    checks.push_back(measured(
        "all cases", "largest distance to float64 / that of eager", mine / its, kNoFarther, "x",
        fmt::format("over all cases, since one largest figure is chance; {:.2g} and {:.2g}", mine,
                    its)));
  }
  return checks;
}

}  // namespace toto::verify
