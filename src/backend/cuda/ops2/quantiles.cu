// SPDX-License-Identifier: Apache-2.0
// What comes behind the network of Toto 2.0 (spec B8): quantiles in data units, what is formed of
// them, draws, and medians that are fed back. Coherent paths: paths.cu.
#include <cmath>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/runtime/warp.cuh"
#include "backend/knot_steps.h"

namespace toto::cuda {
namespace {

constexpr int kWarps = 4;  // rows of a thread block

__device__ bool before(float x, float y) { return x < y || (isnan(y) && !isnan(x)); }

/// Of which step a row and a place in its patch are.
struct StepAt {
  std::int32_t patch;  // of the request's arrays
  std::int32_t step;
  bool there;  // it was asked for

  __device__ StepAt(const Token& t, const DeviceArrays& a, std::int32_t i)
      : patch(t.patch() + 1),
        step((patch - t.s.context) * a.patch + i),
        there(patch >= t.s.context && step < t.s.horizon && i < a.patch) {}
};

/// Warps of a token's thread block: where tokens are few, and where processors have several at
/// once.
constexpr int kStepWarps = 12;
constexpr int kManyStepWarps = 4;

/// A thread block for each token: quantiles [9][P] of the patch after it, if it is to `Form` them,
/// a warp for each level, a lane for each 32nd step. What is infinite becomes the lowest or highest
/// finite value of its level in the patch. Then what is wanted of the steps, a warp for each
/// number: they go to where they are wanted by neighbouring threads, from shared memory where there
/// is `room`, for that may be the host. Every thread has little to do: code that runs once comes
/// slowly. It waits before it lets the next begin, so all kernels behind it may look up the call
/// before they wait.
template <bool Form>
__global__ void __launch_bounds__(32 * kStepWarps)
    form_steps(const LiveCall* call, bool known, DeviceArrays a, const float* raw, float* y,
               KnotOutputs to, bool room) {
  extern __shared__ float collected[];  // [32][stride]
  __shared__ float unsorted[kQuantiles][32];
  __shared__ double sorted[32][kQuantiles];
  begin_lookups(known);
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  if (row >= call->rows) return end_lookups(known);
  const Token t = token_of(*call, row);
  const std::int64_t first = first_patch_of(t.s, t.variate);
  const std::int64_t units = first + units_of(t.s, t.patch() + 1);
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t warp = thread / 32;
  const std::int32_t lane = thread % 32;
  const auto warps = static_cast<std::int32_t>(blockDim.x) / 32;
  const std::int64_t at = std::int64_t{row} * kQuantiles * a.patch;
  const std::int32_t stride = exact_stride(to);
  // Of a step only what somebody asked for is written: for other words the host does not wait, and
  // it takes them for something else in another forecast. Which number the first word of a thread
  // is, and how much further the next.
  const std::int32_t used = 2 + t.s.level_count;
  const std::int32_t first_number = thread % stride;
  const std::int32_t further = 32 * warps % stride;
  const bool wanted = to.exact != nullptr || to.parameters != nullptr;
  end_lookups(known);
  float loc = 0, scale = 0, lowest = 0, highest = 0;
  if (Form) {
    loc = a.loc[units];
    scale = a.scale[units];
    const float* const bounds = a.bounds + std::int64_t{2} * (t.s.lane + t.variate);
    lowest = bounds[0];
    highest = bounds[1];
  }
  for (std::int32_t i0 = 0; i0 < a.patch; i0 += 32) {
    const std::int32_t i = i0 + lane;
    const bool inside = i < a.patch;
    if (i0 > 0) __syncthreads();  // the steps before have been read
#pragma unroll 1
    for (std::int32_t q = warp; q < kQuantiles; q += warps) {
      const std::int64_t level = at + std::int64_t{q} * a.patch;
      if (!Form) {
        if (inside) sorted[lane][q] = static_cast<double>(y[level + i]);
        continue;
      }
      float v = 0, low = INFINITY, high = -INFINITY;
      bool finite = true;
      for (std::int32_t j = lane; j < a.patch; j += 32) {
        const float x = sinhf(raw[level + j]) * scale + loc;
        v = j == i ? x : v;
        finite = finite && !isinf(x);
        if (!isfinite(x)) continue;
        low = fminf(low, x);
        high = fmaxf(high, x);
      }
      if (__any_sync(~0U, !finite)) {
        low = -highest_of_lanes(-low);
        high = highest_of_lanes(high);
      }
      if (isinf(v)) v = v > 0 ? high : low;
      v = v < lowest ? lowest : v;  // NaN stays NaN
      v = v > highest ? highest : v;
      unsorted[q][lane] = v;
    }
    if (Form) __syncthreads();
#pragma unroll 1
    for (std::int32_t q = warp; Form && inside && q < kQuantiles; q += warps) {
      const float v = unsorted[q][lane];  // in order; NaN after all numbers
      std::int32_t rank = 0;
#pragma unroll 3
      for (std::int32_t p = 0; p < kQuantiles; ++p) {
        const float other = unsorted[p][lane];
        const bool comes_first = p < q ? !before(v, other) : before(other, v);
        rank += comes_first && p != q ? 1 : 0;
      }
      sorted[lane][rank] = static_cast<double>(v);
      y[at + std::int64_t{rank} * a.patch + i] = v;
    }
    if (!wanted) continue;
    __syncthreads();
    const StepAt of(t, a, i);
    const std::int64_t patch = first + of.patch;
    const KnotStep step{t.s,
                        t.variate,
                        of.step,
                        static_cast<double>(a.loc[patch]),
                        static_cast<double>(a.scale[patch]),
                        Knots(sorted[lane], kQuantiles)};
    if (of.there && warp == warps - 1 && to.parameters != nullptr) {
      step.put_parameters(to);
      __threadfence_system();  // the host waits for other numbers alone, which come after these
    }
    if (to.exact == nullptr) continue;
    if (!room && to.parameters != nullptr) __syncthreads();
    float* const out = to.exact + (step.cell(to) - lane) * stride;  // of the first lane
    float* const rows = room ? collected : out;
#pragma unroll 1
    for (std::int32_t n = warp; of.there && n < used; n += warps) {
      rows[lane * stride + n] = step.exact(n, to.levels);
    }
    if (!room) continue;
    const std::int32_t all = __popc(__ballot_sync(~0U, of.there)) * stride;  // the first lanes
    __syncthreads();
    std::int32_t n = first_number;
    for (std::int32_t j = thread; j < all; j += 32 * warps) {
      if (n < used) out[j] = collected[j];
      n += further;
      if (n >= stride) n -= stride;
    }
  }
}

/// A thread block for each token and step, a thread for each trajectory. It comes behind form_steps
/// and reads the call before it waits.
__global__ void knot_draws(const LiveCall* call, DeviceArrays a, const float* quantiles,
                           KnotOutputs to) {
  let_next_begin();
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  if (row >= call->rows) return await_previous();
  const Token t = token_of(*call, row);
  await_previous();
  const auto i = static_cast<std::int32_t>(blockIdx.y);
  const StepAt of(t, a, i);
  if (!of.there) return;
  double knots[kQuantiles];
#pragma unroll
  for (int q = 0; q < kQuantiles; ++q) {
    knots[q] = static_cast<double>(quantiles[(std::int64_t{row} * kQuantiles + q) * a.patch + i]);
  }
  const KnotStep step{t.s, t.variate, of.step, 0, 0, knots};
  const std::int32_t draws = step.draws(to);
  for (auto n = static_cast<std::int32_t>(threadIdx.x); n < draws;
       n += static_cast<std::int32_t>(blockDim.x)) {
    step.put_draw(to, n);
  }
}

/// A warp for each token: the median of targets becomes what was observed.
__global__ void feed_back(const LiveCall* call, DeviceArrays a, const float* quantiles) {
  begin_kernel();
  const auto row =
      static_cast<std::int32_t>(blockIdx.x) * kWarps + static_cast<std::int32_t>(threadIdx.x) / 32;
  if (row >= call->rows) return;
  const Token t = token_of(*call, row);
  if (t.variate >= t.s.targets || t.patch() + 1 < t.s.context) return;
  const std::int64_t to = (first_patch_of(t.s, t.variate) + t.patch() + 1) * a.patch;
  const float* const median =
      quantiles + (std::int64_t{row} * kQuantiles + kQuantiles / 2) * a.patch;
  for (std::int32_t i = threadIdx.x % 32; i < a.patch; i += 32) {
    a.values[to + i] = median[i];
    a.mask[to + i] = 1;
  }
}

dim3 rows_grid(const Call& call) { return dim3(ceil_div(call.rows, kWarps)); }
constexpr unsigned kRowThreads = 32 * kWarps;

template <bool Form>
void launch_steps(const Call& call, const SeriesArrays& a, const float* raw, float* y,
                  const KnotOutputs& to, const Stream& s) {
  constexpr std::size_t kMost = 32 << 10;  // that needs no leave
  const std::size_t bytes = 32 * static_cast<std::size_t>(exact_stride(to)) * sizeof(float);
  const bool room = to.exact != nullptr && bytes <= kMost;
  const int warps = call.rows <= 2 * s.processors ? kStepWarps : kManyStepWarps;
  launch(form_steps<Form>, dim3(static_cast<unsigned>(call.rows)),
         dim3(32 * static_cast<unsigned>(warps)), room ? bytes : 0, s, call.live, s.calls_known(),
         DeviceArrays(a), raw, y, to, room);
}

}  // namespace

void quantiles2(const Call& call, const SeriesArrays& a, const float* raw, float* y,
                const KnotOutputs& to, const Stream& s) {
  launch_steps<true>(call, a, raw, y, to, s);
}

void knot_results2(const Call& call, const SeriesArrays& a, const float* quantiles,
                   const KnotOutputs& to, const Stream& s) {
  if (to.exact != nullptr || to.parameters != nullptr) {
    launch_steps<false>(call, a, nullptr, const_cast<float*>(quantiles), to, s);
  }
  if (to.kept != nullptr && to.coherent && !to.mean) {
    knot_path_draws2(call, a.patch, quantiles, to, s);
  } else if (to.kept != nullptr) {
    const dim3 grid(static_cast<unsigned>(call.rows), static_cast<unsigned>(a.patch));
    launch(knot_draws, grid, dim3(128), 0, s, call.live, DeviceArrays(a), quantiles, to);
  }
}

void feed_back2(const Call& call, const SeriesArrays& a, const float* quantiles, const Stream& s) {
  launch(feed_back, rows_grid(call), dim3(kRowThreads), 0, s, call.live, DeviceArrays(a),
         quantiles);
}

}  // namespace toto::cuda
