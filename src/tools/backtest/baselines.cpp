// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/baselines.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace toto::backtest {
namespace {

struct Sum {
  double total = 0;
  std::size_t count = 0;
};

/// Of what `each` makes of y[t] - y[t - lag] where both are observed.
template <typename Each>
Sum over_pairs(const Context& y, std::size_t lag, const Each& each) {
  Sum sum;
  for (std::size_t t = lag; t < y.values.size(); ++t) {
    if (y.mask[t] == 0 || y.mask[t - lag] == 0) continue;
    sum.total += each(static_cast<double>(y.values[t]) - static_cast<double>(y.values[t - lag]));
    ++sum.count;
  }
  return sum;
}

/// The root of the mean square of y[t] - y[t - lag] - slope.
double residual_sigma(const Context& y, std::size_t lag, double slope) {
  const Sum squares =
      over_pairs(y, lag, [&](double move) { return (move - slope) * (move - slope); });
  return squares.count == 0 ? 0 : std::sqrt(squares.total / static_cast<double>(squares.count));
}

Baseline last_value(const Context& y, std::size_t step) {
  return {y.values.back(), residual_sigma(y, 1, 0) * std::sqrt(static_cast<double>(step))};
}

Baseline drift(const Context& y, std::size_t step) {
  const auto first = std::ranges::find(y.mask, 1) - y.mask.begin();
  std::ptrdiff_t last = std::ssize(y.mask) - 1;
  while (last > first && y.mask[static_cast<std::size_t>(last)] == 0) --last;
  if (last <= first) return last_value(y, step);
  const auto moves = static_cast<double>(last - first);
  // The line is that of the observed values, so it has gone on since the last one of them.
  const auto h = static_cast<double>(step + y.mask.size() - 1 - static_cast<std::size_t>(last));
  const double end = y.values.back();
  const double slope =
      (end - static_cast<double>(y.values[static_cast<std::size_t>(first)])) / moves;
  return {end + h * slope, residual_sigma(y, 1, slope) * std::sqrt(h * (1 + h / moves))};
}

Baseline seasonal(const Context& y, std::size_t season, std::size_t step) {
  if (season >= y.values.size()) return last_value(y, step);
  const std::size_t seasons = (step - 1) / season + 1;
  const double sigma = residual_sigma(y, season, 0) * std::sqrt(static_cast<double>(seasons));
  return {y.values[y.values.size() - season + (step - 1) % season], sigma};
}

}  // namespace

Baseline baseline(Source source, const Context& context, std::size_t season, std::size_t step) {
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

Scale scale_of(const Context& context, std::size_t season) {
  const auto size = [](double move) { return std::abs(move); };
  Sum sum = over_pairs(context, season, size);
  const bool seasonal = sum.count > 0;
  if (!seasonal) sum = over_pairs(context, 1, size);
  if (sum.count == 0) return {};
  return {sum.total / static_cast<double>(sum.count), seasonal};
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
