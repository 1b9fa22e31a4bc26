// SPDX-License-Identifier: Apache-2.0
// Golden folders as checks of a suite.
#include <fmt/format.h>

#include <algorithm>

#include "tools/verify/groups.h"

namespace toto::verify {

std::vector<Check> golden(SuiteState& state, const std::string& folder) {
  LoadOptions load = state.options.load;
  load.precision = Precision::float32;
  const GoldenReport report = verify_golden({&folder, 1}, load);
  std::vector<Check> checks;
  for (const GoldenCase& one : report.cases) {
    double worst = 0;
    std::string where = "nothing was compared";
    for (const TensorCheck& c : one.checks) {
      const double share = c.error / c.bound;
      if (share <= worst && where != "nothing was compared") continue;
      worst = share;
      where = fmt::format("{} as {} at {}: {:.2g}, bound {:.0e}; {} comparisons", c.tensor,
                          c.execution, c.place, c.error, c.bound, one.checks.size());
    }
    Check check = measured("tensors", "largest error / its bound", worst, 1, "x", where);
    if (!one.holds()) check.verdict = Verdict::fails;
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace toto::verify
