// SPDX-License-Identifier: Apache-2.0
// Statistics of trajectories at one step (spec A12): N samples that lie `stride` apart.
#pragma once

#include <cstddef>
#include <span>

namespace toto {

/// N >= 1 values, value i at data[i * stride].
struct Samples {
  const float* data = nullptr;
  std::size_t count = 0;
  std::size_t stride = 1;
};

/// The average: summed in double in the order of the samples, rounded once.
float sample_mean(const Samples& samples);

/// Standard deviation with divisor N-1, in double about the mean, rounded once. NaN for one sample.
float sample_std(const Samples& samples);

/// Copies the samples into `scratch` (N values) in ascending order; the result is what the two
/// functions below read. If any sample is NaN, all of them become NaN, and so does every quantile.
std::span<const float> sort_samples(const Samples& samples, std::span<float> scratch);

/// torch.quantile, level 0 <= q <= 1: rank q (N-1) in float32, linear interpolation by torch.lerp.
float interpolated_quantile(std::span<const float> sorted, float q);

/// What GluonTS reads off its sample forecasts: the sample of rank (N-1) q, halves rounded to even.
float nearest_rank_quantile(std::span<const float> sorted, double q);

/// torch's median of quantiles: the average of the two middle samples where N is even.
inline float sample_median(std::span<const float> sorted) {
  return interpolated_quantile(sorted, 0.5F);
}

}  // namespace toto
