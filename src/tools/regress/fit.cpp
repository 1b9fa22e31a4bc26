// SPDX-License-Identifier: Apache-2.0
// The fit: filter, cross-validate, solve.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tools/regress/solve.h"
#include "toto/tools/regress.hpp"

namespace toto::regress {
namespace {

constexpr std::size_t kMaxLags = 28;  // two weeks of days twice, a day of hours
constexpr std::size_t kBlocks = 8;    // of cross-validation
constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr std::array kStrengths = {1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0};

struct Problem {
  std::span<const float> y;
  std::span<const std::uint8_t> mask;
  std::span<const float> x;  // [E][T]
  std::size_t columns;

  [[nodiscard]] std::size_t steps() const { return y.size(); }
  [[nodiscard]] double at(std::size_t column, std::size_t t) const {
    return static_cast<double>(x[column * steps() + t]);
  }
};

/// An autoregression of the series less the effect that is known so far.
std::vector<double> filter_of(const Problem& p, const std::vector<double>& coefficient,
                              std::size_t lags) {
  std::vector<double> rest(p.steps());
  double mean = 0;
  double count = 0;
  for (std::size_t t = 0; t < p.steps(); ++t) {
    if (p.mask[t] == 0) continue;
    rest[t] = static_cast<double>(p.y[t]);
    for (std::size_t j = 0; j < p.columns; ++j) rest[t] -= coefficient[j] * p.at(j, t);
    mean += rest[t];
    ++count;
  }
  mean /= count;
  for (std::size_t t = 0; t < p.steps(); ++t) rest[t] = p.mask[t] == 0 ? 0 : rest[t] - mean;
  std::vector<double> autocovariance(lags + 1);
  for (std::size_t lag = 0; lag <= lags; ++lag) {
    for (std::size_t t = lag; t < p.steps(); ++t) autocovariance[lag] += rest[t] * rest[t - lag];
  }
  return levinson(autocovariance);
}

/// Filtered rows less the first of them, in order of time. A row needs all its lags. So a column
/// that never changes is exactly 0, and sums of squares lose no digits to a level.
struct Rows {
  std::vector<double> x;  // [rows][E]
  std::vector<double> y;
  [[nodiscard]] std::size_t size() const { return y.size(); }
};

Rows filtered(const Problem& p, const std::vector<double>& phi) {
  Rows rows;
  std::size_t run = 0;  // observed values up to here
  for (std::size_t t = 0; t < p.steps(); ++t) {
    run = p.mask[t] == 0 ? 0 : run + 1;
    if (run <= phi.size()) continue;
    double y = static_cast<double>(p.y[t]);
    for (std::size_t i = 0; i < phi.size(); ++i) {
      y -= phi[i] * static_cast<double>(p.y[t - 1 - i]);
    }
    rows.y.push_back(y);
    for (std::size_t j = 0; j < p.columns; ++j) {
      double x = p.at(j, t);
      for (std::size_t i = 0; i < phi.size(); ++i) x -= phi[i] * p.at(j, t - 1 - i);
      rows.x.push_back(x);
    }
  }
  for (std::size_t r = rows.size(); r-- > 0;) {
    rows.y[r] -= rows.y.front();
    for (std::size_t j = 0; j < p.columns; ++j) rows.x[r * p.columns + j] -= rows.x[j];
  }
  return rows;
}

/// With as many lags as leave at least half of the rows.
Rows filtered_rows(const Problem& p, const std::vector<double>& coefficient, std::size_t observed) {
  for (std::size_t lags = std::min(kMaxLags, observed / 10); lags > 0; lags /= 2) {
    Rows rows = filtered(p, filter_of(p, coefficient, lags));
    if (2 * rows.size() >= observed) return rows;
  }
  return filtered(p, {});
}

Moments moments_of(const Rows& rows, std::size_t columns, std::size_t begin, std::size_t end) {
  Moments moments(columns);
  for (std::size_t r = begin; r < end; ++r) {
    moments.add(std::span(rows.x).subspan(r * columns, columns), rows.y[r]);
  }
  return moments;
}

double mean_square(const Rows& rows, std::size_t columns, const Ridge& ridge, std::size_t begin,
                   std::size_t end) {
  double sum = 0;
  for (std::size_t r = begin; r < end; ++r) {
    double error = rows.y[r] - ridge.intercept;
    for (std::size_t j = 0; j < columns; ++j) {
      error -= ridge.coefficient[j] * rows.x[r * columns + j];
    }
    sum += error * error;
  }
  return sum / static_cast<double>(end - begin);
}

struct Choice {
  double strength = kNone;
  double gain = 0;  // share of the error
};

/// Each block of time is left out once.
Choice cross_validate(const Rows& rows, std::size_t columns, const Moments& all) {
  const auto cut = [&](std::size_t k) { return k * rows.size() / kBlocks; };
  const auto errors_of = [&](double strength) {
    std::array<double, kBlocks> errors{};
    for (std::size_t k = 0; k < kBlocks; ++k) {
      Moments others = all;
      others.add(moments_of(rows, columns, cut(k), cut(k + 1)), -1);
      errors[k] = mean_square(rows, columns, solve(others, strength), cut(k), cut(k + 1));
    }
    return errors;
  };
  const std::array<double, kBlocks> without = errors_of(kNone);
  double total = 0;
  for (const double error : without) total += error;
  Choice best;
  double most = 0;
  for (const double strength : kStrengths) {
    const std::array<double, kBlocks> with = errors_of(strength);
    double mean = 0;
    for (std::size_t k = 0; k < kBlocks; ++k) mean += (without[k] - with[k]) / kBlocks;
    double variance = 0;
    for (std::size_t k = 0; k < kBlocks; ++k) {
      const double away = without[k] - with[k] - mean;
      variance += away * away / (kBlocks - 1) / kBlocks;
    }
    if (mean <= std::sqrt(variance) || mean <= most) continue;
    most = mean;
    best = {strength, mean * kBlocks / total};
  }
  return best;
}

}  // namespace

double Fit::effect(std::span<const double> x) const {
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) sum += coefficient[j] * (x[j] - mean[j]);
  return sum;
}

double Fit::variance(std::span<const double> x) const {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      sum += (x[i] - mean[i]) * covariance[i * x.size() + j] * (x[j] - mean[j]);
    }
  }
  return std::max(sum, 0.0);
}

Fit fit(std::span<const float> y, std::span<const std::uint8_t> mask, std::span<const float> x) {
  const Problem problem{y, mask, x, y.empty() ? 0 : x.size() / y.size()};
  const std::size_t columns = problem.columns;
  Fit out;
  out.coefficient.assign(columns, 0);
  out.mean.assign(columns, 0);
  out.covariance.assign(columns * columns, 0);
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t t = 0; t < y.size(); ++t) out.mean[j] += problem.at(j, t);
    out.mean[j] /= static_cast<double>(y.size());
  }
  const auto observed = static_cast<std::size_t>(std::ranges::count(mask, 1));
  if (columns == 0 || observed < 2 * columns + 2 * kBlocks) return out;

  // The filter of the series itself, then that of what a first fit leaves of it.
  Rows rows = filtered_rows(problem, out.coefficient, observed);
  const Ridge first = solve(moments_of(rows, columns, 0, rows.size()), kStrengths[1]);
  rows = filtered_rows(problem, first.coefficient, observed);
  const Moments all = moments_of(rows, columns, 0, rows.size());
  const Choice choice = cross_validate(rows, columns, all);
  out.strength = choice.strength;
  if (!std::isfinite(choice.strength)) {
    out.strength = 0;
    return out;
  }
  const Ridge ridge = solve(all, choice.strength);
  const double noise = mean_square(rows, columns, ridge, 0, rows.size());
  out.found = true;
  out.gain = choice.gain;
  out.coefficient = ridge.coefficient;
  for (std::size_t i = 0; i < ridge.covariance.size(); ++i) {
    out.covariance[i] = noise * ridge.covariance[i];
  }
  return out;
}

}  // namespace toto::regress
