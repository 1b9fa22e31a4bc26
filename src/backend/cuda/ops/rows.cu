// SPDX-License-Identifier: Apache-2.0
// Operations on single rows: norm, labels, the last tokens, rotary embedding.
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/norm.cuh"
#include "backend/cuda/ops/rotary.cuh"
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/runtime/typed.h"
#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda {
namespace {

constexpr int kWarps = 4;

/// A warp for each row.
template <typename T>
__global__ void norm_rows(const float* x, const float* __restrict__ gain, T* y, Rows count,
                          std::int32_t dim, std::int32_t pitch) {
  begin_kernel();
  const std::int32_t row =
      static_cast<std::int32_t>(blockIdx.x) * kWarps + static_cast<std::int32_t>(threadIdx.x) / 32;
  if (row >= live_rows(count)) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* const in = x + std::int64_t{row} * dim;
  float squares = 0;
  for (std::int32_t i = lane; i < dim; i += 32) squares = __fmaf_rn(in[i], in[i], squares);
  const float root = sqrtf(sum_of_lanes(squares) / static_cast<float>(dim) + 1e-8F);
  for (std::int32_t i = lane; i < pitch; i += 32) {
    put(y, std::int64_t{row} * pitch + i, i < dim ? in[i] / root * gain[i] : 0.0F);
  }
}

/// What a product of a normed row of kNormedWidth takes (norm.cuh): the row times the gain, and the
/// inverse of its root.
template <typename T>
__global__ void gain_rows(const float* x, const float* __restrict__ gain, T* y, float* inverse,
                          Rows count) {
  constexpr int kFours = kNormedWidth / 128;
  begin_kernel();
  const std::int32_t row =
      static_cast<std::int32_t>(blockIdx.x) * kWarps + static_cast<std::int32_t>(threadIdx.x) / 32;
  if (row >= live_rows(count)) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float4 v[kFours];
  float4 g[kFours];
  load_part(v, x + std::int64_t{row} * kNormedWidth);
  load_part(g, gain);
  const float own = norm_part(v, g);
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    put_four(y + std::int64_t{row} * kNormedWidth + i * 128 + lane * 4, v[i]);
  }
  if (lane == 0) inverse[row] = own;
}

__global__ void put_labels(const LiveBatch* live, const float* labels, float* hidden,
                           std::int32_t dim) {
  begin_kernel();
  const auto lane = static_cast<std::int32_t>(blockIdx.x);
  if (lane >= live->lanes) return;
  const Block& b = live->blocks[block_of_lane(*live, lane)];
  if (b.labels == 0) return;
  const std::int32_t own = lane - b.lane;
  const bool exogenous = own % b.variates >= b.variates - b.exogenous;
  const float* const from = labels + (exogenous ? dim : 0);
  float* const to = hidden + (std::int64_t{b.row} + std::int64_t{own} * b.tokens) * dim;
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < dim;
       i += static_cast<std::int32_t>(blockDim.x)) {
    to[i] = from[i];
  }
}

constexpr std::int32_t kCopyThreads = 128;
constexpr std::int32_t kCopied = 4;  // columns of a thread, asked for at once

/// Blocks of threads for each lane: rows may have thousands of columns.
__global__ void __launch_bounds__(kCopyThreads)
    last_rows(const LiveBatch* live, const float* x, float* y, std::int32_t dim,
              std::int32_t columns) {
  begin_kernel();
  const auto lane = static_cast<std::int32_t>(blockIdx.x);
  if (lane >= live->lanes) return;
  const Block& b = live->blocks[block_of_lane(*live, lane)];
  const std::int64_t row = b.row + std::int64_t{lane - b.lane} * b.tokens + b.tokens - 1;
  const auto first = static_cast<std::int32_t>(blockIdx.y) * kCopied * kCopyThreads +
                     static_cast<std::int32_t>(threadIdx.x);
  float own[kCopied];
#pragma unroll
  for (std::int32_t k = 0; k < kCopied; ++k) {
    const std::int32_t i = first + k * kCopyThreads;
    own[k] = i < columns ? x[row * dim + i] : 0;
  }
#pragma unroll
  for (std::int32_t k = 0; k < kCopied; ++k) {
    const std::int32_t i = first + k * kCopyThreads;
    if (i < columns) y[std::int64_t{lane} * columns + i] = own[k];
  }
}

/// A block of threads for each row (spec A8): angle by channel / 2, factor by channel mod d/2.
__global__ void rotate_rows(const LiveBatch* live, RotaryTables rotary, float* qkv, float* keys,
                            float* values, std::int32_t heads, std::int32_t d) {
  begin_kernel();
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  if (row >= live->rows) return;
  const Block& b = live->blocks[block_of_row(*live, row)];
  const std::int32_t item = row - b.row;
  const std::int32_t lane = item / b.tokens;
  const std::int32_t token = item % b.tokens;
  const std::int32_t half = d / 2;
  const std::int64_t t = b.position + token;
  const float* const cosine = rotary.cosine + t * half;
  const float* const sine = rotary.sine + t * half;
  const float* const factor = rotary.factor + (t - b.centre + rotary.positions) * half;
  float* const from = qkv + std::int64_t{row} * 3 * heads * d;
  const std::int64_t slot =
      b.suffix_at + (std::int64_t{lane} * heads * b.suffix_capacity + b.suffix + token) * d;
  const std::int64_t stride = std::int64_t{b.suffix_capacity} * d;  // from head to head
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < heads * half;
       i += static_cast<std::int32_t>(blockDim.x)) {
    const std::int32_t h = i / half;
    const std::int32_t m = i % half;
    const std::int32_t even = 2 * m;
    const float fa = factor[even % half];
    const float fb = factor[(even + 1) % half];
    const float c = cosine[m];
    const float s = sine[m];
    float2* const query = reinterpret_cast<float2*>(from + h * d + even);
    const float2 q = *query;
    *query = rotate_pair(q, c, s, fa, fb);
    const float2 k = *reinterpret_cast<const float2*>(from + (heads + h) * d + even);
    const std::int64_t to = slot + h * stride + even;
    *reinterpret_cast<float2*>(keys + to) = rotate_pair(k, c, s, 1.0F / fa, 1.0F / fb);
    *reinterpret_cast<float2*>(values + to) =
        *reinterpret_cast<const float2*>(from + (2 * heads + h) * d + even);
  }
}

/// The same where a thread can have four channels of each part: their factors are neighbours too.
__global__ void rotate_fours(const LiveBatch* live, RotaryTables rotary, float* qkv, float* keys,
                             float* values, std::int32_t heads, std::int32_t d) {
  begin_kernel();
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  if (row >= live->rows) return;
  const std::int32_t at = static_cast<std::int32_t>(threadIdx.x) * 4;
  const std::int32_t width = heads * d;
  float* const from = qkv + std::int64_t{row} * 3 * width + at;
  const float4 q = *reinterpret_cast<const float4*>(from);
  const float4 k = *reinterpret_cast<const float4*>(from + width);
  const float4 v = *reinterpret_cast<const float4*>(from + 2 * width);
  const Block& b = live->blocks[block_of_row(*live, row)];
  const std::int32_t item = row - b.row;
  const std::int32_t lane = item / b.tokens;
  const std::int32_t token = item % b.tokens;
  const std::int32_t h = at / d;
  const std::int32_t e = at % d;
  const Rotation rotation(rotary, b, token, e, d);
  const std::int64_t to =
      b.suffix_at + ((std::int64_t{lane} * heads + h) * b.suffix_capacity + b.suffix + token) * d +
      e;
  *reinterpret_cast<float4*>(from) = rotation(q);
  *reinterpret_cast<float4*>(keys + to) = rotation.of_key()(k);
  *reinterpret_cast<float4*>(values + to) = v;
}

}  // namespace

void rms_norm(const float* x, const float* gain, const View& y, Rows rows, const Stream& s) {
  with_type(y, [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    launch(norm_rows<T>, dim3(ceil_div(rows.count, kWarps)), dim3(32 * kWarps), 0, s, x, gain, out,
           rows, y.width, static_cast<std::int32_t>(y.stride()));
  });
}

void norm_later(const float* x, const float* gain, const View& y, float* inverse, Rows rows,
                const Stream& s) {
  with_type(y, [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    launch(gain_rows<T>, dim3(ceil_div(rows.count, kWarps)), dim3(32 * kWarps), 0, s, x, gain, out,
           inverse, rows);
  });
}

void set_labels(const Extent& batch, const float* labels, float* hidden, std::int32_t dim,
                const Stream& s) {
  launch(put_labels, dim3(static_cast<unsigned>(batch.lanes)), dim3(128), 0, s, batch.live, labels,
         hidden, dim);
}

void gather_last(const Extent& batch, const float* x, float* y, std::int32_t dim,
                 std::int32_t columns, const Stream& s) {
  const dim3 grid(static_cast<unsigned>(batch.lanes), ceil_div(columns, kCopied * kCopyThreads));
  launch(last_rows, grid, dim3(kCopyThreads), 0, s, batch.live, x, y, dim, columns);
}

void rotary_append(const Extent& batch, const RotaryTables& rotary, float* qkv, const KvLayer& kv,
                   std::int32_t heads, std::int32_t d, const Stream& s) {
  const dim3 grid(static_cast<unsigned>(batch.rows));
  float* const keys = typed<float>(kv.keys);
  float* const values = typed<float>(kv.values);
  const std::int32_t fours = heads * d / 4;
  if (d % 8 == 0 && fours <= 1024) {
    launch(rotate_fours, grid, dim3(static_cast<unsigned>(fours)), 0, s, batch.live, rotary, qkv,
           keys, values, heads, d);
  } else {
    launch(rotate_rows, grid, dim3(384), 0, s, batch.live, rotary, qkv, keys, values, heads, d);
  }
}

}  // namespace toto::cuda
