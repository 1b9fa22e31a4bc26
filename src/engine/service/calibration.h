// SPDX-License-Identifier: Apache-2.0
// Seconds of a micro-batch from its cost: a line through what was measured, the latest counting
// most.
#pragma once

#include <algorithm>

namespace toto {

class Calibration {
 public:
  void add(double cost, double seconds) {
    constexpr double kForget = 0.95;  // of what was known, each time
    n_ = kForget * n_ + 1;
    x_ = kForget * x_ + cost;
    y_ = kForget * y_ + seconds;
    xx_ = kForget * xx_ + cost * cost;
    xy_ = kForget * xy_ + cost * seconds;
  }
  /// 0 where nothing was measured.
  [[nodiscard]] double seconds(double cost) const {
    if (n_ == 0 || x_ <= 0) return 0;
    const double spread = xx_ - x_ * x_ / n_;
    // All of one size: seconds in proportion to the cost.
    if (spread <= 1e-6 * xx_) return y_ / x_ * cost;
    const double slope = std::max((xy_ - x_ * y_ / n_) / spread, 0.0);
    const double fixed = (y_ - slope * x_) / n_;
    if (fixed < 0) return y_ / x_ * cost;  // costs nothing at all: not a line through these
    return fixed + slope * cost;
  }

 private:
  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace toto
