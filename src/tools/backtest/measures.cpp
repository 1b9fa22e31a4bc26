// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/measures.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/student_t.h"

namespace toto::backtest {
namespace {

template <typename Loss>
double mean_of(Values values, const Loss& loss) {
  if (values.empty()) return NAN;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += loss(i);
  return sum / static_cast<double>(values.size());
}

/// Over the cells where `weight` is above 0.
template <typename Weight, typename Loss>
double mean_where(std::size_t count, const Weight& weight, const Loss& loss) {
  double sum = 0;
  std::size_t counted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(weight(i) > 0)) continue;
    sum += loss(i);
    ++counted;
  }
  return counted == 0 ? NAN : sum / static_cast<double>(counted);
}

double pinball(double actual, double quantile, double level) {
  const double above = actual - quantile;
  return std::max(level * above, (level - 1) * above);
}

}  // namespace

double mean_absolute_error(Values actual, Values forecast) {
  return mean_of(actual, [&](std::size_t i) { return std::abs(actual[i] - forecast[i]); });
}

double root_mean_square_error(Values actual, Values forecast) {
  return std::sqrt(mean_of(actual, [&](std::size_t i) {
    return (actual[i] - forecast[i]) * (actual[i] - forecast[i]);
  }));
}

double mean_absolute_percentage_error(Values actual, Values forecast) {
  const auto size = [&](std::size_t i) { return std::abs(actual[i]); };
  return 100 * mean_where(actual.size(), size, [&](std::size_t i) {
           return std::abs(actual[i] - forecast[i]) / size(i);
         });
}

double symmetric_percentage_error(Values actual, Values forecast) {
  return 200 * mean_of(actual, [&](std::size_t i) {
           const double sum = std::abs(actual[i]) + std::abs(forecast[i]);
           return sum > 0 ? std::abs(actual[i] - forecast[i]) / sum : 0;
         });
}

double mean_scaled_error(Values actual, Values forecast, Values scale) {
  return mean_where(
      actual.size(), [&](std::size_t i) { return scale[i]; },
      [&](std::size_t i) { return std::abs(actual[i] - forecast[i]) / scale[i]; });
}

double pinball_loss(Values actual, Values quantile, double level) {
  return mean_of(actual, [&](std::size_t i) { return pinball(actual[i], quantile[i], level); });
}

double weighted_quantile_loss(Values actual, Values quantile, double level) {
  const double size = mean_of(actual, [&](std::size_t i) { return std::abs(actual[i]); });
  return size > 0 ? 2 * pinball_loss(actual, quantile, level) / size : NAN;
}

double share_at_or_below(Values actual, Values quantile) {
  return mean_of(actual, [&](std::size_t i) { return actual[i] <= quantile[i] ? 1.0 : 0.0; });
}

double coverage(Values actual, Values low, Values high) {
  return mean_of(actual, [&](std::size_t i) {
    return low[i] <= actual[i] && actual[i] <= high[i] ? 1.0 : 0.0;
  });
}

Proportion wilson(std::size_t right, std::size_t count) {
  if (count == 0) return {0, 0, NAN, NAN, NAN};
  constexpr double z = 1.959963984540054;  // the normal's quantile at 0.975
  const auto n = static_cast<double>(count);
  const double p = static_cast<double>(right) / n;
  const double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  // The ends are exact in real arithmetic; rounding must not put them a little beyond.
  return {right, count, p, right == 0 ? 0 : centre - half, right == count ? 1 : centre + half};
}

Proportion direction(Values actual, Values forecast, Values base) {
  std::size_t right = 0;
  std::size_t moved = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double happened = actual[i] - base[i];
    const double said = forecast[i] - base[i];
    if (happened == 0 || said == 0) continue;  // a forecast of no move is no wrong direction
    ++moved;
    right += std::signbit(happened) == std::signbit(said) ? 1 : 0;
  }
  return wilson(right, moved);
}

double two_sided_p(double t, double df) {
  if (std::isnan(t) || !(df >= 1)) return NAN;
  // student_t.h begins at 2 degrees of freedom; below that lies only Cauchy's distribution.
  if (df < 2) return 1 - 2 / std::numbers::pi * std::atan(std::abs(t));
  return 2 * student_t_upper(std::abs(t), df);
}

PairedTest diebold_mariano(Values loss, Values other, std::size_t overlap) {
  PairedTest test{loss.size(), 0, NAN, NAN};
  if (loss.size() < 2) return test;
  const auto n = static_cast<double>(loss.size());
  const double mean = mean_of(loss, [&](std::size_t i) { return loss[i] - other[i]; });
  std::vector<double> difference;
  difference.reserve(loss.size());
  for (std::size_t i = 0; i < loss.size(); ++i) difference.push_back(loss[i] - other[i] - mean);
  const auto autocovariance = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = lag; i < difference.size(); ++i)
      sum += difference[i] * difference[i - lag];
    return sum / n;
  };
  overlap = std::min(overlap, loss.size() - 1);
  double variance = autocovariance(0);
  for (std::size_t lag = 1; lag <= overlap; ++lag) variance += 2 * autocovariance(lag);
  // The sum of autocovariances may be negative; Bartlett's weights never make it so.
  if (!(variance > 0)) {
    variance = autocovariance(0);
    for (std::size_t lag = 1; lag <= overlap; ++lag) {
      const double weight = 1 - static_cast<double>(lag) / static_cast<double>(overlap + 1);
      variance += 2 * weight * autocovariance(lag);
    }
  }
  if (!(variance > 0)) return test;
  const auto h = static_cast<double>(overlap + 1);
  const double correction = std::sqrt((n + 1 - 2 * h + h * (h - 1) / n) / n);
  test.statistic = mean / std::sqrt(variance / n) * correction;
  test.p_value = two_sided_p(test.statistic, n - 1);
  return test;
}

std::size_t fewest_origins(std::size_t overlap) {
  constexpr std::size_t kMin = 10;
  return std::max(kMin, 3 * (overlap + 1));
}

PairedTest paired_test(Values loss, Values other, std::size_t overlap) {
  const std::size_t needed = fewest_origins(overlap);
  PairedTest test{loss.size(), needed, NAN, NAN};
  if (test.too_few()) return test;
  test = diebold_mariano(loss, other, overlap);
  test.needed = needed;
  return test;
}

}  // namespace toto::backtest
