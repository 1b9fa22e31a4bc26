// SPDX-License-Identifier: Apache-2.0
#include "backtest/baselines.h"

#include <array>
#include <cmath>

namespace toto::backtest {
namespace {

/// The root of the mean square of y[t] - y[t - lag] - slope.
double residual_sigma(std::span<const float> y, std::size_t lag, double slope) {
  if (y.size() <= lag) return 0;
  double squares = 0;
  for (std::size_t t = lag; t < y.size(); ++t) {
    const double r = static_cast<double>(y[t]) - static_cast<double>(y[t - lag]) - slope;
    squares += r * r;
  }
  return std::sqrt(squares / static_cast<double>(y.size() - lag));
}

Baseline last_value(std::span<const float> y, std::size_t step) {
  return {y.back(), residual_sigma(y, 1, 0) * std::sqrt(static_cast<double>(step))};
}

Baseline drift(std::span<const float> y, std::size_t step) {
  if (y.size() < 2) return last_value(y, step);
  const auto moves = static_cast<double>(y.size() - 1);
  const auto h = static_cast<double>(step);
  const double slope = (static_cast<double>(y.back()) - static_cast<double>(y.front())) / moves;
  return {y.back() + h * slope, residual_sigma(y, 1, slope) * std::sqrt(h * (1 + h / moves))};
}

Baseline seasonal(std::span<const float> y, std::size_t season, std::size_t step) {
  if (season >= y.size()) return last_value(y, step);
  const std::size_t seasons = (step - 1) / season + 1;
  const double sigma = residual_sigma(y, season, 0) * std::sqrt(static_cast<double>(seasons));
  return {y[y.size() - season + (step - 1) % season], sigma};
}

}  // namespace

Baseline baseline(Source source, std::span<const float> context, std::size_t season,
                  std::size_t step) {
  switch (source) {
    case Source::last_value:
      return last_value(context, step);
    case Source::seasonal_naive:
      return seasonal(context, season, step);
    case Source::drift:
      return drift(context, step);
    case Source::model:
      break;
  }
  return {NAN, NAN};
}

double seasonal_scale(std::span<const float> context, std::size_t season) {
  if (context.size() <= season) return 0;
  double sum = 0;
  for (std::size_t t = season; t < context.size(); ++t) {
    sum += std::abs(static_cast<double>(context[t]) - static_cast<double>(context[t - season]));
  }
  return sum / static_cast<double>(context.size() - season);
}

double normal_quantile(std::size_t level) {
  // scipy.stats.norm.ppf of 0.55, 0.60 ... 0.95.
  constexpr std::array kUpper = {0.12566134685507416, 0.2533471031357997, 0.38532046640756773,
                                 0.5244005127080407,  0.6744897501960817, 0.8416212335729143,
                                 1.0364333894937898,  1.2815515655446004, 1.6448536269514722};
  constexpr std::size_t kMiddle = kLevels / 2;
  if (level == kMiddle) return 0;
  return level > kMiddle ? kUpper[level - kMiddle - 1] : -kUpper[kMiddle - level - 1];
}

}  // namespace toto::backtest
