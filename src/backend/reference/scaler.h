// SPDX-License-Identifier: Apache-2.0
// The scalers of spec A4 in float64, step by step: shared by every host backend, since the order of
// these sums is part of the result. The CUDA backend sums squares in groups of steps, and agrees to
// one ulp of float32 (backend/cuda/ops/scaler.cu).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/backend.h"

namespace toto::scaler {

inline constexpr double kMinimumScale = 0.1;          // inside the root: a floor of sqrt(0.1)
inline constexpr double kMinimumScaleGlobal = 0.001;  // of StdMeanScaler

/// One lane's tokens: x and mask [tokens][P]; label tokens first.
template <typename T>
struct Lane {
  const T* x;
  const std::uint8_t* mask;
  T* scaled;
  T* loc;
  T* scale;
  std::int32_t tokens;
  std::int32_t labels;
  std::int32_t context;
};

/// loc and scale of the last token, [P] each.
template <typename T>
void copy_last(const Lane<T>& lane, std::int32_t patch, T* loc, T* scale) {
  const std::ptrdiff_t from = std::ptrdiff_t{lane.tokens - 1} * patch;
  std::copy_n(lane.loc + from, patch, loc);
  std::copy_n(lane.scale + from, patch, scale);
}

inline double nan_to_zero(double v) {
  if (std::isnan(v)) return 0;
  return std::clamp(v, -std::numeric_limits<double>::max(), std::numeric_limits<double>::max());
}

struct Moments {
  double mean;
  double variance;  // population
};

/// Over the valid steps of the context (A4.5).
template <typename T>
Moments context_moments(const Lane<T>& lane, std::int32_t patch) {
  const std::int32_t first = lane.labels * patch;
  const std::int32_t last = first + std::min(lane.context, lane.tokens - lane.labels) * patch;
  double count = 0;
  double sum = 0;
  for (std::int32_t t = first; t < last; ++t) {
    if (lane.mask[t] == 0) continue;
    count += 1;
    sum += static_cast<double>(lane.x[t]);
  }
  count = std::max(count, 1.0);
  const double mean = nan_to_zero(sum / count);
  double squares = 0;
  for (std::int32_t t = first; t < last; ++t) {
    if (lane.mask[t] == 0) continue;
    const double d = static_cast<double>(lane.x[t]) - mean;
    squares += d * d;
  }
  return {mean, squares / count};
}

template <typename T>
void start(const Lane<T>& lane, const ScalerSpec& spec, ScalerState& state) {
  state = {};
  state.upper = std::numeric_limits<double>::infinity();
  if (spec.kind == ScalerSpec::Kind::causal_patch && spec.stabilize_with_global) {
    const double global = std::sqrt(context_moments(lane, spec.patch).variance + kMinimumScale);
    state.lower = std::max(static_cast<double>(static_cast<float>(kMinimumScale)),
                           global * std::pow(10.0, -spec.exponent));
    state.upper = global * std::pow(10.0, spec.exponent);
  } else if (spec.kind == ScalerSpec::Kind::global) {
    const Moments m = context_moments(lane, spec.patch);
    state.loc = m.mean;
    state.scale = std::sqrt(m.variance + kMinimumScaleGlobal);
  }
}

/// A4.1-4.3: takes one value in.
inline void advance(double x, bool valid, ScalerState& state) {
  const double previous = state.mean;
  if (valid) {
    state.count += 1;
    state.sum += x;
  }
  state.mean = state.sum / std::max(state.count, 1.0);
  if (valid) state.m2 += (x - previous) * (x - state.mean);
}

/// A4.4-4.5: leaves the statistics up to here in state.loc, state.scale.
inline void conclude(ScalerState& state) {
  const double variance = state.m2 / std::max(state.count - 1, 1.0);
  const double scale = std::sqrt(variance + kMinimumScale);
  state.loc = state.mean;
  state.scale = std::min(std::max(scale, state.lower), state.upper);
}

template <typename T>
void run(const Lane<T>& lane, const ScalerSpec& spec, bool fresh, ScalerState& state) {
  const std::int32_t patch = spec.patch;
  if (fresh) start(lane, spec, state);
  std::fill_n(lane.scaled, lane.labels * patch, T{0});
  std::fill_n(lane.loc, lane.labels * patch, T{0});
  std::fill_n(lane.scale, lane.labels * patch, T{1});
  for (std::int32_t token = lane.labels; token < lane.tokens; ++token) {
    const std::int32_t at = token * patch;
    const auto take = [&](std::int32_t i) {
      advance(static_cast<double>(lane.x[at + i]), lane.mask[at + i] != 0, state);
    };
    if (spec.kind == ScalerSpec::Kind::causal_step) {
      for (std::int32_t i = 0; i < patch; ++i) {
        take(i);
        conclude(state);
        lane.loc[at + i] = static_cast<T>(state.loc);
        lane.scale[at + i] = static_cast<T>(state.scale);
      }
    } else {
      if (spec.kind == ScalerSpec::Kind::causal_patch) {  // A4.7: the patch's last step for all
        for (std::int32_t i = 0; i < patch; ++i) take(i);
        conclude(state);
      }
      std::fill_n(lane.loc + at, patch, static_cast<T>(state.loc));
      std::fill_n(lane.scale + at, patch, static_cast<T>(state.scale));
    }
    for (std::int32_t t = at; t < at + patch; ++t) {
      lane.scaled[t] = (lane.x[t] - lane.loc[t]) / lane.scale[t];
    }
  }
}

}  // namespace toto::scaler
