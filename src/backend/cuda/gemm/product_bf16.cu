// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with many rows, on tensor cores: tiles are copied to shared memory some
// steps ahead, sums are float32. Every output is summed as product.h says.
#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/product.h"

namespace toto::cuda {
namespace {

constexpr int kDepth = 64;  // k of one step: 128 bytes of a row
constexpr int kStages = 4;
constexpr int kSliceSteps = kSliceBf16 / kDepth;
static_assert(kSliceBf16 % kDepth == 0 && kPitchBf16 % kDepth == 0);

/// Sixteen bytes `chunk` of row `row` of a tile: chunks are exchanged so that eight rows of one
/// chunk lie in different banks.
__device__ int swizzled(int row, int chunk) { return row * kDepth + (chunk ^ (row & 7)) * 8; }

/// Blocks of BO outputs by BR rows; WO x WR warps.
template <int BO, int BR, int WO, int WR, Epilogue E>
__global__ void __launch_bounds__(32 * WO * WR, 512 / (32 * WO * WR))
    tile_bf16(const __nv_bfloat16* __restrict__ w, const float* __restrict__ bias,
              const float* scale, const __nv_bfloat16* __restrict__ x, void* y, Rows count,
              bool known, std::int32_t out, std::int32_t stored, std::int32_t in,
              std::int32_t pitch, bool silu_of) {
  constexpr int kThreads = 32 * WO * WR;
  constexpr int kM = BO / WO / 16;  // steps of 16 outputs of a warp
  constexpr int kN = BR / WR / 8;   // and of 8 rows
  static_assert(kN % 2 == 0);
  extern __shared__ float4 shared[];
  auto* const ws = reinterpret_cast<__nv_bfloat16*>(shared);  // [kStages][BO][kDepth]
  __nv_bfloat16* const xs = ws + kStages * BO * kDepth;       // [kStages][BR][kDepth]

  const std::int32_t rows = begin_with_rows(count, known);
  const std::int32_t row0 = static_cast<std::int32_t>(blockIdx.y) * BR;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x) * BO;
  if (row0 >= rows) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp_out = thread / 32 % WO * (BO / WO);
  const int warp_row = thread / 32 / WO * (BR / WR);
  const std::int32_t width = padded_bf16(in);

  const auto fetch = [&](std::int32_t step, int stage) {
    const std::int32_t k0 = step * kDepth;
#pragma unroll
    for (int i = thread; i < BO * 8; i += kThreads) {
      const int o = i / 8;
      const bool inside = out0 + o < stored;
      const __nv_bfloat16* from = w + std::int64_t{out0 + o} * pitch + k0 + i % 8 * 8;
      copy_16(ws + stage * BO * kDepth + swizzled(o, i % 8), inside ? from : w, inside ? 16 : 0);
    }
#pragma unroll
    for (int i = thread; i < BR * 8; i += kThreads) {
      const int r = i / 8;
      const std::int32_t k = k0 + i % 8 * 8;
      const bool inside = row0 + r < rows && k < width;
      const __nv_bfloat16* from = x + std::int64_t{row0 + r} * width + k;
      copy_16(xs + stage * BR * kDepth + swizzled(r, i % 8), inside ? from : x, inside ? 16 : 0);
    }
  };

  float sum[kM][kN][4] = {};
  float slice[kM][kN][4] = {};
  const auto end_slice = [&] {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sum[m][n][i] += slice[m][n][i];
          slice[m][n][i] = 0;
        }
      }
    }
  };
  const std::int32_t steps = (in + kDepth - 1) / kDepth;
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) fetch(s, s);
    commit_copies();
  }
  for (std::int32_t step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    __syncthreads();
    if (step + kStages - 1 < steps) fetch(step + kStages - 1, (step + kStages - 1) % kStages);
    commit_copies();
    const __nv_bfloat16* const wt = ws + step % kStages * BO * kDepth;
    const __nv_bfloat16* const xt = xs + step % kStages * BR * kDepth;
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      std::uint32_t a[kM][4];
      std::uint32_t b[kN / 2][4];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        load_matrices(a[m], wt + swizzled(warp_out + m * 16 + lane % 16, 2 * k + lane / 16));
      }
#pragma unroll
      for (int n = 0; n < kN / 2; ++n) {
        load_matrices(b[n], xt + swizzled(warp_row + n * 16 + lane % 8 + lane / 16 * 8,
                                          2 * k + lane / 8 % 2));
      }
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int n = 0; n < kN; ++n) {
          multiply_add(slice[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
      }
    }
    if (step % kSliceSteps == kSliceSteps - 1 || step + 1 == steps) end_slice();
  }

#pragma unroll
  for (int m = 0; m < kM; ++m) {
    const std::int32_t first = out0 + warp_out + m * 16;  // of sixteen
    const std::int32_t o = first + lane / 4;
    const float low = bias != nullptr && o < stored ? bias[o] : 0;
    const float high = bias != nullptr && o + 8 < stored ? bias[o + 8] : 0;
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::int32_t row = row0 + warp_row + n * 8 + lane % 4 * 2 + i;
        if (row >= rows) continue;
        const float by = scale != nullptr ? scale[row] : 1.0F;
        const float v = __fmaf_rn(sum[m][n][i], by, low);
        const float u = __fmaf_rn(sum[m][n][i + 2], by, high);
        if constexpr (E == Epilogue::gated) {
          const std::int32_t column = first / 2 + lane / 4;
          const std::int32_t columns = padded_bf16(out / 2);
          if (column < columns) {
            static_cast<__nv_bfloat16*>(y)[std::int64_t{row} * columns + column] =
                __float2bfloat16_rn(silu(v) * u);
          }
        } else if (E == Epilogue::store && silu_of) {
          __nv_bfloat16* const to = static_cast<__nv_bfloat16*>(y) + std::int64_t{row} * out + o;
          if (o < out) to[0] = __float2bfloat16_rn(silu(v));
          if (o + 8 < out) to[8] = __float2bfloat16_rn(silu(u));
        } else {
          float* const to = static_cast<float*>(y) + std::int64_t{row} * out + o;
          if (o < out) to[0] = E == Epilogue::residual ? add_residual(to[0], v) : v;
          if (o + 8 < out) to[8] = E == Epilogue::residual ? add_residual(to[8], u) : u;
        }
      }
    }
  }
}

template <int BO, int BR, int WO, int WR, Epilogue E>
void run(const ProductArgs& a, const Stream& s) {
  constexpr int kBytes = kStages * (BO + BR) * kDepth * 2;
  allow_shared_memory<tile_bf16<BO, BR, WO, WR, E>>(kBytes);
  const dim3 grid(ceil_div(a.stored, BO), ceil_div(a.rows.count, BR));
  launch(tile_bf16<BO, BR, WO, WR, E>, grid, dim3(32 * WO * WR), kBytes, s,
         static_cast<const __nv_bfloat16*>(a.w), a.bias, a.scale,
         static_cast<const __nv_bfloat16*>(a.x), a.y, a.rows, s.calls_known(), a.out, a.stored,
         a.in, a.pitch, a.silu);
}

template <Epilogue E>
void choose(const ProductArgs& a, const Stream& s) {
  const std::int64_t tiles =
      std::int64_t{ceil_div(a.out, 128)} * static_cast<std::int64_t>(ceil_div(a.rows.count, 128));
  if (2 * tiles >= s.processors) {
    run<128, 64, 4, 2, E>(a, s);
  } else if (4 * tiles >= s.processors) {
    run<64, 64, 2, 2, E>(a, s);
  } else {
    run<32, 32, 2, 2, E>(a, s);
  }
}

}  // namespace

void product_bf16(const ProductArgs& a, const Stream& s) {
  if (some_rows_bf16(a, s)) return;
  // No other kernel takes or leaves this: some_rows_fit() was to be asked.
  const bool few = a.squares != nullptr || a.ahead.rows != nullptr;
  check(few ? cudaErrorNotSupported : cudaSuccess, "product of few rows");
  if (many_rows_bf16(a, s)) return;
  with_epilogue(a.epilogue, [&](auto epilogue) { choose<epilogue()>(a, s); });
}

}  // namespace toto::cuda
