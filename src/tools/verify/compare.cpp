// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace toto {
namespace {

/// `unit(i)` is what the error at i is divided by.
template <typename Unit>
Difference largest(std::span<const double> found, std::span<const float> expected, Unit unit) {
  Difference worst;
  if (found.size() != expected.size() || found.empty()) {
    worst.error = std::numeric_limits<double>::infinity();
    return worst;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto wanted = static_cast<double>(expected[i]);
    double error = std::abs(found[i] - wanted) / unit(i);
    if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    if (i == 0 || error > worst.error) worst = {error, i, wanted, found[i]};
  }
  return worst;
}

}  // namespace

Difference largest_difference(std::span<const double> found, std::span<const float> expected,
                              std::span<const double> scale) {
  return largest(found, expected, [&](std::size_t i) {
    return (scale.empty() ? 1.0 : scale[i]) + std::abs(static_cast<double>(expected[i]));
  });
}

Difference largest_relative_to_peak(std::span<const double> found,
                                    std::span<const float> expected) {
  double peak = 0;
  for (const float e : expected) peak = std::max(peak, std::abs(static_cast<double>(e)));
  return largest(found, expected, [&](std::size_t) { return peak; });
}

std::string place_of(std::size_t index, const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> at(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(shape[axis], 1));
    at[axis] = index % size;
    index /= size;
  }
  std::string place = "[";
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    if (axis > 0) place += ',';
    place += std::to_string(at[axis]);
  }
  place += ']';
  return place;
}

}  // namespace toto
