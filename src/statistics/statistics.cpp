// SPDX-License-Identifier: Apache-2.0
#include "statistics/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace toto {
namespace {

double mean_of(const Samples& samples) {
  double sum = 0;
  for (std::size_t i = 0; i < samples.count; ++i) sum += samples.data[i * samples.stride];
  return sum / static_cast<double>(samples.count);
}

}  // namespace

float sample_mean(const Samples& samples) { return static_cast<float>(mean_of(samples)); }

float sample_std(const Samples& samples) {
  const double mean = mean_of(samples);
  double sum = 0;
  for (std::size_t i = 0; i < samples.count; ++i) {
    const double off = samples.data[i * samples.stride] - mean;
    sum += off * off;
  }
  return static_cast<float>(std::sqrt(sum / (static_cast<double>(samples.count) - 1)));
}

std::span<const float> sort_samples(const Samples& samples, std::span<float> scratch) {
  assert(scratch.size() >= samples.count);
  const std::span<float> sorted = scratch.first(samples.count);
  bool any_nan = false;
  for (std::size_t i = 0; i < samples.count; ++i) {
    sorted[i] = samples.data[i * samples.stride];
    any_nan = any_nan || std::isnan(sorted[i]);
  }
  if (any_nan) {
    std::fill(sorted.begin(), sorted.end(), std::numeric_limits<float>::quiet_NaN());
  } else {
    std::sort(sorted.begin(), sorted.end());
  }
  return sorted;
}

float interpolated_quantile(std::span<const float> sorted, float q) {
  assert(!sorted.empty() && q >= 0 && q <= 1);
  const float rank = q * static_cast<float>(sorted.size() - 1);
  const float floor = std::floor(rank);
  const float weight = rank - floor;
  const float a = sorted[static_cast<std::size_t>(floor)];
  const float b = sorted[static_cast<std::size_t>(std::ceil(rank))];
  return weight < 0.5F ? a + weight * (b - a) : b - (b - a) * (1.0F - weight);
}

float nearest_rank_quantile(std::span<const float> sorted, double q) {
  assert(!sorted.empty() && q >= 0 && q <= 1);
  const double rank = static_cast<double>(sorted.size() - 1) * q;
  return sorted[static_cast<std::size_t>(std::nearbyint(rank))];
}

}  // namespace toto
