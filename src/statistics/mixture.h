// SPDX-License-Identifier: Apache-2.0
// Exact statistics of a mixture of Student-T's: what the network says about one step, with no
// sampling noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/mixture_solver.h"
#include "core/student_t.h"

namespace toto {

/// A mixture of up to `max_components` components. The constructor allocates and nothing else does:
/// make one per thread and assign() it step after step.
///
/// Valid parameters: df >= 2 (infinity is the normal), loc finite, scale > 0 and finite,
/// probability
/// >= 0. Components of probability 0 are ignored whatever else they hold. Probabilities need not
/// sum to 1: everything but mean() divides by their sum. If a component that counts is not valid,
/// or none counts, every answer is NaN.
class Mixture {
 public:
  explicit Mixture(std::size_t max_components);

  /// Takes K components; the four spans have the same length, at most max_components.
  void assign(std::span<const double> df, std::span<const double> loc,
              std::span<const double> scale, std::span<const double> probability);

  /// sum p loc, of the probabilities as given (spec A10).
  [[nodiscard]] double mean() const { return mean_; }
  /// Infinite if a component's df is 2: its tails are too heavy for a variance.
  [[nodiscard]] double variance() const { return variance_; }
  /// The root of the variance; NaN where that says nothing about the spread: where the tails of
  /// components with df below 3 make the variance more than ten times what df = 3 would make it.
  /// docs/statistics.md has the reason.
  [[nodiscard]] double standard_deviation() const;
  [[nodiscard]] double pdf(double x) const;
  /// P(X <= x), to full relative accuracy in the lower tail.
  [[nodiscard]] double cdf(double x) const;
  /// P(X > x), to full relative accuracy in the upper tail.
  [[nodiscard]] double upper(double x) const;

  /// Phi^-1(cdf(x)): x on the scale of the standard normal, within 8.3 of 0.
  [[nodiscard]] double normal_score(double x) const;
  /// The way back: the quantile of the level Phi(z), z within 8.3 of 0.
  [[nodiscard]] double at_normal_score(double z) const;
  [[nodiscard]] bool valid() const { return valid_; }

  /// The x with cdf(x) = q; -inf for q <= 0, inf for q >= 1.
  [[nodiscard]] double quantile(double q) const;
  /// Quantiles of ascending levels, ascending. Each depends on the mixture and its own level alone:
  /// asking for more levels changes none.
  void quantiles(std::span<const double> levels, std::span<double> out) const;

 private:
  // Components side by side, so that what lies between the logarithms can be vector arithmetic.
  // Lanes beyond the last component have weight 0.
  static constexpr int kLanes = 8;
  struct Block {
    double df[kLanes], pdf0[kLanes], loc[kLanes], inverse_scale[kLanes], weight[kLanes];
    double c[student_t::kTerms][kLanes];
    bool large[kLanes];  // df >= student_t::kLargeDf
    bool any_large;
  };
  struct Ordered {
    double loc;
    std::uint32_t index;
  };
  struct Sums;
  using Point = mixture::Point;
  using Bracket = mixture::Bracket;

  static void tails(const Block& block, const double (&z)[kLanes], double (&pdf)[kLanes],
                    double (&tail)[kLanes]);
  static void add_block(const Block& block, double x, Sums& sums);
  [[nodiscard]] Point evaluate(double x) const;
  [[nodiscard]] Bracket bracket(double q) const;
  [[nodiscard]] double guess(double q) const;
  [[nodiscard]] double solve(double q, std::span<const Point> nodes) const;

  std::vector<Block> blocks_;
  std::vector<Ordered> order_;  // the components that count, by location
  std::size_t used_ = 0;        // how many
  double mean_ = 0;
  double center_ = 0;  // sum of weight * loc
  double variance_ = 0;
  double tame_variance_ = 0;  // with every df taken as 3 at least
  bool valid_ = false;
};

}  // namespace toto
