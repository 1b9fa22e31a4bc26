// SPDX-License-Identifier: Apache-2.0
// Operations on rows of Toto 2.0 (spec B3, B7): SiLU, norms, the rows that go on.
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/ops2/row_squares.cuh"
#include "backend/cuda/runtime/typed.h"
#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda {
namespace {

constexpr int kWarps = 4;

__global__ void silu_rows(float* y, Rows count, bool known, std::int32_t width) {
  const std::int64_t cells = std::int64_t{begin_with_rows(count, known)} * width;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < cells;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    y[i] = silu(y[i]);
  }
}

/// A warp for each row; what lies beyond `dim` in a row of y becomes zero.
template <typename T>
__global__ void norm_rows(const float* x, T* y, Rows count, bool known, std::int32_t dim,
                          std::int32_t pitch, float epsilon) {
  const std::int32_t rows = begin_with_rows(count, known);
  const auto row =
      static_cast<std::int32_t>(blockIdx.x) * kWarps + static_cast<std::int32_t>(threadIdx.x) / 32;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* const in = x + std::int64_t{row} * dim;
  float squares = 0;
  for (std::int32_t i = lane; i < dim; i += 32) squares = __fmaf_rn(in[i], in[i], squares);
  const float root = sqrtf(sum_of_lanes(squares) / static_cast<float>(dim) + epsilon);
  for (std::int32_t i = lane; i < pitch; i += 32) {
    put(y, std::int64_t{row} * pitch + i, i < dim ? in[i] / root : 0.0F);
  }
}

/// A warp for each row: what products of rows as they are take as their scale.
__global__ void row_roots(const float* x, float* inverse, Rows count, bool known, std::int32_t dim,
                          float epsilon) {
  const std::int32_t rows = begin_with_rows(count, known);
  const auto row =
      static_cast<std::int32_t>(blockIdx.x) * kWarps + static_cast<std::int32_t>(threadIdx.x) / 32;
  if (row >= rows) return;
  const float squares = row_squares(x + std::int64_t{row} * dim, kSlice, dim);
  if (threadIdx.x % 32 == 0) inverse[row] = inverse_root(squares, dim, epsilon);
}

/// A warp for each row, a half of it for each slice.
__global__ void raw_rows(const float* x, __nv_bfloat16* y, float* inverse, Rows count, bool known,
                         std::int32_t dim, std::int32_t pitch, float epsilon) {
  const std::int32_t rows = begin_with_rows(count, known);
  const auto row =
      static_cast<std::int32_t>(blockIdx.x) * kWarps + static_cast<std::int32_t>(threadIdx.x) / 32;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int own = lane % kSliceLanes;
  float all = 0;
  for (std::int32_t k0 = 0; k0 < dim; k0 += 2 * kSliceBf16) {
    const std::int32_t k = k0 + lane / kSliceLanes * kSliceBf16;
    float4 v[kSliceFours];
    load_slice(v, x + std::int64_t{row} * dim + k + own * 4, true, dim - k - own * 4);
    const float sum = slice_squares(v);
    all += __shfl_sync(~0U, sum, 0);
    if (k0 + kSliceBf16 < dim) all += __shfl_sync(~0U, sum, kSliceLanes);
#pragma unroll
    for (int i = 0; i < kSliceFours; ++i) {
      const std::int32_t column = k + (own + i * kSliceLanes) * 4;
      if (column < pitch) {
        *reinterpret_cast<uint2*>(y + std::int64_t{row} * pitch + column) = four_bf16(v[i]);
      }
    }
  }
  if (lane == 0) inverse[row] = inverse_root(all, dim, epsilon);
}

/// A thread block for each wanted row.
__global__ void gather_rows(const LiveCall* all, const LiveCall* wanted, const float* x, float* y,
                            std::int32_t dim, bool known) {
  begin_lookups(known);
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  if (row >= wanted->rows) return end_lookups(known);
  const Token t = token_of(*wanted, row);
  const CallSlice& source = all->slices[t.slice];
  const std::int64_t from =
      source.row + std::int64_t{t.variate} * source.tokens + t.patch() - source.patch;
  end_lookups(known);
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < dim;
       i += static_cast<std::int32_t>(blockDim.x)) {
    y[std::int64_t{row} * dim + i] = x[from * dim + i];
  }
}

}  // namespace

void silu2(float* y, Rows rows, std::int32_t width, const Stream& s) {
  constexpr unsigned kThreads = 256;
  const std::int64_t cells = std::int64_t{rows.count} * width;
  const unsigned most = static_cast<unsigned>(s.processors) * 8;
  launch(silu_rows, dim3(std::min(ceil_div(cells, kThreads), most)), dim3(kThreads), 0, s, y, rows,
         s.calls_known(), width);
}

void rms_norm2(const float* x, const View& y, Rows rows, double epsilon, const Stream& s) {
  with_type(y, [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    launch(norm_rows<T>, dim3(ceil_div(rows.count, kWarps)), dim3(32 * kWarps), 0, s, x, out, rows,
           s.calls_known(), y.width, static_cast<std::int32_t>(y.stride()),
           static_cast<float>(epsilon));
  });
}

void raw_rows2(const float* x, const View& y, float* inverse, Rows rows, double epsilon,
               const Stream& s) {
  launch(raw_rows, dim3(ceil_div(rows.count, kWarps)), dim3(32 * kWarps), 0, s, x,
         typed<__nv_bfloat16>(y), inverse, rows, s.calls_known(), y.width,
         static_cast<std::int32_t>(y.stride()), static_cast<float>(epsilon));
}

void row_roots2(const float* x, float* inverse, Rows rows, std::int32_t dim, double epsilon,
                const Stream& s) {
  launch(row_roots, dim3(ceil_div(rows.count, kWarps)), dim3(32 * kWarps), 0, s, x, inverse, rows,
         s.calls_known(), dim, static_cast<float>(epsilon));
}

void gather2(const Call& all, const Call& wanted, const float* x, float* y, std::int32_t dim,
             const Stream& s) {
  launch(gather_rows, dim3(static_cast<unsigned>(wanted.rows)), dim3(128), 0, s, all.live,
         wanted.live, x, y, dim, s.calls_known());
}

}  // namespace toto::cuda
