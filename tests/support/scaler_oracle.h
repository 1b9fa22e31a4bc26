// SPDX-License-Identifier: Apache-2.0
// The scalers of spec A4, written from its text: one step after the other, in long double, with
// constants of its own. It shares no code with any backend, so a constant or a sum that is wrong in
// all of them is seen here. Each answer comes with how far rounding may put a backend that sums in
// float64, in whatever order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace toto::oracle {

/// A value and how far from it a backend may be.
struct Near {
  long double value = 0;
  long double error = 0;
};

/// What a lane carries from one call to the next, and what rounding has done to it.
struct ScalerCarry {
  long double count = 0, sum = 0, m2 = 0, mean = 0;
  long double sum_error = 0, m2_error = 0, mean_error = 0;
  Near lower, upper, loc, scale;
};

struct ScaledLane {
  std::vector<Near> loc, scale;  // [tokens][P], before they are rounded to float32
};

namespace scaler_detail {

inline constexpr long double kUnit = 0x1p-53L;  // one rounding to float64
inline constexpr long double kFloor = 0.1;      // A4: epsilon, inside the root
inline constexpr long double kFloorOfGlobalScaler = 0.001;

/// sqrt(variance + floor), with the rounding of the sum and of the root.
inline Near root(long double variance, long double error, long double floor) {
  const long double value = std::sqrt(variance + floor);
  return {value, error / (2 * value) + 2 * kUnit * value};
}

struct Moments {
  Near mean, variance;
};

/// A4.5: over the valid steps of the context; population variance.
inline Moments context_moments(std::span<const float> x, std::span<const std::uint8_t> mask) {
  long double count = 0, sum = 0, size = 0;
  for (std::size_t t = 0; t < x.size(); ++t) {
    if (mask[t] == 0) continue;
    count += 1;
    sum += x[t];
    size += std::abs(static_cast<long double>(x[t]));
  }
  const long double n = std::max(count, 1.0L);
  const long double mean = sum / n;
  const long double mean_error = (n + 1) * kUnit * size / n;
  long double squares = 0, error = 0;
  for (std::size_t t = 0; t < x.size(); ++t) {
    if (mask[t] == 0) continue;
    const long double d = x[t] - mean;
    const long double e = mean_error + kUnit * std::abs(d);
    squares += d * d;
    error += 2 * std::abs(d) * e + e * e;
  }
  return {{mean, mean_error}, {squares / n, (error + (n + 2) * kUnit * squares) / n}};
}

/// A4.1 to 4.3 for one step.
inline void take(ScalerCarry& c, long double x, bool valid) {
  const long double before = c.mean;
  const long double before_error = c.mean_error;
  if (valid) {
    c.count += 1;
    c.sum += x;
    // A sum that is formed in any order is off by its length times the sum of sizes at most.
    c.sum_error += kUnit * (std::abs(c.sum) + c.sum_error);
  }
  const long double n = std::max(c.count, 1.0L);
  c.mean = c.sum / n;
  c.mean_error = c.sum_error / n + kUnit * std::abs(c.mean);
  if (!valid) return;
  const long double a = std::abs(x - before), b = std::abs(x - c.mean);
  const long double ea = before_error + kUnit * a, eb = c.mean_error + kUnit * b;
  c.m2 += (x - before) * (x - c.mean);
  c.m2_error += a * eb + b * ea + ea * eb + 2 * kUnit * (std::abs(c.m2) + a * b);
}

/// A4.4 and the clamp of A4.5.
inline Near conclude(const ScalerCarry& c) {
  const long double n = std::max(std::max(c.count, 1.0L) - 1, 1.0L);
  const Near raw = root(c.m2 / n, c.m2_error / n, kFloor);
  const long double value = std::min(std::max(raw.value, c.lower.value), c.upper.value);
  const long double upper = std::isfinite(c.upper.error) ? c.upper.error : 0;
  return {value, std::max({raw.error, c.lower.error, upper})};
}

}  // namespace scaler_detail

/// One lane of `b`: x and mask [tokens][P], label tokens first. `carry` is what an earlier call
/// left, and is begun anew where the lane begins.
inline ScaledLane scale_lane(const Block& b, const ScalerSpec& spec, std::span<const float> x,
                             std::span<const std::uint8_t> mask, ScalerCarry& carry) {
  namespace d = scaler_detail;
  const auto patch = static_cast<std::size_t>(spec.patch);
  const auto labels = static_cast<std::size_t>(b.labels) * patch;
  if (b.position == 0) {
    carry = {};
    carry.upper.value = std::numeric_limits<long double>::infinity();
    const auto context = std::min(static_cast<std::size_t>(b.context) * patch, x.size() - labels);
    const d::Moments m =
        d::context_moments(x.subspan(labels, context), mask.subspan(labels, context));
    if (spec.kind == ScalerSpec::Kind::global) {
      carry.loc = m.mean;
      carry.scale = d::root(m.variance.value, m.variance.error, d::kFloorOfGlobalScaler);
    } else if (spec.kind == ScalerSpec::Kind::causal_patch && spec.stabilize_with_global) {
      const Near global = d::root(m.variance.value, m.variance.error, d::kFloor);
      const auto times = [&](long double factor) {
        return Near{global.value * factor, (global.error + 4 * d::kUnit * global.value) * factor};
      };
      carry.upper = times(std::pow(10.0L, static_cast<long double>(spec.exponent)));
      carry.lower = times(std::pow(10.0L, -static_cast<long double>(spec.exponent)));
      carry.lower.value = std::max(carry.lower.value, static_cast<long double>(0.1F));
    }
  }
  ScaledLane out;
  out.loc.assign(labels, Near{0, 0});
  out.scale.assign(labels, Near{1, 0});
  for (std::size_t at = labels; at < x.size(); at += patch) {
    for (std::size_t i = 0; i < patch; ++i) {
      if (spec.kind == ScalerSpec::Kind::global) continue;
      d::take(carry, x[at + i], mask[at + i] != 0);
      if (spec.kind != ScalerSpec::Kind::causal_step) continue;
      out.loc.push_back({carry.mean, carry.mean_error});
      out.scale.push_back(d::conclude(carry));
    }
    if (spec.kind == ScalerSpec::Kind::causal_step) continue;
    const bool global = spec.kind == ScalerSpec::Kind::global;
    const Near loc = global ? carry.loc : Near{carry.mean, carry.mean_error};
    const Near scale = global ? carry.scale : d::conclude(carry);  // A4.7: of the last step
    out.loc.insert(out.loc.end(), patch, loc);
    out.scale.insert(out.scale.end(), patch, scale);
  }
  return out;
}

}  // namespace toto::oracle
