// SPDX-License-Identifier: Apache-2.0
// The distribution of one step of a forecast: its tails and its quantiles, in the user's units.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "statistics/mixture.h"
#include "toto/forecast.hpp"

namespace toto::detect {

struct Tails {
  double at_most = 0;   ///< P(X <= x)
  double at_least = 0;  ///< P(X >= x)
};

/// Levels of the quantiles that a forecast needs where the network says no mixture.
std::vector<double> knot_levels(std::size_t knots);

/// Known by its quantiles at those levels: linear between them. Beyond the outermost, about which
/// the model says nothing, the tail is exponential: as from the last but one quantile to the last,
/// where the probability beyond halves. `knots` ascending, at least two.
Tails knot_tails(std::span<const double> knots, double x);
double knot_tail_quantile(std::span<const double> knots, double level);

/// Reads one step after the other out of a forecast; allocates only when it is made.
class StepReader {
 public:
  /// `forecast` has parameters, or quantiles at knot_levels() and no others. It must outlive this.
  explicit StepReader(const Forecast& forecast);

  void select(std::size_t variate, std::size_t step);
  [[nodiscard]] Tails tails(double x) const;
  [[nodiscard]] double quantile(double level) const;

 private:
  const Forecast& forecast_;
  bool mixture_;
  Mixture distribution_;
  double loc_ = 0, scale_ = 1;
  std::vector<double> knots_;
};

}  // namespace toto::detect
