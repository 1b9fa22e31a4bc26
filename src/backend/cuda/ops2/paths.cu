// SPDX-License-Identifier: Apache-2.0
// Coherent paths of Toto 2.0: how the steps of a lane go together, and the normal scores of its
// draws (backend/knot_paths.h).
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/correlations.cuh"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/knot_paths.h"

namespace toto::cuda {
namespace {

constexpr int kThreads = 128;
constexpr std::int32_t kAhead = 16;  // normals that are read before the first is needed

/// A thread block for each lane.
__global__ void __launch_bounds__(kThreads)
    neighbours(const LiveCall* call, DeviceArrays a, const float* quantiles, double* scores,
               float* rho) {
  begin_kernel();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= call->lanes) return;
  const LaneOfCall lane = lane_of_call(*call, index);
  const CallSlice& s = lane.s;
  const std::int32_t tokens = max(s.scored - 1 - s.patch, 0);
  const std::int64_t row = s.row + std::int64_t{lane.variate} * s.tokens;
  const std::int64_t first = (first_patch_of(s, lane.variate) + s.patch + 1) * a.patch;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  double* const own = scores + row * a.patch;
  float* const to = rho + (std::int64_t{s.lane} + lane.variate) * a.patch;
  for (std::int32_t cell = thread; cell < tokens * a.patch; cell += kThreads) {
    double knots[kQuantiles];
    const std::int64_t at = (row + cell / a.patch) * kQuantiles * a.patch + cell % a.patch;
#pragma unroll
    for (int q = 0; q < kQuantiles; ++q) {
      knots[q] = static_cast<double>(quantiles[at + std::int64_t{q} * a.patch]);
    }
    const auto x = static_cast<double>(a.values[first + cell]);
    own[cell] = a.mask[first + cell] == 0 ? NAN : paths::knot_score(knots, x);
  }
  __syncthreads();
  correlate<paths::Prior, kThreads>(own, tokens, a.patch, to);
  __syncthreads();
  if (thread == 0) {
    to[a.patch - 1] = paths::Prior::bounded(paths::rho_afterwards(to, a.patch));
  }
}

/// A thread block for each lane and step: the normals of its trajectories.
__global__ void normals(const LiveCall* call, KnotOutputs to) {
  begin_kernel();
  const auto index = static_cast<std::int32_t>(std::int64_t{blockIdx.x} / to.steps);
  const auto step = static_cast<std::int32_t>(std::int64_t{blockIdx.x} % to.steps);
  if (index >= call->lanes) return;
  const LaneOfCall lane = lane_of_call(*call, index);
  const CallSlice& s = lane.s;
  if (step >= s.horizon) return;
  float* const out =
      to.kept + ((std::int64_t{s.lane} + lane.variate) * to.steps + step) * to.trajectories;
  for (auto n = static_cast<std::int32_t>(threadIdx.x); n < s.trajectories; n += kThreads) {
    out[n] = static_cast<float>(paths::knot_normal(s, lane.variate, n, step));
  }
}

/// A thread for each trajectory of a lane: normals become a chain, in place.
__global__ void chains(const LiveCall* call, std::int32_t patch, const float* rho, KnotOutputs to) {
  begin_kernel();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  const auto n = static_cast<std::int32_t>(blockIdx.y * kThreads + threadIdx.x);
  if (index >= call->lanes) return;
  const LaneOfCall lane = lane_of_call(*call, index);
  const CallSlice& s = lane.s;
  if (n >= s.trajectories) return;
  const std::int64_t at = std::int64_t{s.lane} + lane.variate;
  const float* const own = rho + at * patch;
  float* out = to.kept + at * to.steps * to.trajectories + n;
  double z = 0;
  for (std::int32_t first = 0; first < s.horizon; first += kAhead) {
    float fresh[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (first + i < s.horizon) fresh[i] = out[std::int64_t{i} * to.trajectories];
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i, out += to.trajectories) {
      if (first + i >= s.horizon) break;
      const paths::ChainStep one = paths::chain_step(own, patch, first + i);
      z = one.rho * z + one.free * static_cast<double>(fresh[i]);
      *out = static_cast<float>(z);
    }
  }
}

}  // namespace

void knot_neighbours2(const Call& call, const SeriesArrays& a, const float* quantiles,
                      double* scores, float* rho, const Stream& s) {
  launch(neighbours, dim3(static_cast<unsigned>(call.lanes)), dim3(kThreads), 0, s, call.live,
         DeviceArrays(a), quantiles, scores, rho);
}

void knot_chains2(const Call& call, std::int32_t patch, const float* rho, const KnotOutputs& to,
                  const Stream& s) {
  const auto lanes = static_cast<unsigned>(call.lanes);
  launch(normals, dim3(lanes * static_cast<unsigned>(to.steps)), dim3(kThreads), 0, s, call.live,
         to);
  launch(chains, dim3(lanes, ceil_div(to.trajectories, kThreads)), dim3(kThreads), 0, s, call.live,
         patch, rho, to);
}

}  // namespace toto::cuda
