// SPDX-License-Identifier: Apache-2.0
// Quantiles of the latest numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "toto/service.hpp"

namespace toto {

class Recent {
 public:
  void add(double value) { values_[count_++ % values_.size()] = value; }
  /// In any order.
  [[nodiscard]] std::vector<double> values() const {
    const auto n = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(count_, values_.size()));
    return {values_.begin(), values_.begin() + n};
  }

 private:
  std::array<double, 1024> values_{};
  std::uint64_t count_ = 0;
};

inline Quantiles quantiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(
        std::lround(q * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.5), at(0.95), at(0.99)};
}

}  // namespace toto
