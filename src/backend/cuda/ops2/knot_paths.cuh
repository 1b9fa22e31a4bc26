// SPDX-License-Identifier: Apache-2.0
// What coherent paths of Toto 2.0 are made of on a device, in float32: scores of what was seen, how
// neighbours go together, normals, and quantiles of their levels (backend/knot_paths.h).
#pragma once

#include "backend/cuda/ops/correlations.cuh"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/knot_paths.h"

namespace toto::cuda {

constexpr int kScoreThreads = 512;  // of a thread block that scores what was seen
/// The first threads of a block, which find how neighbours go together, and search.
constexpr int kJoinThreads = 256;

__device__ inline void meet_joining() {
  asm volatile("bar.sync 1, %0;" ::"n"(kJoinThreads) : "memory");
}
/// Of how many of them this holds.
__device__ inline int count_joining(bool holds) {
  int count = 0;
  asm volatile(
      "{\n.reg .pred holds;\nsetp.ne.s32 holds, %1, 0;\n"
      "bar.red.popc.u32 %0, 1, %2, holds;\n}"
      : "=r"(count)
      : "r"(static_cast<int>(holds)), "n"(kJoinThreads)
      : "memory");
  return count;
}

/// As paths::last_without(), of multiples of 2^-24: each of the threads tests one at a time.
template <typename Test>
__device__ float last_without_of_threads(const Test& test) {
  constexpr int kBits = 8;
  static_assert(kJoinThreads == 1 << kBits && 24 % kBits == 0);
  float low = 0;
  float width = 1;
#pragma unroll 1  // less code, which is fetched once for each search
  for (int i = 0; i < 24 / kBits; ++i) {
    width *= 1.0F / kJoinThreads;
    const int found = count_joining(!test(low + static_cast<float>(threadIdx.x) * width));
    low += static_cast<float>(found > 0 ? found - 1 : 0) * width;
  }
  return low;
}

/// paths::knot_score() of float32, from the nearer end. Differences are of halves, so finite.
__device__ inline float knot_score(const float (&knots)[kQuantiles], float x) {
  if (isnan(x) || isnan(knots[kQuantiles - 1])) return NAN;  // NaN come last
  constexpr float kParts = kQuantiles + 1;
  int below = 0, through = 0;  // knots < x, and those <= x
  float left = 0, right = 0;   // the last of the former, the first beyond the latter
#pragma unroll
  for (int q = 0; q < kQuantiles; ++q) {
    below += knots[q] < x ? 1 : 0;
    through += knots[q] <= x ? 1 : 0;
    left = knots[q] < x ? knots[q] : left;
    right = knots[kQuantiles - 1 - q] > x ? knots[kQuantiles - 1 - q] : right;
  }
  bool upper = below > kQuantiles / 2;
  float parts = 0;  // of kParts, beyond x
  if (through > below) {
    const int twice = below + through + 1;
    upper = twice > kQuantiles + 1;
    parts = 0.5F * static_cast<float>(upper ? 2 * (kQuantiles + 1) - twice : twice);
  } else if (below == 0 || below == kQuantiles) {
    const float outer = 0.5F * knots[upper ? kQuantiles - 1 : 0];
    const float width = outer - 0.5F * knots[upper ? kQuantiles - 2 : 1];
    const bool point = width == 0 || !isfinite(width);
    parts = point ? 0.5F : exp2f((outer - 0.5F * x) / width);
  } else {
    const float near = 0.5F * (upper ? right : left);
    const float share = (near - 0.5F * x) / (0.5F * left - 0.5F * right);
    parts = static_cast<float>(upper ? kQuantiles - below : below) + (upper ? -share : share);
  }
  const float z = fmaxf(normcdfinvf(parts * (1 / kParts)), static_cast<float>(-paths::kMaxScore));
  return upper ? -z : z;
}

/// The cells of a lane that the forecasts of its context are scored by.
class Scored {
 public:
  __device__ Scored(const LaneOfCall& lane, const DeviceArrays& a)
      : a_(a),
        tokens_(max(lane.s.scored - 1 - lane.s.patch, 0)),
        first_((first_patch_of(lane.s, lane.variate) + lane.s.patch + 1) * a.patch),
        row_(lane.s.row + std::int64_t{lane.variate} * lane.s.tokens) {}

  [[nodiscard]] __device__ std::int32_t tokens() const { return tokens_; }
  [[nodiscard]] __device__ std::int32_t cells() const { return tokens_ * a_.patch; }
  /// The first of the lane's rows in a call.
  [[nodiscard]] __device__ std::int64_t row() const { return row_; }
  /// NaN where nothing was seen, or behind the last.
  [[nodiscard]] __device__ float seen(std::int32_t cell) const {
    if (cell >= cells()) return NAN;
    const float x = a_.values[first_ + cell];
    return a_.mask[first_ + cell] != 0 ? x : NAN;
  }
  /// Where the lowest quantile of a cell is, or of a step behind them.
  [[nodiscard]] __device__ std::int64_t quantile(std::int32_t cell) const {
    const std::int32_t token = cell / a_.patch;
    return ((row_ + token) * (kQuantiles - 1) + row_) * a_.patch + cell;
  }

 private:
  const DeviceArrays& a_;
  std::int32_t tokens_;
  std::int64_t first_, row_;
};

/// The scores [cells] of a lane by a thread block of kScoreThreads. `x` is what was seen in the
/// cell of each thread, `at` where its lowest quantile is.
__device__ inline void score_lane(const Scored& lane, std::int32_t patch, const float* quantiles,
                                  std::int64_t at, float x, float* scores) {
  const std::int32_t cells = lane.cells();
#pragma unroll 1
  for (auto cell = static_cast<std::int32_t>(threadIdx.x); cell < cells; cell += kScoreThreads) {
    float knots[kQuantiles];
#pragma unroll
    for (int q = 0; q < kQuantiles; ++q) knots[q] = quantiles[at + q * patch];
    scores[cell] = knot_score(knots, x);
    x = lane.seen(cell + kScoreThreads);
    at = lane.quantile(cell + kScoreThreads);
  }
}

/// rho [P] of a lane by the first kJoinThreads of a block, but for the last, which each of them
/// gets. scores [tokens][P] and rho in memory that they see.
__device__ inline float join_lane(const float* scores, std::int32_t tokens, std::int32_t patch,
                                  float* rho) {
  correlate<paths::Prior<float>, kJoinThreads>(scores, tokens, patch, rho, meet_joining);
  meet_joining();
  return paths::Prior<float>::bounded(paths::rho_afterwards<float>(
      rho, patch, [](const auto& test) { return last_without_of_threads(test); }));
}

/// paths::knot_normal().
__device__ inline float knot_normal(const CallSlice& s, std::int32_t variate,
                                    std::int32_t trajectory, std::int32_t step) {
  const PhiloxWords words = draw_words(
      s.seed, {s.key, static_cast<std::uint32_t>(variate), static_cast<std::uint32_t>(trajectory),
               static_cast<std::uint32_t>(step)});
  // The level is (n + 1/2) / 2^52, that from the other end the same of ~n.
  const std::uint64_t n = std::uint64_t{words.x[1]} << 20 | words.x[3] >> 12;
  const bool upper = words.x[1] >> 31 != 0;
  const std::uint64_t nearer = upper ? (std::uint64_t{1} << 52) - 1 - n : n;
  const float z = normcdfinvf(__fmaf_rn(__ull2float_rn(nearer), 0x1p-52F, 0x1p-53F));
  return upper ? -z : z;
}

/// paths::at_knot_score() of float32: from the nearer end, where a probability is exact. `knots` in
/// memory that all threads see.
__device__ inline float at_knot_score(const float* knots, float z, KnotTails tails) {
  if (isnan(z)) return z;
  const bool upper = z >= 0;
  const auto knot = [&](int i) {
    return static_cast<double>(knots[upper ? kQuantiles - 1 - i : i]);
  };
  constexpr float kParts = kQuantiles + 1;
  const float limited = fminf(fabsf(z), static_cast<float>(kMaxNormalScore));
  const float at = normcdff(-limited) * kParts;  // 1 at the outermost knot
  if (at < 1) {
    const double outer = knot(0);
    if (tails == KnotTails::clamped) return static_cast<float>(outer);
    if (tails == KnotTails::normal) {
      const double widths = static_cast<double>(limited) / knot_outer_score(kQuantiles) - 1;
      return static_cast<float>(knot_beyond(outer, knot(kQuantiles / 2), fmax(widths, 0.0)));
    }
    return static_cast<float>(knot_beyond(outer, knot(1), static_cast<double>(-log2f(at))));
  }
  const int i = min(static_cast<int>(at) - 1, kQuantiles / 2);
  const double share = static_cast<double>(at) - (i + 1);
  if (share == 0) return static_cast<float>(knot(i));
  return static_cast<float>(knot(i) * (1 - share) + knot(i + 1) * share);
}

}  // namespace toto::cuda
