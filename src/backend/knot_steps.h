// SPDX-License-Identifier: Apache-2.0
// What is formed of the quantiles of one step (Ops2::knot_results), on the host and on a device.
#pragma once

#include "backend/knot_paths.h"
#include "backend/ops2.h"
#include "core/draw.h"
#include "statistics/knots.h"

namespace toto {

/// Numbers of a step in KnotOutputs::exact.
TOTO_HOST_DEVICE inline std::int32_t exact_stride(const KnotOutputs& to) {
  return 2 + to.levels.max;
}

/// One step of one lane of a batch.
struct KnotStep {
  const CallSlice& s;
  std::int32_t variate;
  std::int32_t step;  // of the forecast
  double loc, scale;  // of its patch
  Knots knots;

  [[nodiscard]] TOTO_HOST_DEVICE std::int64_t cell(const KnotOutputs& to) const {
    return (std::int64_t{s.lane} + variate) * to.steps + step;
  }

  TOTO_HOST_DEVICE void put_statistics(const KnotOutputs& to) const {
    float* const out = to.exact == nullptr ? nullptr : to.exact + cell(to) * exact_stride(to);
    for (std::int32_t i = 0; out != nullptr && i < exact_stride(to); ++i) {
      out[i] = exact(i, to.levels);
    }
    put_parameters(to);
  }
  /// Number i of exact_stride(): mean, deviation, then levels; 0 where nobody asked.
  [[nodiscard]] TOTO_HOST_DEVICE float exact(std::int32_t i, const Levels& levels) const {
    if (i == 0) return static_cast<float>(knot_mean(knots, s.tails));
    if (i == 1) return static_cast<float>(sqrt(knot_variance(knots, s.tails)));
    if (i - 2 >= s.level_count) return 0;
    return static_cast<float>(knot_quantile(knots, levels.values[s.level_first + i - 2], s.tails));
  }
  TOTO_HOST_DEVICE void put_parameters(const KnotOutputs& to) const {
    if (to.parameters != nullptr) {
      float* const out = to.parameters + cell(to) * 2;
      out[0] = static_cast<float>(loc);
      out[1] = static_cast<float>(scale);
    }
  }

  /// Trajectory n.
  TOTO_HOST_DEVICE void put_draw(const KnotOutputs& to, std::int32_t n) const {
    float* const out = to.kept + cell(to) * to.trajectories + n;
    if (to.mean) {
      *out = static_cast<float>(knot_mean(knots, s.tails));
      return;
    }
    if (to.coherent) {
      const auto z = static_cast<double>(*out);
      *out = static_cast<float>(paths::at_knot_score(knots, z, s.tails));
      return;
    }
    const DrawAddress address{s.key, static_cast<std::uint32_t>(variate),
                              static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(step)};
    const double level = quantile_level(draw_words(s.seed, address));
    *out = static_cast<float>(knot_quantile(knots, level, s.tails));
  }
  /// How many of those there are.
  [[nodiscard]] TOTO_HOST_DEVICE std::int32_t draws(const KnotOutputs& to) const {
    if (to.kept == nullptr || s.trajectories == 0) return 0;
    return to.mean ? 1 : s.trajectories;
  }
};

}  // namespace toto
