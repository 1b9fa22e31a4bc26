// SPDX-License-Identifier: Apache-2.0
// Spec A10, A11 on the device: distribution parameters and the next patch.
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/predict.h"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/statistics/distribution.cuh"
#include "core/draw.h"

namespace toto::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxRowsOfWarp = 4;
constexpr std::int32_t kFewDistributions = 512;  // rows
constexpr float kExtreme = 3.40282346638528859812e38F / 2;

/// A10: values that are not finite or of extreme size become 0.
__device__ float tame(float y) { return isfinite(y) && fabsf(y) < kExtreme ? y : 0.0F; }

/// A warp for each row.
__global__ void distribution_rows(float* raw, Rows count, std::int32_t components, bool mixture) {
  begin_kernel();
  const std::int32_t row = static_cast<std::int32_t>(blockIdx.x) * (kThreads / 32) +
                           static_cast<std::int32_t>(threadIdx.x) / 32;
  if (row >= live_rows(count)) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float* const df = raw + std::int64_t{row} * 4 * components;
  float* const scale = df + 2 * components;
  float* const weight = df + 3 * components;
  float highest = -INFINITY;
  for (std::int32_t k = lane; k < components; k += 32) {
    df[k] = degrees_of_freedom(df[k]);
    scale[k] = positive(scale[k]);
    if (!mixture) weight[k] = 1;
    highest = fmaxf(highest, weight[k]);
  }
  if (!mixture) return;
  highest = highest_of_lanes(highest);
  float total = 0;
  for (std::int32_t k = lane; k < components; k += 32) {
    weight[k] = expf(weight[k] - highest);
    total += weight[k];
  }
  total = sum_of_lanes(total);
  float again = 0;
  for (std::int32_t k = lane; k < components; k += 32) {
    weight[k] /= total;
    again += weight[k];
  }
  again = sum_of_lanes(again);
  for (std::int32_t k = lane; k < components; k += 32) weight[k] /= again;
}

/// The same for up to 32 components, one for each lane: several rows of a warp overlap where there
/// are many, and where there are few one is less to wait for.
template <int kRowsOfWarp>
__global__ void __launch_bounds__(kThreads)
    distribution_short_rows(float* raw, Rows count, std::int32_t components, bool mixture) {
  begin_kernel();
  const std::int32_t first = (static_cast<std::int32_t>(blockIdx.x) * (kThreads / 32) +
                              static_cast<std::int32_t>(threadIdx.x) / 32) *
                             kRowsOfWarp;
  const std::int32_t rows = min(kRowsOfWarp, live_rows(count) - first);
  const int k = static_cast<int>(threadIdx.x) % 32;
  const bool there = k < components;
  float* const at = raw + std::int64_t{first} * 4 * components + k;
  float df[kRowsOfWarp];
  float scale[kRowsOfWarp];
  float weight[kRowsOfWarp];
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const bool loads = there && i < rows;
    df[i] = loads ? at[4 * i * components] : 0;
    scale[i] = loads ? at[(4 * i + 2) * components] : 0;
    weight[i] = loads ? at[(4 * i + 3) * components] : -INFINITY;
  }
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    if (i >= rows) break;
    const float p = probability(weight[i], there);
    if (!there) continue;
    at[4 * i * components] = degrees_of_freedom(df[i]);
    at[(4 * i + 2) * components] = positive(scale[i]);
    at[(4 * i + 3) * components] = mixture ? p : 1;
  }
}

/// A thread for each step of each lane.
__global__ void predict_steps(const LiveBatch* live, const LiveBatch* shared, Prediction p) {
  begin_kernel();
  const std::int32_t patch = p.shape.patch;
  const std::int64_t item = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto lane = static_cast<std::int32_t>(item / patch);
  const auto step = static_cast<std::int32_t>(item % patch);
  if (lane >= live->lanes) return;
  float* const to = p.y + std::int64_t{lane} * patch + step;
  if (step >= p.shape.steps) {
    *to = 0;
    return;
  }
  const std::int32_t i = block_of_lane(*live, lane);
  const Block& b = live->blocks[i];
  const std::int32_t own = lane - b.lane;
  const std::int32_t variate = own % b.variates;
  const std::int64_t from = shared == nullptr ? lane : shared->blocks[i].lane + variate;
  const std::int32_t k = p.shape.components;
  const float* const at = p.params + (from * p.shape.steps + step) * 4 * k;
  float value = 0;
  if (p.mean) {
    for (std::int32_t j = 0; j < k; ++j) value += at[3 * k + j] * at[k + j];
  } else {
    const DrawAddress address{b.key, static_cast<std::uint32_t>(variate),
                              static_cast<std::uint32_t>(b.first_sample + own / b.variates),
                              static_cast<std::uint32_t>(b.first_step + step)};
    value = static_cast<float>(
        draw_mixture(at, at + k, at + 2 * k, at + 3 * k, 1, k, draw_words(b.seed, address)));
  }
  *to = tame(value * p.scale[from * patch + step] + p.loc[from * patch + step]);
}

__global__ void inject_lanes(const LiveBatch* live, std::int32_t patch, const float* covariates,
                             float* y) {
  begin_kernel();
  const auto lane = static_cast<std::int32_t>(blockIdx.x);
  if (lane >= live->lanes) return;
  const Block& b = live->blocks[block_of_lane(*live, lane)];
  const std::int32_t e = (lane - b.lane) % b.variates - (b.variates - b.exogenous);
  if (e < 0 || b.covariates < 0) return;
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < patch;
       i += static_cast<std::int32_t>(blockDim.x)) {
    y[std::int64_t{lane} * patch + i] = covariates[b.covariates + std::int64_t{e} * patch + i];
  }
}

__global__ void keep_steps(const LiveBatch* live, const LiveBatch* source, PatchShape shape,
                           const float* y, float* kept, KeptShape room) {
  begin_kernel();
  const auto lane = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  const auto step = static_cast<std::int32_t>(blockIdx.y);
  if (lane >= live->lanes) return;
  const std::int32_t i = block_of_lane(*live, lane);
  const Block& b = live->blocks[i];
  const std::int32_t own = lane - b.lane;
  const std::int64_t variate = source->blocks[i].lane + own % b.variates;
  const std::int32_t at = b.first_step + step;
  if (at >= room.horizon) return;
  kept[(variate * room.horizon + at) * room.samples + b.first_sample + own / b.variates] =
      y[std::int64_t{lane} * shape.patch + step];
}

/// A thread block for each step of each sequence.
__global__ void keep_parameter_steps(const LiveBatch* live, const LiveBatch* source,
                                     PatchShape shape, const float* params, const float* loc,
                                     const float* scale, float* out, std::int32_t horizon) {
  begin_kernel();
  const auto lane = static_cast<std::int32_t>(blockIdx.x);
  const auto step = static_cast<std::int32_t>(blockIdx.y);
  if (lane >= live->lanes) return;
  const std::int32_t i = block_of_lane(*live, lane);
  const Block& b = live->blocks[i];
  const std::int32_t variate = lane - b.lane;  // of trajectory 0
  const std::int32_t at = b.first_step + step;
  if (variate >= b.variates || b.first_sample != 0 || at >= horizon) return;
  const std::int32_t each = 4 * shape.components;
  const std::int64_t row = std::int64_t{source->blocks[i].lane + variate} * horizon + at;
  const float* const from = params + (std::int64_t{lane} * shape.steps + step) * each;
  float* const to = out + row * (each + 2);
  for (auto k = static_cast<std::int32_t>(threadIdx.x); k < each;
       k += static_cast<std::int32_t>(blockDim.x)) {
    to[k] = from[k];
  }
  if (threadIdx.x == 0) {
    to[each] = loc[std::int64_t{lane} * shape.patch + step];
    to[each + 1] = scale[std::int64_t{lane} * shape.patch + step];
  }
}

}  // namespace

void distribution(float* raw, Rows rows, std::int32_t components, bool mixture, const Stream& s) {
  constexpr int kWarps = kThreads / 32;
  if (components <= 32) {
    const bool few = rows.count <= kFewDistributions;
    launch(few ? distribution_short_rows<1> : distribution_short_rows<kMaxRowsOfWarp>,
           dim3(ceil_div(rows.count, kWarps * (few ? 1 : kMaxRowsOfWarp))), dim3(kThreads), 0, s,
           raw, rows, components, mixture);
  } else {
    launch(distribution_rows, dim3(ceil_div(rows.count, kWarps)), dim3(kThreads), 0, s, raw, rows,
           components, mixture);
  }
}

void predict(const Extent& batch, const LiveBatch* shared, const Prediction& p, const Stream& s) {
  launch(predict_steps, dim3(ceil_div(std::int64_t{batch.lanes} * p.shape.patch, kThreads)),
         dim3(kThreads), 0, s, batch.live, shared, p);
}

void inject(const Extent& batch, const PatchShape& shape, const float* covariates, float* y,
            const Stream& s) {
  launch(inject_lanes, dim3(static_cast<unsigned>(batch.lanes)), dim3(64), 0, s, batch.live,
         shape.patch, covariates, y);
}

void keep(const Extent& batch, const LiveBatch* source, const PatchShape& shape, const float* y,
          float* kept, const KeptShape& room, const Stream& s) {
  launch(keep_steps, dim3(ceil_div(batch.lanes, 128), static_cast<unsigned>(shape.steps)),
         dim3(128), 0, s, batch.live, source, shape, y, kept, room);
}

void keep_parameters(const Extent& batch, const LiveBatch* source, const PatchShape& shape,
                     const float* params, const float* loc, const float* scale, float* out,
                     std::int32_t horizon, const Stream& s) {
  launch(keep_parameter_steps,
         dim3(static_cast<unsigned>(batch.lanes), static_cast<unsigned>(shape.steps)), dim3(32), 0,
         s, batch.live, source, shape, params, loc, scale, out, horizon);
}

}  // namespace toto::cuda
