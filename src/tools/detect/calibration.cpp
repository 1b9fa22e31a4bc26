// SPDX-License-Identifier: Apache-2.0
#include "tools/detect/calibration.h"

#include <algorithm>
#include <cmath>

namespace toto::detect {
namespace {

constexpr double kPrior = 10;         // scores that the model's own word is worth
constexpr std::size_t kMinTail = 10;  // scores that a tail is fitted to, at least
constexpr double kTail = 0.1;         // share of the scores that are the tail
constexpr double kMaxScore = 1000;    // the logarithm of the smallest double is -1074
constexpr double kMinWidth = 0.25;    // bits

}  // namespace

double Calibration::share(double score) const {
  const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), score);
  const auto above = static_cast<double>(sorted_.end() - at);
  return (above + kPrior * std::exp2(-score)) / (static_cast<double>(order_.size()) + kPrior);
}

double Calibration::probability(double score) const {
  const std::size_t n = sorted_.size();
  const auto tail = std::max(kMinTail, static_cast<std::size_t>(kTail * static_cast<double>(n)));
  if (n < 2 * tail) return share(score);
  const double u = sorted_[n - tail];
  if (score <= u) return share(score);
  const double excess = sorted_[n - tail / 2 - 1] - u;
  const auto count = static_cast<double>(tail);
  const double width = std::max(kMinWidth, (count * excess + kPrior) / (count + kPrior));
  return share(u) * std::exp2(-(score - u) / width);
}

double Calibration::score_of(double p) const {
  double low = 0;
  double high = kMaxScore;
  if (probability(low) <= p) return low;
  if (probability(high) > p) return high;
  for (int i = 0; i < 64 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (probability(middle) > p ? low : high) = middle;
  }
  return high;
}

void Calibration::add(double score) {
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), score), score);
  order_.push_back(score);
  forget();
}

void Calibration::add_held() {
  order_.push_back(std::nan(""));
  forget();
}

void Calibration::forget() {
  if (order_.size() <= limit_) return;
  const double oldest = order_.front();
  order_.pop_front();
  if (!std::isnan(oldest)) sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), oldest));
}

}  // namespace toto::detect
