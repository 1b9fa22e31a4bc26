// SPDX-License-Identifier: Apache-2.0
// Coherent paths of Toto 2.0: how the steps of a lane go together, the normal scores of its draws,
// and the draws (backend/knot_paths.h). Three kernels, or one where lanes are few, with the same
// bits.
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/knot_paths.cuh"

namespace toto::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kSegment = 8;  // steps that a thread chains at a time
constexpr int kSegments = 16;
constexpr int kRound = kSegments * kSegment;

/// A thread block for each lane. It waits before it lets the next begin: what comes next reads
/// the call before it waits. What was seen was there with the call.
__global__ void __launch_bounds__(kScoreThreads)
    neighbours(const LiveCall* call, DeviceArrays a, const float* quantiles, double* scores,
               float* rho) {
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= call->lanes) return await_previous();
  const LaneOfCall lane = lane_of_call(*call, index);
  const Scored scored(lane, a);
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  // Scores and correlations of a lane, in shared memory where there is one for each thread.
  __shared__ float near[kScoreThreads];
  __shared__ float near_rho[kScoreThreads];
  float* const own = scored.cells() <= kScoreThreads
                         ? near
                         : reinterpret_cast<float*>(scores) + scored.row() * a.patch;
  float* const to = rho + (std::int64_t{lane.s.lane} + lane.variate) * a.patch;
  float* const found = a.patch <= kScoreThreads ? near_rho : to;
  const float x = scored.seen(thread);
  const std::int64_t at = scored.quantile(thread);
  await_previous();
  let_next_begin();
  score_lane(scored, a.patch, quantiles, at, x, own);
  __syncthreads();
  if (thread >= kJoinThreads) return;
  const float last = join_lane(own, scored.tokens(), a.patch, found);
  if (found != to) {
    for (std::int32_t i = thread; i + 1 < a.patch; i += kJoinThreads) to[i] = found[i];
  }
  if (thread == 0) to[a.patch - 1] = last;
}

/// z [kSegment] as if that before the segment were 0, of normals, and what a z before it is
/// multiplied with in each. Of step i of the segment rho(i) and free(i), what is left of it.
template <typename Rho, typename Free>
__device__ void chain_segment(float (&z)[kSegment], float (&factor)[kSegment], const Rho& rho,
                              const Free& free) {
#pragma unroll
  for (int i = 0; i < kSegment; ++i) {
    const float r = rho(i);
    z[i] *= free(i);
    if (i > 0) z[i] = __fmaf_rn(r, z[i - 1], z[i]);
    factor[i] = i > 0 ? factor[i - 1] * r : r;
  }
}

/// z before segment `own`; `before` goes on from the z before a round to that at its end. Of each
/// segment z at its end as if that before it were 0, of trajectory k, and the factor there.
template <int kTrajectories>
__device__ float through_segments(float& before, const float (&factors)[kSegments],
                                  const float (&ends)[kSegments][kTrajectories], int own, int k) {
  float from = 0;
#pragma unroll
  for (int i = 0; i < kSegments; ++i) {
    if (i == own) from = before;
    before = __fmaf_rn(factors[i], before, ends[i][k]);
  }
  return from;
}

/// A warp has 32 trajectories of a lane and a segment of its steps, a thread block neighbouring
/// ones: it draws their normals and chains them as if z of the step before were 0; then what that z
/// adds. The first normals are drawn before `neighbours` has ended, which alone may come before.
__global__ void __launch_bounds__(32 * kSegments)
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
  __shared__ float ends[2][kSegments][32];  // z at the end of a segment that began with 0
  __shared__ float factors[2][kSegments];   // of the z before the segment, in that at its end
  float before = 0;                         // z before the round
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
    const float free = paths::root((1 - of_step) * (1 + of_step));
    float factor[kSegment];
    chain_segment(
        z, factor, [&](int i) { return __shfl_sync(~0U, of_step, i); },
        [&](int i) { return __shfl_sync(~0U, free, i); });
    ends[side][warp][k] = z[kSegment - 1];
    if (k == 0) factors[side][warp] = factor[kSegment - 1];
    __syncthreads();
    const float from = through_segments(before, factors[side], ends[side], warp, k);
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      if (first + i >= s.horizon || n >= s.trajectories) break;
      out[std::int64_t{first + i} * to.trajectories] = __fmaf_rn(factor[i], from, z[i]);
    }
  }
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

constexpr int kFewTrajectories = 4;            // of a thread block below
constexpr std::size_t kMostJoined = 24 << 10;  // bytes of scores and correlations

/// All three at once, where lanes are few: a thread block has some trajectories of a lane and finds
/// by itself how its steps go together. While half of its threads do, the others draw normals. It
/// comes behind form_steps: it reads the call, and what was seen, before it waits.
__global__ void __launch_bounds__(kScoreThreads)
    paths_at_once(const LiveCall* call, DeviceArrays a, const float* quantiles, KnotOutputs to) {
  let_next_begin();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  const auto from_trajectory = static_cast<std::int32_t>(blockIdx.y) * kFewTrajectories;
  if (index >= call->lanes) return await_previous();
  const LaneOfCall lane = lane_of_call(*call, index);
  const CallSlice& s = lane.s;
  if (from_trajectory >= s.trajectories) return await_previous();
  const Scored scored(lane, a);
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const bool joins = thread < kJoinThreads;
  const std::int32_t k = thread % kFewTrajectories;
  const std::int32_t n = from_trajectory + k;
  extern __shared__ float own_rho[];  // [patch], then scores [cells]
  __shared__ float z[kRound][kFewTrajectories + 1];
  __shared__ float knots[kRound][kQuantiles];
  __shared__ float of_step[kRound], free[kRound];
  __shared__ float ends[kSegments][kFewTrajectories];
  __shared__ float factors[kSegments];
  const float x = scored.seen(thread);
  const std::int64_t at = scored.quantile(thread);
  const std::int32_t forecast = (s.context - 1 - s.patch) * a.patch;  // the cell of the first step
  float last = 0;                                                     // rho
  float before = 0;                                                   // z before the round
  for (std::int32_t round = 0; round < s.horizon; round += kRound) {
    const std::int32_t steps = min(kRound, s.horizon - round);
    // Each of those that do not join has some levels of a step.
    constexpr int kOthers = kScoreThreads - kJoinThreads;
    constexpr int kApart = kOthers / kRound;
    constexpr int kOwn = (kQuantiles + kApart - 1) / kApart;
    const std::int32_t own_step = thread % kRound;
    const std::int32_t level = (thread - kJoinThreads) / kRound;
    const float* const knot = quantiles + scored.quantile(forecast + round + own_step);
    if (round == 0) {
      await_previous();
      score_lane(scored, a.patch, quantiles, at, x, own_rho + a.patch);
    }
    __syncthreads();
    if (joins) {
      if (round == 0) last = join_lane(own_rho + a.patch, scored.tokens(), a.patch, own_rho);
      if (thread < kRound) {
        const std::int32_t step = round + thread;
        const bool joined = step > 0 && step < s.horizon;
        const float r = !joined ? 0 : step < a.patch ? own_rho[step - 1] : last;
        of_step[thread] = r;
        free[thread] = paths::root((1 - r) * (1 + r));
      }
    } else {
      float own[kOwn];
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const int q = level + i * kApart;
        own[i] = own_step < steps && q < kQuantiles ? knot[q * a.patch] : 0;
      }
#pragma unroll 1
      for (std::int32_t i = thread - kJoinThreads; i < steps * kFewTrajectories; i += kOthers) {
        const std::int32_t step = i / kFewTrajectories;
        z[step][k] = knot_normal(s, lane.variate, n, round + step);
      }
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const int q = level + i * kApart;
        if (q < kQuantiles) knots[own_step][q] = own[i];
      }
    }
    __syncthreads();
    const std::int32_t segment = thread / kFewTrajectories;
    const std::int32_t first = segment * kSegment;
    const bool chains = segment < kSegments;
    float own[kSegment], factor[kSegment];
    if (chains) {
#pragma unroll
      for (int i = 0; i < kSegment; ++i) own[i] = first + i < steps ? z[first + i][k] : 0;
      chain_segment(
          own, factor, [&](int i) { return of_step[first + i]; },
          [&](int i) { return free[first + i]; });
      ends[segment][k] = own[kSegment - 1];
      if (k == 0) factors[segment] = factor[kSegment - 1];
    }
    __syncthreads();
    if (chains) {
      const float from = through_segments(before, factors, ends, segment, k);
#pragma unroll
      for (int i = 0; i < kSegment; ++i) z[first + i][k] = __fmaf_rn(factor[i], from, own[i]);
    }
    __syncthreads();
    if (n >= s.trajectories) continue;
    float* const out =
        to.kept + ((std::int64_t{s.lane} + lane.variate) * to.steps + round) * to.trajectories + n;
#pragma unroll 1
    for (std::int32_t i = thread / kFewTrajectories; i < steps;
         i += kScoreThreads / kFewTrajectories) {
      out[std::int64_t{i} * to.trajectories] = at_knot_score(knots[i], z[i][k], s.tails);
    }
  }
}

dim3 joined_grid(const Call& call, const KnotOutputs& to) {
  return dim3(static_cast<unsigned>(call.lanes), ceil_div(to.trajectories, kFewTrajectories));
}
/// Correlations of a lane, and scores, of which there are no more than rows have steps.
std::size_t joined_bytes(const Call& call, const SeriesArrays& a) {
  return (static_cast<std::size_t>(call.rows) + 1) * static_cast<std::size_t>(a.patch) *
         sizeof(float);
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
         dim3(32 * kSegments), 0, s, call.live, patch, rho, to);
}

bool has_knot_paths2(const Call& call, const SeriesArrays& a, const KnotOutputs& to,
                     const Stream& s) {
  const dim3 grid = joined_grid(call, to);
  return joined_bytes(call, a) <= kMostJoined &&
         grid.x * std::uint64_t{grid.y} <= 2 * static_cast<std::uint64_t>(s.processors);
}

void knot_paths2(const Call& call, const SeriesArrays& a, const float* quantiles,
                 const KnotOutputs& to, const Stream& s) {
  launch(paths_at_once, joined_grid(call, to), dim3(kScoreThreads), joined_bytes(call, a), s,
         call.live, DeviceArrays(a), quantiles, to);
}

void knot_path_draws2(const Call& call, std::int32_t patch, const float* quantiles,
                      const KnotOutputs& to, const Stream& s) {
  const auto lanes = static_cast<unsigned>(call.lanes);
  launch(draws, dim3(lanes * static_cast<unsigned>(to.steps)), dim3(kThreads), 0, s, call.live,
         patch, quantiles, to);
}

}  // namespace toto::cuda
