// SPDX-License-Identifier: Apache-2.0
// Products in float32 with many rows on Hopper's tensor cores, of operands that are split in two or
// rounded; split.cuh says how and in which order. Tiles come as in product_bf16_sm90a.cu: the copy
// engine brings them some steps ahead, and blocks stay and take tile after tile. Weights are split
// once for a block, by warps of their own; rows by the warps that multiply them, in registers.
#include <cstddef>

#include "backend/cuda/gemm/finish.cuh"
#include "backend/cuda/gemm/split.cuh"
#include "backend/cuda/gemm/wgmma.cuh"
#include "backend/cuda/ops/group_tiles.cuh"

namespace toto::cuda {
namespace {

constexpr int kDepth = kSplitSlice;  // k of one stage: 128 bytes of a row
constexpr int kEights = kDepth / 8;
constexpr int kSplitters = 3;  // warps that split weights
static_assert(kDepth * sizeof(float) == 128);

/// Tiles of kGroupRows by N outputs.
template <int N, Operands O>
struct Shape {
  static constexpr bool kSplits = O == Operands::split;
  static constexpr int kX = kGroupRows * kDepth;  // floats of a stage
  static constexpr int kW = N * kDepth;
  static constexpr int kLow = kSplits ? kW : 0;  // low parts of weights
  static constexpr int kStageBytes = (kX + kW + kLow) * 4;
  static constexpr int kStages = kTileBytes / kStageBytes < 8 ? kTileBytes / kStageBytes : 8;
  static constexpr int kBytes = kTileAlignment + kStages * (kStageBytes + 3 * 8);
};

/// The low parts of a tile of weights, each where its weight is.
template <int N>
__device__ void split_weights(const float* weights, float* low_parts, int thread) {
  constexpr int kThreadsSplitting = 32 * kSplitters;
  constexpr int kFours = N * kDepth / 4;
  constexpr int kAtOnce = 4;
  const auto* const from = reinterpret_cast<const uint4*>(weights);
  auto* const to = reinterpret_cast<uint4*>(low_parts);
#pragma unroll 1  // few registers
  for (int first = 0; first < kFours; first += kAtOnce * kThreadsSplitting) {
    uint4 v[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kThreadsSplitting + thread;
      if (at < kFours) v[i] = from[at];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kThreadsSplitting + thread;
      if (at >= kFours) continue;
      to[at] = {low_weight(v[i].x), low_weight(v[i].y), low_weight(v[i].z), low_weight(v[i].w)};
    }
  }
}

/// The same as finish_rows(), of gates and values by turns: a lane has one of each.
template <int N>
__device__ void finish_gated(const float (&sum)[N / 2], const float* __restrict__ bias,
                             const float* scale, float* y, std::int32_t row, std::int32_t rows,
                             std::int32_t out0, std::int32_t out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool odd = lane % 2 != 0;
  const std::int32_t columns = out / 2;
  float2 b[N / 8];
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
    const std::int32_t o = out0 + j * 8 + lane % 4 * 2;
    b[j] = bias != nullptr && o < out ? __ldg(reinterpret_cast<const float2*>(bias + o))
                                      : float2{0, 0};
  }
  row += lane / 4;
  float by[2];
  load_scales(by, scale, row, rows);
#pragma unroll
  for (int j = 0; j < N / 8; j += 2) {
    // Even lanes take two neighbours of the first four columns, odd ones of the next.
    const std::int32_t column = out0 / 2 + j * 4 + lane % 2 * 4 + lane % 4 / 2 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* const s = sum + j * 4 + half * 2;
      const auto gate = [&](const float* of, const float2& add) {
        return silu(__fmaf_rn(of[0], by[half], add.x)) * __fmaf_rn(of[1], by[half], add.y);
      };
      const float v = gate(s, b[j]);
      const float u = gate(s + 4, b[j + 1]);
      const float other = __shfl_xor_sync(~0U, odd ? v : u, 1);
      if (row + half * 8 < rows && column < columns) {
        *reinterpret_cast<float2*>(y + std::int64_t{row + half * 8} * columns + column) =
            odd ? float2{other, u} : float2{v, other};
      }
    }
  }
}

/// The same as finish_rows() for any number of outputs: of the first so many of a matrix.
template <int N, bool Residual>
__device__ void finish_singly(const float (&sum)[N / 2], const float* __restrict__ bias,
                              const float* scale, float* y, std::int32_t row, std::int32_t rows,
                              std::int32_t out0, std::int32_t out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const std::int32_t o = out0 + i / 4 * 8 + lane % 4 * 2 + i % 2;
    const std::int32_t r = row + lane / 4 + i % 4 / 2 * 8;
    if (r >= rows || o >= out) continue;
    float* const to = y + std::int64_t{r} * out + o;
    const float v =
        __fmaf_rn(sum[i], scale != nullptr ? scale[r] : 1.0F, bias != nullptr ? bias[o] : 0);
    *to = Residual ? *to + v : v;
  }
}

template <int N, Epilogue E, bool Fours, Operands O>
__global__ void __launch_bounds__(kGroupThreads, 1)
    group_f32(const __grid_constant__ CUtensorMap w_map, const __grid_constant__ CUtensorMap x_map,
              const float* __restrict__ bias, const float* scale, float* y, Rows count, bool known,
              std::int32_t out, std::int32_t in) {
  using S = Shape<N, O>;
  extern __shared__ std::byte memory[];
  std::byte* const aligned =
      memory + (kTileAlignment - shared_address(memory) % kTileAlignment) % kTileAlignment;
  auto* const xs = reinterpret_cast<float*>(aligned);  // [kStages][kGroupRows][kDepth]
  float* const ws = xs + S::kStages * S::kX;           // [kStages][N][kDepth]
  float* const ls = ws + S::kStages * S::kW;           // the same of low parts
  auto* const full = reinterpret_cast<std::uint64_t*>(ls + S::kStages * S::kLow);  // [kStages]
  std::uint64_t* const split = full + S::kStages;                                  // [kStages]
  std::uint64_t* const empty = split + S::kStages;                                 // [kStages]
  const std::int32_t out_tiles = (out + N - 1) / N;
  const std::int32_t steps = (in + kDepth - 1) / kDepth;
  const auto first = static_cast<std::int32_t>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    prefetch_map(w_map);
    prefetch_map(x_map);
    for (int i = 0; i < S::kStages; ++i) {
      make_barrier(full + i, 1);
      make_barrier(split + i, kSplitters);   // warps
      make_barrier(empty + i, 4 * kGroups);  // warps
    }
    publish_barriers();
  }
  __syncthreads();

  const std::int32_t rows = begin_with_rows(count, known);
  const std::int32_t all_tiles = out_tiles * ((rows + kGroupRows - 1) / kGroupRows);
  const auto stride = static_cast<std::int32_t>(gridDim.x);
  Cursor<S::kStages> at;
  if (thread / 128 == kGroups) {
    give_registers<kRegistersBringing>();
    const int splitter = thread - 128 * kGroups - 32;
    if (S::kSplits && splitter >= 0) {
      // Low parts of a stage may be written once it is full again: it was not copied to before all
      // that multiply had done with it, low parts and all. And no copy runs over weights that are
      // still being split: those that multiply wait for all that split.
      for (std::int32_t tile = first; tile < all_tiles; tile += stride) {
        for (std::int32_t step = 0; step < steps; ++step, at.advance()) {
          wait_barrier(full + at.stage, at.parity);
          split_weights<N>(ws + at.stage * S::kW, ls + at.stage * S::kLow, splitter);
          publish_tile();
          __syncwarp();
          if (splitter % 32 == 0) arrive(split + at.stage);
        }
      }
    } else if (splitter == -32) {
      bring_tiles<S::kStages, N, kDepth>(ws, w_map, xs, x_map, full, empty,
                                         {first, stride, all_tiles, out_tiles, steps});
    }
  } else {
    take_registers<kRegistersMultiplying>();
    // Where in a tile a lane's row of four k is, in the copy engine's swizzle: of eight rows and
    // the next, and of four k and the next.
    const int lane = thread % 32;
    const int lane_at = (thread / 32 * 16 + lane % 16) * kDepth + (lane / 16 ^ lane % 8) * 4;
    std::uint32_t x[kEights][4];
    const auto load = [&] {
      wait_barrier(full + at.stage, at.parity);
#pragma unroll
      for (int k = 0; k < kEights; ++k) {
        load_matrices(x[k], xs + at.stage * S::kX + (lane_at ^ k * 8));
      }
      if constexpr (S::kSplits) wait_barrier(split + at.stage, at.parity);
    };
    for (std::int32_t tile = first; tile < all_tiles; tile += stride) {
      float sum[N / 2] = {};
      float slice[N / 2] = {};  // the first steps of both chains do not read what was there
      float rest[N / 2] = {};
      if (steps > 0) load();
      for (std::int32_t step = 0; step < steps; ++step) {
        std::uint32_t high[kEights][4];
        std::uint32_t low[kEights][4];
#pragma unroll
        for (int k = 0; k < kEights; ++k) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            if constexpr (S::kSplits) {
              split_input(x[k][i], high[k][i], low[k][i]);
            } else {
              high[k][i] = to_tf32(__uint_as_float(x[k][i]));
            }
          }
        }
        const std::uint64_t w = tile_descriptor(ws + at.stage * S::kW);
        begin_steps();
        if constexpr (S::kSplits) {
#pragma unroll
          for (int k = 0; k < kEights; ++k) {
            multiply_add_group<N>(rest, low[k], w + k * kDescriptorStep, k);
          }
        }
#pragma unroll
        for (int k = 0; k < kEights; ++k) {
          multiply_add_group<N>(slice, high[k], w + k * kDescriptorStep, k);
        }
        if constexpr (S::kSplits) {
          const std::uint64_t w_low = tile_descriptor(ls + at.stage * S::kLow);
#pragma unroll
          for (int k = 0; k < kEights; ++k) {
            multiply_add_group<N>(rest, high[k], w_low + k * kDescriptorStep, 1);
          }
        }
        commit_steps();
        const int stage = at.stage;
        at.advance();
        if (step + 1 < steps) load();
        wait_steps<0>();
        if (lane == 0) arrive(empty + stage);
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
          sum[i] += S::kSplits ? slice[i] + rest[i] : slice[i];
        }
      }
      const std::int32_t row = tile / out_tiles * kGroupRows + thread / 32 * 16;
      const std::int32_t out0 = tile % out_tiles * N;
      if constexpr (E == Epilogue::gated) {
        finish_gated<N>(sum, bias, scale, y, row, rows, out0, out);
      } else if constexpr (Fours) {
        finish_rows<N, E == Epilogue::residual>(sum, bias, scale, y, row, rows, out0, out);
      } else {
        finish_singly<N, E == Epilogue::residual>(sum, bias, scale, y, row, rows, out0, out);
      }
    }
  }
}

template <int N, Epilogue E, Operands O, bool Fours = true>
void run(const ProductArgs& a, const Stream& s) {
  using S = Shape<N, O>;
  allow_shared_memory<group_f32<N, E, Fours, O>>(S::kBytes);
  const CUtensorMap w = boxes_of(a.w, false, a.out, a.pitch, N);
  const CUtensorMap x = boxes_of(a.x, false, a.rows.count, a.in, kGroupRows);
  launch_tiles(group_f32<N, E, Fours, O>, group_tiles(a.out, a.rows.count, N), S::kBytes, s, w, x,
               a.bias, a.scale, static_cast<float*>(a.y), a.rows, s.calls_known(), a.out, a.in);
}

template <Epilogue E, Operands O>
void choose(const ProductArgs& a, const Stream& s) {
  if (E != Epilogue::gated && a.out % 4 != 0) {
    run<32, E, O, false>(a, s);
    return;
  }
  const auto with_width = [&](auto width) { run<width(), E, O>(a, s); };
  if constexpr (O == Operands::split) {
    with_best_width<96, 64, 32>(a.out, a.rows.count, s, with_width);
  } else {
    with_best_width<128, 96, 64, 32>(a.out, a.rows.count, s, with_width);
  }
}

}  // namespace

bool many_rows_f32(const ProductArgs& a, const Stream& s) {
  if (a.operands == Operands::whole) return false;
  if (a.rows.count == 0) return true;
  with_epilogue(a.epilogue, [&](auto epilogue) {
    if (a.operands == Operands::split) {
      choose<epilogue(), Operands::split>(a, s);
    } else {
      choose<epilogue(), Operands::rounded>(a, s);
    }
  });
  return true;
}

}  // namespace toto::cuda
