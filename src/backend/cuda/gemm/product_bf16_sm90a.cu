// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with many rows on Hopper: warpgroups multiply tiles that the copy engine
// brings some steps ahead. Blocks stay and take tile after tile. Every output is summed as
// product.h says, with the bits of product_bf16.cu; here rows are the first operand.
#include <cstddef>

#include "backend/cuda/gemm/finish.cuh"
#include "backend/cuda/gemm/wgmma.cuh"
#include "backend/cuda/ops/group_tiles.cuh"

namespace toto::cuda {
namespace {

constexpr int kDepth = 64;  // k of one step: 128 bytes of a row
constexpr int kSliceSteps = kSliceBf16 / kDepth;
static_assert(kSliceBf16 % kDepth == 0 && kPitchBf16 % kDepth == 0);

/// Tiles of kGroupRows by N outputs.
template <int N>
struct Shape {
  static constexpr int kX = kGroupRows * kDepth;  // elements of a stage
  static constexpr int kW = N * kDepth;
  static constexpr int kStageBytes = (kX + kW) * 2;
  static constexpr int kStages = kTileBytes / kStageBytes < 8 ? kTileBytes / kStageBytes : 8;
  static constexpr int kBytes = kTileAlignment + kStages * (kStageBytes + 2 * 8);
};

__device__ std::uint32_t gate(const float* v, const float* u, float by, float2 low, float2 high) {
  const __nv_bfloat162 y =
      __floats2bfloat162_rn(silu(__fmaf_rn(v[0], by, low.x)) * __fmaf_rn(u[0], by, high.x),
                            silu(__fmaf_rn(v[1], by, low.y)) * __fmaf_rn(u[1], by, high.y));
  return *reinterpret_cast<const std::uint32_t*>(&y);
}

/// What a warp has summed: sixteen rows from `row` on by N outputs from `out0` on. All that is to
/// be read is asked for before any of it is used.
template <int N, Epilogue E>
__device__ void finish(const float (&sum)[N / 2], const float* __restrict__ bias,
                       const float* scale, void* y, std::int32_t row, std::int32_t rows,
                       std::int32_t out0, std::int32_t out, bool silu_of) {
  if constexpr (E == Epilogue::gated) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    row += lane / 4;
    const int shift = lane % 2 * 8 + lane % 4 / 2 * 4;  // of the four values
    const std::int32_t columns = padded_bf16(out / 2);
    float by[2];
    load_scales(by, scale, row, rows);
    float2 low[N / 16];
    float2 high[N / 16];
#pragma unroll
    for (int j = 0; j < N / 16; ++j) {
      const std::int32_t o = out0 + j * 16 + lane % 4 * 2;
      const bool there = bias != nullptr && o < 2 * columns;
      low[j] = there ? __ldg(reinterpret_cast<const float2*>(bias + o)) : float2{0, 0};
      high[j] = there ? __ldg(reinterpret_cast<const float2*>(bias + o + 8)) : float2{0, 0};
    }
#pragma unroll
    for (int j = 0; j < N / 16; j += 2) {
      const std::int32_t column = out0 / 2 + j * 8 + shift;
      const bool odd = lane % 2 != 0;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* const s = sum + j * 8 + half * 2;
        const std::uint32_t a = gate(s, s + 4, by[half], low[j], high[j]);
        const std::uint32_t b = gate(s + 8, s + 12, by[half], low[j + 1], high[j + 1]);
        const std::uint32_t c = __shfl_xor_sync(~0U, odd ? a : b, 1);
        if (row + half * 8 < rows && column < columns) {
          *reinterpret_cast<uint2*>(static_cast<__nv_bfloat16*>(y) +
                                    std::int64_t{row + half * 8} * columns + column) =
              odd ? uint2{c, b} : uint2{a, c};
        }
      }
    }
  } else if (E == Epilogue::store && silu_of) {
    finish_rows<N, false>(sum, bias, scale, static_cast<__nv_bfloat16*>(y), row, rows, out0, out);
  } else {
    finish_rows<N, E == Epilogue::residual>(sum, bias, scale, static_cast<float*>(y), row, rows,
                                            out0, out);
  }
}

template <int N, Epilogue E>
__global__ void __launch_bounds__(kGroupThreads, 1)
    group_bf16(const __grid_constant__ CUtensorMap w_map, const __grid_constant__ CUtensorMap x_map,
               const float* __restrict__ bias, const float* scale, void* y, Rows count,
               std::int32_t out, std::int32_t stored, std::int32_t pitch, bool silu_of) {
  using S = Shape<N>;
  extern __shared__ std::byte memory[];
  std::byte* const aligned =
      memory + (kTileAlignment - shared_address(memory) % kTileAlignment) % kTileAlignment;
  auto* const xs = reinterpret_cast<__nv_bfloat16*>(aligned);  // [kStages][kGroupRows][kDepth]
  __nv_bfloat16* const ws = xs + S::kStages * S::kX;           // [kStages][N][kDepth]
  auto* const full = reinterpret_cast<std::uint64_t*>(ws + S::kStages * S::kW);  // [kStages]
  std::uint64_t* const empty = full + S::kStages;                                // [kStages]
  const std::int32_t out_tiles = (stored + N - 1) / N;
  const std::int32_t steps = pitch / kDepth;
  const auto first = static_cast<std::int32_t>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    prefetch_map(w_map);
    prefetch_map(x_map);
    for (int i = 0; i < S::kStages; ++i) {
      make_barrier(full + i, 1);
      make_barrier(empty + i, 4 * kGroups);  // warps
    }
    publish_barriers();
  }
  __syncthreads();
  begin_kernel();

  const std::int32_t rows = live_rows(count);
  const std::int32_t all_tiles = out_tiles * ((rows + kGroupRows - 1) / kGroupRows);
  const auto stride = static_cast<std::int32_t>(gridDim.x);
  Cursor<S::kStages> at;
  if (thread / 128 == kGroups) {
    give_registers<kRegistersBringing>();
    if (thread != 128 * kGroups) return;
    bring_tiles<S::kStages, N, kDepth>(ws, w_map, xs, x_map, full, empty,
                                       {first, stride, all_tiles, out_tiles, steps});
  } else {
    take_registers<kRegistersMultiplying>();
    const int group = thread / 128;
    const auto release = [&](int stage) {
      if (thread % 32 == 0) arrive(empty + stage);
    };
    for (std::int32_t tile = first; tile < all_tiles; tile += stride) {
      float sum[N / 2] = {};
      float slice[N / 2] = {};  // the first step of a slice does not read it
      for (std::int32_t step = 0; step < steps;) {
        const std::int32_t end = min(step + kSliceSteps, steps);
        int before = 0;
        for (int i = 0; step < end; ++i, ++step) {
          wait_barrier(full + at.stage, at.parity);
          const std::uint64_t a = tile_descriptor(xs + at.stage * S::kX + group * 64 * kDepth);
          const std::uint64_t b = tile_descriptor(ws + at.stage * S::kW);
          begin_steps();
#pragma unroll
          for (int k = 0; k < kDepth / 16; ++k) {
            multiply_add_group<N>(slice, a + k * kDescriptorStep, b + k * kDescriptorStep, i + k);
          }
          commit_steps();
          if (i > 0) {
            wait_steps<1>();
            release(before);
          }
          before = at.stage;
          at.advance();
        }
        wait_steps<0>();
        release(before);
#pragma unroll
        for (int i = 0; i < N / 2; ++i) sum[i] += slice[i];
      }
      finish<N, E>(sum, bias, scale, y, tile / out_tiles * kGroupRows + thread / 32 * 16, rows,
                   tile % out_tiles * N, out, silu_of);
    }
  }
}

template <int N, Epilogue E>
void run(const ProductArgs& a, const Stream& s) {
  using S = Shape<N>;
  allow_shared_memory<group_bf16<N, E>>(S::kBytes);
  const CUtensorMap w = boxes_of(a.w, true, a.stored, a.pitch, N);
  const CUtensorMap x = boxes_of(a.x, true, a.rows.count, padded_bf16(a.in), kGroupRows);
  launch_tiles(group_bf16<N, E>, group_tiles(a.stored, a.rows.count, N), S::kBytes, s, w, x, a.bias,
               a.scale, a.y, a.rows, a.out, a.stored, a.pitch, a.silu);
}

}  // namespace

bool many_rows_bf16(const ProductArgs& a, const Stream& s) {
  if (!s.hopper || a.out % 4 != 0) return false;
  if (a.rows.count == 0) return true;
  with_epilogue(a.epilogue, [&](auto epilogue) {
    with_best_width<192, 128, 96, 64>(a.stored, a.rows.count, s,
                                      [&](auto width) { run<width(), epilogue()>(a, s); });
  });
  return true;
}

}  // namespace toto::cuda
