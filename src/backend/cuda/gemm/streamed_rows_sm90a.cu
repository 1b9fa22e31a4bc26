// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with up to 32 rows on Hopper whose weights are many: those of wide layers.
// Warpgroups multiply: weights are the first operand, 64 outputs a step, and rows the second, so
// that a step takes about as long for 32 rows as for eight. Weights and rows come through rings of
// stages of a slice of k each. The copy engine brings weights, and asks before the block knows that
// its inputs are there. It brings rows too, but for up to eight, which a warp brings. Blocks take
// half of a processor, so those of the next kernel ask for their weights while this one multiplies.
// The next kernel may begin before this one waits: where blocks of this one end, blocks of later
// kernels ask at once.
//
// Products that add to the residual stream have few outputs and may have many slices, so blocks of
// a cluster share the slices: each keeps the sums of its slices, waits for the sum of those before
// them, adds its own in order and hands the sum on. Every output is summed as product.h says.
#include <algorithm>

#include "backend/cuda/gemm/streamed_rows.cuh"
#include "backend/cuda/gemm/tensor_map.h"
#include "backend/cuda/gemm/wgmma.cuh"

namespace toto::cuda {
namespace {

using namespace streamed;

constexpr int kSharing = 4;  // blocks share slices, from so many slices on:
constexpr int kSlicesToShare = 6;
constexpr int kMostSharing = 8;

/// The product of a slice, once it is there: `chunks` of its k. `w`, `x`: descriptors of the first
/// boxes, whose distances are `w_apart` in a descriptor's units and RowBox in bytes.
template <int Tiles, int RowBox>
__device__ void multiply_slice(float (&sum)[Tiles * 4], std::uint64_t w, std::uint32_t w_apart,
                               std::uint64_t x, int chunks) {
  const auto multiply_chunk = [&](int c) {
#pragma unroll
    for (int k = 0; k < kChunk / 16; ++k) {
      multiply_add_group<Tiles * 8>(sum, w + c * w_apart + k * kDescriptorStep,
                                    x + c * (RowBox >> 4) + k * kDescriptorStep, c + k);
    }
  };
  begin_steps();
  if (chunks >= kChunks) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) multiply_chunk(c);
  } else {
#pragma unroll 1
    for (int c = 0; c < chunks; ++c) multiply_chunk(c);
  }
  commit_steps();
  wait_steps<0>();
}

/// Four sums to block `rank` of the cluster, at the place of `own` there; its barrier counts bytes.
__device__ void hand_over(const float4* own, std::uint64_t* barrier, int rank, const float4& v) {
  asm volatile(
      "{.reg .b32 there, bar;\n"
      "mapa.shared::cluster.u32 there, %0, %2;\n"
      "mapa.shared::cluster.u32 bar, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], {%3, %4, %5, %6},"
      " [bar];}" ::"r"(shared_address(own)),
      "r"(shared_address(barrier)), "r"(rank), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
      : "memory");
}

/// Of a product behind which a norm follows, what that takes: a warp has sixteen columns.
__device__ void leave_columns(const Ahead& to, std::int64_t at, float v, float u, bool there) {
  const float sum = __fadd_rn(sum_across<4, 32>(square(v)), sum_across<4, 32>(square(u)));
  if (!there) return;
  to.rows[at] = __float2bfloat16_rn(v);
  to.rows[at + 8] = __float2bfloat16_rn(u);
  if (at % kSixteen == 0) to.squares[at / kSixteen] = sum;
}

/// The sums of a warp's outputs, from `first_out` on, on their way out.
template <int Tiles, Use U>
__device__ void finish_outputs(const Streamed& a, const float (&sum)[Tiles * 4],
                               const float (&residual)[Tiles * 4], const float (&bias)[2],
                               const float* by, std::int32_t first_out, std::int32_t rows) {
  constexpr bool kGated = U == Use::gated;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t columns = kGated ? padded_bf16(a.out / 2) : a.out;
  const std::int32_t column = (kGated ? first_out / 2 : first_out) + lane / 4;
  const int first_row = lane % 4 * 2;
  const std::int64_t to = std::int64_t{first_row} * columns + column;
  auto* wide = static_cast<float*>(a.y) + to;
  auto* narrow = static_cast<__nv_bfloat16*>(a.y) + to;
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
    const float2 both = *reinterpret_cast<const float2*>(by + t * kRowsOfTile + first_row);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float row_by = i == 0 ? both.x : both.y;
      float v = __fmaf_rn(sum[t * 4 + i], row_by, bias[0]);
      float u = __fmaf_rn(sum[t * 4 + 2 + i], row_by, bias[1]);
      const bool there = t * kRowsOfTile + first_row + i < rows;
      if constexpr (kGated) {
        if (there && column < columns) narrow[i * columns] = __float2bfloat16_rn(silu(v) * u);
        continue;
      }
      if constexpr (U == Use::silu) {
        if (there && column < columns) narrow[i * columns] = __float2bfloat16_rn(silu(v));
        if (there && column + 8 < columns) narrow[i * columns + 8] = __float2bfloat16_rn(silu(u));
        continue;
      }
      if constexpr (U == Use::residual) {
        v = add_residual(residual[t * 4 + i], v);
        u = add_residual(residual[t * 4 + 2 + i], u);
        if (a.ahead.rows != nullptr) {
          const std::int64_t row = t * kRowsOfTile + first_row + i;
          leave_columns(a.ahead, row * columns + column, v, u, there && column < columns);
        }
      }
      if (there && column < columns) wide[i * columns] = v;
      if (there && column + 8 < columns) wide[i * columns + 8] = u;
    }
    wide += kRowsOfTile * columns;
    narrow += kRowsOfTile * columns;
  }
}

template <int Tiles, Use U>
__global__ void __launch_bounds__(32 * most_warps(U), 2)
    streamed_bf16(const __grid_constant__ CUtensorMap w_map,
                  const __grid_constant__ CUtensorMap x_map, const Streamed a) {
  using M = StreamedMemory<Tiles, U>;
  constexpr bool kShares = M::kShares;
  constexpr int kSums = Tiles * 4;
  extern __shared__ float4 shared[];
  const M m(shared, a);
  const int warp = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 32, 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int multipliers = kShares ? kGroupWarps : a.groups * kGroupWarps;
  const int split = kShares ? a.split : 1;
  const Own own = own_of(a, split);
  const int box_bytes = a.parts * kUnitBytes;
  if (warp == multipliers && lane == 0) {
    for (int i = 0; i < a.stages; ++i) {
      make_barrier(m.full + i, 1);
      make_barrier(m.empty + i, multipliers);
    }
    for (int i = 0; i < M::kStagesOfRows; ++i) {
      make_barrier(m.there + i, 1);
      make_barrier(m.used + i, multipliers);
    }
    make_barrier(m.scaled, 1);
    if (kShares) {
      make_barrier(m.handed, 1);
      if (own.rank > 0) expect_bytes(m.handed, a.parts * Tiles * 512);
    }
    publish_barriers();
  }
  __syncthreads();
  if (kShares) begin_in_cluster();

  const auto begin = [&] {
    if (a.known) let_next_begin();
    const std::int32_t rows = begin_with_rows(a.count, a.known);
    if (kShares) await_cluster();
    return rows;
  };
  if (warp == multipliers) {
    RingPlace at{0, 1};
#pragma unroll 1
    for (int slice = 0; slice < own.slices; ++slice, at.advance(a.stages)) {
      if (slice == a.stages) begin();
      if (lane == 0) {
        wait_barrier(m.empty + at.stage, at.parity);
        expect_bytes(m.full + at.stage, kChunks * box_bytes);
        copy_once(m.ws + at.stage * kChunks * box_bytes, w_map, 0, own.first_out,
                  own.first_k / kChunk + slice * kChunks, m.full + at.stage);
      }
      __syncwarp();
    }
    if (own.slices <= a.stages) begin();
    return;
  }
  const bool finishes = warp < min(multipliers, a.parts) && own.rank + 1 == split;
  const std::int32_t first_out = own.first_out + warp * kUnitOutputs;
  const std::int32_t lane_out = first_out + lane / 4;
  float bias[2] = {};
  if (finishes && a.bias != nullptr) {
    if (lane_out < a.stored) bias[0] = a.bias[lane_out];
    if (lane_out + 8 < a.stored) bias[1] = a.bias[lane_out + 8];
  }
  if (warp > multipliers) {
    const bool brings = warp == multipliers + 1;
    const std::int32_t rows = begin();
    if (kShares || !brings) find_scales(a, m, rows);
    if (brings) bring_rows(a, m, x_map, own, rows);
    return;
  }
  const std::int32_t rows = begin();

  float residual[kSums] = {};
  if (finishes && U == Use::residual) {
    const float* const y = static_cast<const float*>(a.y) + lane % 4 * 2 * a.out + lane_out;
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int r = i / 4 * kRowsOfTile + i % 2;
      const int o = i / 2 % 2 * 8;
      const bool there = lane % 4 * 2 + r < rows && lane_out + o < a.out;
      if (there) residual[i] = y[r * a.out + o];
    }
  }
  // Of a block that shares slices, the last kMostKept: zeros are added where there are less.
  constexpr int kKept = kShares ? kMostKept : 1;
  float kept[kKept][kSums] = {};
  float sum[kSums] = {};
  const std::uint64_t w0 = tile_descriptor(m.ws + warp / kGroupWarps * kGroupWarps * kUnitBytes);
  const std::uint64_t x0 = tile_descriptor(m.xs);
  RingPlace weights;
  Cursor<M::kStagesOfRows> inputs;
#pragma unroll 1
  for (int slice = 0; slice < own.slices; ++slice) {
    float of[kSums];
    wait_barrier(m.there + inputs.stage, inputs.parity);
    wait_barrier(m.full + weights.stage, weights.parity);
    multiply_slice<Tiles, M::kRowBox>(
        of, w0 + static_cast<std::uint32_t>(weights.stage * kChunks * box_bytes >> 4),
        static_cast<std::uint32_t>(box_bytes >> 4),
        x0 + static_cast<std::uint32_t>(inputs.stage * M::kRowSlice >> 4),
        own.chunks - slice * kChunks);
    if (lane == 0) {
      arrive(m.empty + weights.stage);
      arrive(m.used + inputs.stage);
    }
    weights.advance(a.stages);
    inputs.advance();
    if constexpr (kShares) {
#pragma unroll
      for (int h = 0; h + 1 < kKept; ++h) {
#pragma unroll
        for (int i = 0; i < kSums; ++i) kept[h][i] = kept[h + 1][i];
      }
#pragma unroll
      for (int i = 0; i < kSums; ++i) kept[kKept - 1][i] = of[i];
    } else {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sum[i] += of[i];
    }
  }
  if (warp >= a.parts) return;
  if constexpr (kShares) {
    const float4* const before = m.before + warp * Tiles * 32 + lane;
    if (own.rank > 0) {
      wait_barrier(m.handed, 0);
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const float4 v = before[t * 32];
        sum[t * 4] = v.x, sum[t * 4 + 1] = v.y, sum[t * 4 + 2] = v.z, sum[t * 4 + 3] = v.w;
      }
    }
#pragma unroll
    for (int h = 0; h < kKept; ++h) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sum[i] += kept[h][i];
    }
    if (own.rank + 1 < split) {
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        hand_over(before + t * 32, m.handed, own.rank + 1,
                  {sum[t * 4], sum[t * 4 + 1], sum[t * 4 + 2], sum[t * 4 + 3]});
      }
      return;
    }
  }
  wait_barrier(m.scaled, 0);
  finish_outputs<Tiles, U>(a, sum, residual, bias, m.by, first_out, rows);
}

/// false where there are too many slices for a cluster, or too little memory.
template <int Tiles, Use U>
bool run(Streamed a, const ProductArgs& args, const Stream& s) {
  using M = StreamedMemory<Tiles, U>;
  const int units = (a.stored + kUnitOutputs - 1) / kUnitOutputs;
  if (U == Use::residual) {
    const int least = (a.slices + kMostKept - 1) / kMostKept;
    a.split = std::max(a.slices >= kSlicesToShare ? kSharing : 1, least);
    if (a.split > kMostSharing) return false;
  }
  const int own = (a.slices + a.split - 1) / a.split;
  const int side_by_side = s.processors / a.split;
  // Blocks run side by side, but for those of very wide layers. A step takes as long for fewer
  // outputs than a warpgroup has.
  const int most = U == Use::residual ? 1 : kMostGroups;
  a.parts = std::clamp((units + side_by_side - 1) / side_by_side, kGroupWarps, most * kGroupWarps);
  a.groups = (a.parts + kGroupWarps - 1) / kGroupWarps;
  const std::int64_t half = s.shared_bytes / 2 - 512;  // every block has a kilobyte of its own
  for (a.stages = own; a.stages > 1 && M::bytes(a) > half;) --a.stages;
  if (M::bytes(a) > s.shared_bytes) return false;
  // What a warpgroup reads behind its outputs is memory of the block.
  const int behind = (a.groups * kGroupWarps - a.parts) * kUnitBytes;
  if (behind > M::kStagesOfRows * M::kRowSlice) return false;
  const auto bytes = static_cast<std::size_t>(M::bytes(a));
  const CUtensorMap w =
      wide_boxes_of(args.w, true, a.stored, a.pitch, a.parts * kUnitOutputs, kSliceBf16);
  const CUtensorMap x =
      Tiles > 1 ? boxes_of(args.x, true, args.rows.count, padded_bf16(a.in), M::kRows) : w;
  const auto blocks = static_cast<unsigned>((units + a.parts - 1) / a.parts * a.split);
  const auto warps = static_cast<unsigned>(a.groups * kGroupWarps + warps_beside(U));
  constexpr auto kernel = streamed_bf16<Tiles, U>;
  allow_shared_memory<kernel>(bytes);
  launch_clusters(kernel, static_cast<unsigned>(a.split), dim3(blocks), dim3(32 * warps), bytes, s,
                  w, x, a);
  return true;
}

template <int Tiles>
bool with_use(const Streamed& a, const ProductArgs& args, const Stream& s) {
  if (a.rounded) return false;
  switch (a.epilogue) {
    case Epilogue::store:
      return a.silu ? run<Tiles, Use::silu>(a, args, s) : run<Tiles, Use::store>(a, args, s);
    case Epilogue::gated:
      return run<Tiles, Use::gated>(a, args, s);
    case Epilogue::residual:
      return a.squares == nullptr && run<Tiles, Use::residual>(a, args, s);
  }
  return false;
}

}  // namespace

bool streamed_rows_bf16(const ProductArgs& a, const Stream& s) {
  if (!s.hopper || a.gain != nullptr || a.also.w != nullptr) return false;
  const Streamed streamed{rows_product(a, s), slices_of(a.in)};
  switch ((a.rows.count + kRowsOfTile - 1) / kRowsOfTile) {
    case 1:
      return with_use<1>(streamed, a, s);
    case 2:
      return with_use<2>(streamed, a, s);
    case 3:
      return with_use<3>(streamed, a, s);
    default:
      return with_use<4>(streamed, a, s);
  }
}

}  // namespace toto::cuda
