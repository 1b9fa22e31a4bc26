// SPDX-License-Identifier: Apache-2.0
// Coherent paths of Toto 2.0: how the steps of a lane go together, the normal scores of its draws,
// and the draws (backend/knot_paths.h). Normals are float32.
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/correlations.cuh"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/knot_paths.h"

namespace toto::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kScoreThreads = 512;
constexpr int kTests = 256;  // threads of a search
constexpr int kChainWarps = 16;
constexpr int kSegment = 8;  // steps that a warp draws and chains at a time
constexpr int kRound = kChainWarps * kSegment;

/// As paths::last_without(), by a thread block: kTests of its threads test one each at a time.
template <typename Test>
__device__ double last_without_of_block(const Test& test) {
  constexpr int kBits = 8;
  static_assert(kTests == 1 << kBits && 40 % kBits == 0);
  double low = 0;
  double width = 1;
#pragma unroll 1  // less code, which is fetched once for each search
  for (int i = 0; i < 40 / kBits; ++i) {
    width *= 1.0 / kTests;
    const bool without = threadIdx.x < kTests && !test(low + threadIdx.x * width);
    const int found = __syncthreads_count(static_cast<int>(without));
    low += static_cast<double>(found > 0 ? found - 1 : 0) * width;
  }
  return low;
}

/// paths::knot_score() of float32, from the nearer end. Differences are of halves, so finite.
__device__ float knot_score(const float (&knots)[kQuantiles], float x) {
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
  const auto beyond = [x](float outer, float inner) {
    const double step = knot_width(static_cast<double>(outer), static_cast<double>(inner));
    return step == 0 ? 0.5F : exp2f((outer * 0.5F - x * 0.5F) / static_cast<float>(step * 0.5));
  };
  bool upper = false;
  float parts = 0;  // of kParts, beyond x
  if (through > below) {
    const int twice = below + through + 1;
    upper = twice > kQuantiles + 1;
    parts = 0.5F * static_cast<float>(upper ? 2 * (kQuantiles + 1) - twice : twice);
  } else if (below == 0) {
    parts = beyond(knots[0], knots[1]);
  } else if (below == kQuantiles) {
    upper = true;
    parts = beyond(knots[kQuantiles - 1], knots[kQuantiles - 2]);
  } else {
    upper = below > kQuantiles / 2;
    const float middle = x * 0.5F;
    const float width = right * 0.5F - left * 0.5F;
    parts = upper ? static_cast<float>(kQuantiles - below) + (right * 0.5F - middle) / width
                  : static_cast<float>(below) + (middle - left * 0.5F) / width;
  }
  const float z = fmaxf(normcdfinvf(parts / kParts), static_cast<float>(-paths::kMaxScore));
  return upper ? -z : z;
}

/// A thread block for each lane. It waits before it lets the next begin: what comes next reads
/// the call before it waits. What was seen was there with the call.
__global__ void __launch_bounds__(kScoreThreads)
    neighbours(const LiveCall* call, DeviceArrays a, const float* quantiles, double* scores,
               float* rho) {
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= call->lanes) return await_previous();
  const LaneOfCall lane = lane_of_call(*call, index);
  const CallSlice& s = lane.s;
  const std::int32_t tokens = max(s.scored - 1 - s.patch, 0);
  const std::int32_t cells = tokens * a.patch;
  const std::int64_t row = s.row + std::int64_t{lane.variate} * s.tokens;
  const std::int64_t first = (first_patch_of(s, lane.variate) + s.patch + 1) * a.patch;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  // Scores and correlations of a lane, in shared memory where there is one for each thread.
  __shared__ double near[kScoreThreads];
  __shared__ float near_rho[kScoreThreads];
  double* const own = cells <= kScoreThreads ? near : scores + row * a.patch;
  float* const to = rho + (std::int64_t{s.lane} + lane.variate) * a.patch;
  float* const found = a.patch <= kScoreThreads ? near_rho : to;
  const auto seen = [&](std::int32_t cell) {
    const float x = a.values[first + cell];
    return a.mask[first + cell] != 0 ? x : NAN;
  };
  float x = thread < cells ? seen(thread) : NAN;
  await_previous();
  let_next_begin();
  for (std::int32_t cell = thread; cell < cells; cell += kScoreThreads) {
    float knots[kQuantiles];
    const std::int64_t at = (row + cell / a.patch) * kQuantiles * a.patch + cell % a.patch;
#pragma unroll
    for (int q = 0; q < kQuantiles; ++q) knots[q] = quantiles[at + std::int64_t{q} * a.patch];
    own[cell] = static_cast<double>(knot_score(knots, x));
    x = cell + kScoreThreads < cells ? seen(cell + kScoreThreads) : NAN;
  }
  __syncthreads();
  correlate<paths::Prior, kScoreThreads>(own, tokens, a.patch, found);
  __syncthreads();
  const double afterwards = paths::rho_afterwards(
      found, a.patch, [](const auto& test) { return last_without_of_block(test); });
  if (found != to) {
    for (std::int32_t i = thread; i + 1 < a.patch; i += kScoreThreads) to[i] = found[i];
  }
  if (thread == 0) to[a.patch - 1] = paths::Prior::bounded(afterwards);
}

/// paths::knot_normal().
__device__ float knot_normal(const CallSlice& s, std::int32_t variate, std::int32_t trajectory,
                             std::int32_t step) {
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

/// A warp has 32 trajectories of a lane and some of its steps, a thread block neighbouring ones: it
/// draws their normals and chains them as if z of the step before were 0; then what that z adds.
/// The first normals are drawn before `neighbours` has ended, which alone may come before.
__global__ void __launch_bounds__(32 * kChainWarps)
    chains(const LiveCall* call, std::int32_t patch, const float* rho, KnotOutputs to) {
  let_next_begin();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  const auto from_trajectory = static_cast<std::int32_t>(blockIdx.y) * 32;
  if (index >= call->lanes) return await_previous();
  const LaneOfCall lane = lane_of_call(*call, index);
  const CallSlice& s = lane.s;
  if (from_trajectory >= s.trajectories) return await_previous();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int k = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t n = from_trajectory + k;
  const std::int64_t at = std::int64_t{s.lane} + lane.variate;
  const float* const own = rho + at * patch;
  float* const out = to.kept + at * to.steps * to.trajectories + n;
  __shared__ float ends[2][kChainWarps][32];  // z at the end of a segment that began with 0
  __shared__ float factors[2][kChainWarps];   // of the z before the segment, in that at its end
  float before = 0;                           // z before the round
  int side = 0;
  for (std::int32_t round = 0; round < s.horizon; round += kRound, side ^= 1) {
    const std::int32_t first = round + warp * kSegment;
    float z[kSegment];
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      z[i] = first + i < s.horizon ? knot_normal(s, lane.variate, n, first + i) : 0;
    }
    if (round == 0) await_previous();
    // A lane for each step.
    const std::int32_t step = first + k;
    const bool joined = step > 0 && k < kSegment && step < s.horizon;
    const float of_step = joined ? own[step < patch ? step - 1 : patch - 1] : 0;
    const float free = sqrtf((1 - of_step) * (1 + of_step));
    float factor[kSegment];
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      const float r = __shfl_sync(~0U, of_step, i);
      z[i] *= __shfl_sync(~0U, free, i);
      if (i > 0) z[i] = __fmaf_rn(r, z[i - 1], z[i]);
      factor[i] = i > 0 ? factor[i - 1] * r : r;
    }
    ends[side][warp][k] = z[kSegment - 1];
    if (k == 0) factors[side][warp] = factor[kSegment - 1];
    __syncthreads();
    float from = 0;  // z before the segment
#pragma unroll
    for (int i = 0; i < kChainWarps; ++i) {
      if (i == warp) from = before;
      before = __fmaf_rn(factors[side][i], before, ends[side][i][k]);
    }
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      if (first + i >= s.horizon || n >= s.trajectories) break;
      out[std::int64_t{first + i} * to.trajectories] = __fmaf_rn(factor[i], from, z[i]);
    }
  }
}

/// paths::at_knot_score() of float32: from the nearer end, where a probability is exact. `knots` in
/// memory that all threads see.
__device__ float at_knot_score(const float* knots, float z, KnotTails tails) {
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
    return static_cast<float>(knot_tail(outer, knot(1), static_cast<double>(at)));
  }
  const int i = min(static_cast<int>(at) - 1, kQuantiles / 2);
  const double share = static_cast<double>(at) - (i + 1);
  if (share == 0) return static_cast<float>(knot(i));
  return static_cast<float>(knot(i) * (1 - share) + knot(i + 1) * share);
}

/// A thread block for each lane and step: scores become draws, in place.
__global__ void __launch_bounds__(kThreads)
    draws(const LiveCall* call, std::int32_t patch, const float* quantiles, KnotOutputs to) {
  let_next_begin();
  const auto index = static_cast<std::int32_t>(std::int64_t{blockIdx.x} / to.steps);
  const auto step = static_cast<std::int32_t>(std::int64_t{blockIdx.x} % to.steps);
  if (index >= call->lanes) return await_previous();
  const LaneOfCall lane = lane_of_call(*call, index);
  const CallSlice& s = lane.s;
  const std::int32_t token = s.context + step / patch - 1 - s.patch;
  if (step >= s.horizon || token < 0 || token >= s.tokens) return await_previous();
  const std::int64_t row = s.row + std::int64_t{lane.variate} * s.tokens + token;
  __shared__ float knots[kQuantiles];
  await_previous();
  if (threadIdx.x < kQuantiles) {
    knots[threadIdx.x] = quantiles[(row * kQuantiles + threadIdx.x) * patch + step % patch];
  }
  __syncthreads();
  float* const out =
      to.kept + ((std::int64_t{s.lane} + lane.variate) * to.steps + step) * to.trajectories;
  for (auto n = static_cast<std::int32_t>(threadIdx.x); n < s.trajectories; n += kThreads) {
    out[n] = at_knot_score(knots, out[n], s.tails);
  }
}

}  // namespace

void knot_neighbours2(const Call& call, const SeriesArrays& a, const float* quantiles,
                      double* scores, float* rho, const Stream& s) {
  launch(neighbours, dim3(static_cast<unsigned>(call.lanes)), dim3(kScoreThreads), 0, s, call.live,
         DeviceArrays(a), quantiles, scores, rho);
}

void knot_chains2(const Call& call, std::int32_t patch, const float* rho, const KnotOutputs& to,
                  const Stream& s) {
  launch(chains, dim3(static_cast<unsigned>(call.lanes), ceil_div(to.trajectories, 32)),
         dim3(32 * kChainWarps), 0, s, call.live, patch, rho, to);
}

void knot_path_draws2(const Call& call, std::int32_t patch, const float* quantiles,
                      const KnotOutputs& to, const Stream& s) {
  const auto lanes = static_cast<unsigned>(call.lanes);
  launch(draws, dim3(lanes * static_cast<unsigned>(to.steps)), dim3(kThreads), 0, s, call.live,
         patch, quantiles, to);
}

}  // namespace toto::cuda
