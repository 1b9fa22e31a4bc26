// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/transform.h"

#include <algorithm>
#include <cmath>

namespace toto::backtest {

void show(Transform transform, double scale, double offset, std::span<const float> bars,
          std::span<const std::uint8_t> mask, std::vector<float>& values,
          std::vector<std::uint8_t>& shown_mask) {
  if (transform == Transform::none) {
    for (const float x : bars) {
      values.push_back(scale == 1 ? x : static_cast<float>(static_cast<double>(x) * scale));
    }
    shown_mask.insert(shown_mask.end(), mask.begin(), mask.end());
    return;
  }
  for (std::size_t t = 1; t < bars.size(); ++t) {
    const double ratio =
        (offset + static_cast<double>(bars[t])) / (offset + static_cast<double>(bars[t - 1]));
    const double move = transform == Transform::pct ? ratio - 1 : std::log(ratio);
    values.push_back(static_cast<float>(move * scale));
    shown_mask.push_back(mask[t]);
  }
}

double to_value(Transform transform, double base, double on_line) {
  return transform == Transform::log_return ? base * std::exp(on_line) : on_line;
}

Line first_step(Transform transform, double scale, double base) {
  if (transform == Transform::pct) return {base, base / scale};
  return {0, 1 / scale};
}

void follow(Transform transform, double scale, double base, std::span<double> trajectory) {
  if (transform == Transform::none) {
    for (double& x : trajectory) x /= scale;
    return;
  }
  double at = transform == Transform::pct ? base : 0;
  for (double& x : trajectory) {
    // A draw far out in the tail of a mixture may lose more than everything; a price cannot.
    at = transform == Transform::pct ? at * std::max(0.0, 1 + x / scale) : at + x / scale;
    x = at;
  }
}

}  // namespace toto::backtest
