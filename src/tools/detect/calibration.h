// SPDX-License-Identifier: Apache-2.0
// What a score means for one series: the share of its own scores that are as high.
//
// Scores are in bits, -log2 of the model's probability. Were the model right, P(score >= b) would
// be 2^-b. That is the prior, worth kPrior scores. Up to the threshold u, above which a tenth of
// the scores lie, the probability is their share:
//
//     p(b) = (number of scores >= b + kPrior 2^-b) / (n + kPrior)
//
// and beyond it an exponential tail, p(b) = p(u) 2^-((b - u) / w). Its width w is the median excess
// of the upper tenth over u, drawn towards the 1 bit of a model that is right. (The excesses of an
// exponential tail have the median w.) A median, so that anomalies of the past, up to half of
// the upper tenth, do not hide the next one.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace toto::detect {

class Calibration {
 public:
  /// Keeps the last `limit` scores.
  explicit Calibration(std::size_t limit) : limit_(limit) {}

  /// The probability of a score at least as high; in (0, 1], and less for a higher one.
  [[nodiscard]] double probability(double score) const;
  /// The score whose probability is `p` in (0, 1), to rounding; above it lie the less probable.
  [[nodiscard]] double score_of(double p) const;
  void add(double score);
  /// One that was held back: it counts among all, and is as high as none.
  void add_held();
  [[nodiscard]] std::size_t size() const { return order_.size(); }

 private:
  [[nodiscard]] double share(double score) const;
  void forget();

  std::size_t limit_;
  std::vector<double> sorted_;
  std::deque<double> order_;  // as they came; NaN: held back
};

}  // namespace toto::detect
