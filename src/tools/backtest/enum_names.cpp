// SPDX-License-Identifier: Apache-2.0
// Names of the enumerations, the levels of quantiles, and the default input scale.
#include <array>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

std::span<const double, kLevels> levels() {
  static constexpr std::array<double, kLevels> kAll = {0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35,
                                                       0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70,
                                                       0.75, 0.80, 0.85, 0.90, 0.95};
  return kAll;
}

std::string_view word(Source source) {
  switch (source) {
    case Source::model:
      return "toto";
    case Source::last_value:
      return "last_value";
    case Source::seasonal_naive:
      return "seasonal_naive";
    case Source::drift:
      return "drift";
  }
  return {};
}

std::string_view word(Transform transform) {
  switch (transform) {
    case Transform::none:
      return "none";
    case Transform::pct:
      return "pct";
    case Transform::log_return:
      return "log-return";
  }
  return {};
}

std::string_view word(Rolling rolling) {
  return rolling == Rolling::one_step ? "one-step" : "multi-step";
}

bool has_automatic_scale(const Parameters& parameters) { return parameters.input_scale == 0; }

double input_scale(const Parameters& parameters) {
  return has_automatic_scale(parameters) ? 1 : parameters.input_scale;
}

}  // namespace toto::backtest
