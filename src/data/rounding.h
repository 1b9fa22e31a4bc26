// SPDX-License-Identifier: Apache-2.0
// What float32 takes off the values of a series, beside how much they vary.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "data/number.h"

namespace toto::data {

/// One column of one series.
class Rounding {
 public:
  void add(const Number& number) {
    if (number.kind != NumberKind::value) return;
    if (number.exact != last_ && lowest_ <= highest_) {
      moves_ += std::abs(number.exact - last_);
      ++changes_;
    }
    last_ = number.exact;
    lowest_ = std::min(lowest_, number.exact);
    highest_ = std::max(highest_, number.exact);
    off_ = std::max(off_, std::abs(number.exact - double{number.value}));
  }
  /// Whether float32 holds all values.
  [[nodiscard]] bool exact() const { return !(off_ > 0); }
  /// Whether float32 tells fewer than 64 values of the range apart, and rounded one.
  [[nodiscard]] bool blurs() const {
    constexpr double kParts = 64;
    return off_ > 0 && changes_ > 0 && step() * kParts > range();
  }
  /// Whether float32 has too few digits for a forecast: fewer than 4096 values of the range, or
  /// fewer than 16 of the usual change from row to row, and it rounded one.
  [[nodiscard]] bool loses_digits() const {
    constexpr double kOfRange = 4096, kOfMove = 16;
    if (!(off_ > 0) || changes_ == 0) return false;
    return step() * kOfRange > range() || step() * kOfMove > move();
  }
  [[nodiscard]] double range() const { return highest_ - lowest_; }
  /// The mean size of changes from row to row; 0 where there are none.
  [[nodiscard]] double move() const {
    return changes_ == 0 ? 0.0 : moves_ / static_cast<double>(changes_);
  }
  /// From a float to the next, near the values.
  [[nodiscard]] double step() const {
    const double size = std::max(std::abs(lowest_), std::abs(highest_));
    return std::ldexp(1.0, std::ilogb(size) - std::numeric_limits<float>::digits + 1);
  }
  [[nodiscard]] double level() const { return (lowest_ + highest_) / 2; }

 private:
  double lowest_ = std::numeric_limits<double>::infinity();
  double highest_ = -std::numeric_limits<double>::infinity();
  double off_ = 0;
  double last_ = 0;
  double moves_ = 0;
  std::size_t changes_ = 0;
};

}  // namespace toto::data
