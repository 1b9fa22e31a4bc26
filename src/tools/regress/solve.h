// SPDX-License-Identifier: Apache-2.0
// Small dense problems of a ridge regression.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace toto::regress {

/// Sums over rows of columns and of a target: what a least-squares fit needs.
struct Moments {
  explicit Moments(std::size_t columns) : xx(columns * columns), xy(columns), sum_x(columns) {}

  void add(std::span<const double> x, double y, double sign = 1);
  void add(const Moments& other, double sign);

  std::vector<double> xx;  // [E][E]
  std::vector<double> xy;  // [E]
  std::vector<double> sum_x;
  double sum_y = 0, count = 0;
};

/// A ridge solution in units where every column has variance 1; columns without variance have 0.
struct Ridge {
  std::vector<double> coefficient;  // [E] per unit of x
  std::vector<double> covariance;   // [E][E], to be multiplied by the variance of the errors
  double intercept = 0;
};

/// Minimises mean (y - a - b x)^2 + strength * sum of (b_j sd_j)^2. An infinite strength gives 0.
Ridge solve(const Moments& moments, double strength);

/// Coefficients of an autoregression from autocovariances [p + 1] (Levinson-Durbin).
std::vector<double> levinson(std::span<const double> autocovariance);

}  // namespace toto::regress
