// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/rotary.h"

#include <cmath>
#include <cstddef>

namespace toto::toto2 {
namespace {

constexpr double kBase = 10000.0;
constexpr double kScaleBase = 256.0;

/// What the reference has in float32, formed in double and rounded once: the same bits with every
/// mathematical library.
float rounded(double x) { return static_cast<float>(x); }

}  // namespace

RotaryTables rotary_tables(std::int32_t positions, std::int32_t qk, bool xpos) {
  const std::int32_t pairs = qk / 4;
  const auto width = static_cast<float>(2 * pairs);  // channels that are rotated
  RotaryTables tables;
  for (std::int32_t t = 0; t < positions; ++t) {
    for (std::int32_t i = 0; i < pairs; ++i) {
      const float exponent = static_cast<float>(2 * i) / width;
      const float frequency = 1.0F / rounded(std::pow(kBase, double{exponent}));
      const double angle = double{static_cast<float>(t) * frequency};
      tables.cosine.push_back(rounded(std::cos(angle)));
      tables.sine.push_back(rounded(std::sin(angle)));
    }
  }
  if (!xpos) return tables;
  for (std::int32_t t = -positions; t < positions; ++t) {
    for (std::int32_t i = 0; i < pairs; ++i) {
      const float base = (static_cast<float>(2 * i) + rounded(0.4 * width)) / rounded(1.4 * width);
      tables.factor.push_back(std::pow(static_cast<double>(base), t / kScaleBase));
    }
  }
  return tables;
}

}  // namespace toto::toto2
