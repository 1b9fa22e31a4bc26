// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with many rows on Hopper: warpgroups multiply tiles that the copy engine
// brings some steps ahead. Blocks stay and take tile after tile. Every output is summed as
// product.h says, with the bits of product_bf16.cu; here rows are the first operand.
#include <cstddef>
#include <utility>

#include "backend/cuda/gemm/finish.cuh"
#include "backend/cuda/gemm/wgmma.cuh"
#include "backend/cuda/ops/group_tiles.cuh"

namespace toto::cuda {
namespace {

constexpr int kDepth = 64;  // k of one step: 128 bytes of a row
constexpr int kSliceSteps = kSliceBf16 / kDepth;
static_assert(kSliceBf16 % kDepth == 0 && kPitchBf16 % kDepth == 0);
constexpr int kRegistersOfBringer = 24;
constexpr int kRegistersOfMultiplier = 240;

/// Tiles of kGroupRows by N outputs.
template <int N>
struct Shape {
  static constexpr int kX = kGroupRows * kDepth;  // elements of a stage
  static constexpr int kW = N * kDepth;
  static constexpr int kStageBytes = (kX + kW) * 2;
  static constexpr int kStages = kTileBytes / kStageBytes < 8 ? kTileBytes / kStageBytes : 8;
  static constexpr int kBytes = kTileAlignment + kStages * (kStageBytes + 2 * 8);
};

/// What becomes of sums.
enum class End : std::uint8_t { store, residual, gated, silu };

__device__ std::uint32_t gate(const float* v, const float* u, float by, float2 low, float2 high) {
  const __nv_bfloat162 y =
      __floats2bfloat162_rn(silu(__fmaf_rn(v[0], by, low.x)) * __fmaf_rn(u[0], by, high.x),
                            silu(__fmaf_rn(v[1], by, low.y)) * __fmaf_rn(u[1], by, high.y));
  return *reinterpret_cast<const std::uint32_t*>(&y);
}

/// The same as load_bias() for gates and values, which lie in groups of eight: {gates, values} of
/// each sixteen columns.
__device__ PieceBias load_gated_bias(const float* __restrict__ bias, const Place& p, int piece) {
  PieceBias b;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const std::int32_t o = p.out0 + piece * kPieceColumns + j * 16 + threadIdx.x % 4 * 2;
    const bool there = bias != nullptr && o < 2 * padded_bf16(p.out / 2);
    const float2 low = there ? __ldg(reinterpret_cast<const float2*>(bias + o)) : float2{0, 0};
    const float2 high = there ? __ldg(reinterpret_cast<const float2*>(bias + o + 8)) : float2{0, 0};
    b.of[j] = {low.x, low.y, high.x, high.y};
  }
  return b;
}

template <int N>
__device__ void finish_gated_piece(const float (&sum)[N / 2], int piece, const PieceBias& bias,
                                   const float (&by)[2], __nv_bfloat16* y, const Place& p) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool odd = lane % 2 != 0;
  const std::int32_t columns = padded_bf16(p.out / 2);
  const std::int32_t column = (p.out0 + piece * kPieceColumns) / 2 + shift_of(lane);
  const auto half_of = [](const float4& v, int i) {
    return i == 0 ? float2{v.x, v.y} : float2{v.z, v.w};
  };
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* const s = sum + piece * 16 + half * 2;
    const std::uint32_t a =
        gate(s, s + 4, by[half], half_of(bias.of[0], 0), half_of(bias.of[0], 1));
    const std::uint32_t b =
        gate(s + 8, s + 12, by[half], half_of(bias.of[1], 0), half_of(bias.of[1], 1));
    const std::uint32_t c = __shfl_xor_sync(~0U, odd ? a : b, 1);
    if (p.row + half * 8 < p.rows && column < columns) {
      *reinterpret_cast<uint2*>(y + std::int64_t{p.row + half * 8} * columns + column) =
          odd ? uint2{c, b} : uint2{a, c};
    }
  }
}

/// Calls run(integral constant of I) for I = 0 ... Count - 1.
template <int Count, typename Run>
__device__ void for_each(const Run& run) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (run(std::integral_constant<int, I>{}), ...); }
  (std::make_integer_sequence<int, Count>{});
}

/// The sums of a tile on their way out: as many parts as a slice has steps, so that one part is
/// done while tensor cores have a step of the next tile's first slice.
template <int N, End E>
struct Ending {
  static constexpr int kPieces = N / kPieceColumns;
  static constexpr int kMostOfPart = (kPieces + kSliceSteps - 1) / kSliceSteps;
  /// The first piece of a part.
  static constexpr int first(int part) { return (kPieces * part + kSliceSteps - 1) / kSliceSteps; }

  const float* __restrict__ bias;
  const float* scale;
  void* y;
  Place place{};
  float by[2];
  PieceBias add[kMostOfPart];

  /// Of this tile; what it reads is asked for.
  __device__ void begin(const Place& p) {
    place = p;
    load_scales(by, scale, p.row, p.rows);
  }
  template <int Part>
  __device__ void prepare() {
#pragma unroll
    for (int i = first(Part); i < first(Part + 1); ++i) {
      add[i - first(Part)] =
          E == End::gated ? load_gated_bias(bias, place, i) : load_bias(bias, place, i);
    }
  }
  template <int Part>
  __device__ void finish(const float (&sum)[N / 2]) const {
#pragma unroll
    for (int i = first(Part); i < first(Part + 1); ++i) {
      const PieceBias& b = add[i - first(Part)];
      if constexpr (E == End::gated) {
        finish_gated_piece<N>(sum, i, b, by, static_cast<__nv_bfloat16*>(y), place);
      } else if constexpr (E == End::silu) {
        finish_piece<N, Into::store>(sum, i, b, by, nullptr, static_cast<__nv_bfloat16*>(y), place);
      } else {
        constexpr Into kInto = E == End::residual ? Into::add_there : Into::store;
        finish_piece<N, kInto>(sum, i, b, by, nullptr, static_cast<float*>(y), place);
      }
    }
  }
};

template <int N, End E>
__global__ void __launch_bounds__(kGroupThreads, 1)
    group_bf16(const __grid_constant__ CUtensorMap w_map, const __grid_constant__ CUtensorMap x_map,
               const float* __restrict__ bias, const float* scale, void* y, Rows count, bool known,
               std::int32_t out, std::int32_t stored, std::int32_t pitch) {
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

  const std::int32_t rows = begin_with_rows(count, known);
  const std::int32_t all_tiles = out_tiles * ((rows + kGroupRows - 1) / kGroupRows);
  const auto stride = static_cast<std::int32_t>(gridDim.x);
  Cursor<S::kStages> at;
  if (thread / 128 == kGroups) {
    give_registers<kRegistersOfBringer>();
    if (thread != 128 * kGroups) return;
    bring_tiles<S::kStages, N, kDepth>(ws, w_map, xs, x_map, full, empty,
                                       {first, stride, all_tiles, out_tiles, steps});
    return;
  }
  take_registers<kRegistersOfMultiplier>();
  const int group = thread / 128;
  int before = 0;  // the stage of the step before
  const auto release = [&](int stage) {
    if (thread % 32 == 0) arrive(empty + stage);
  };
  float sum[N / 2];
  float slice[N / 2] = {};  // the first step of a slice does not read it
  const auto multiply = [&](int step_of_slice) {
    wait_barrier(full + at.stage, at.parity);
    const std::uint64_t a = tile_descriptor(xs + at.stage * S::kX + group * 64 * kDepth);
    const std::uint64_t b = tile_descriptor(ws + at.stage * S::kW);
    begin_steps();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      multiply_add_group<N>(slice, a + k * kDescriptorStep, b + k * kDescriptorStep,
                            step_of_slice + k);
    }
    commit_steps();
  };
  const auto end_step = [&](int step_of_slice) {
    if (step_of_slice > 0) {
      wait_steps<1>();
      release(before);
    }
    before = at.stage;
    at.advance();
  };
  Ending<N, E> ending{bias, scale, y};
  bool pending = false;  // the sums of the tile before are not out yet
  for (std::int32_t tile = first; tile < all_tiles; tile += stride) {
    const Place place =
        place_of(tile / out_tiles * kGroupRows + thread / 32 * 16, rows, tile % out_tiles * N, out);
    for_each<kSliceSteps>([&](auto i) {
      if (pending) ending.template prepare<i()>();
      if (i() < steps) multiply(i());
      if (pending) ending.template finish<i()>(sum);
      if (i() < steps) end_step(i());
    });
    if (steps <= kSliceSteps) ending.begin(place);
    wait_steps<0>();
    release(before);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) sum[i] = 0.0F + slice[i];
    for (std::int32_t step = kSliceSteps; step < steps;) {
      if (step + kSliceSteps >= steps) ending.begin(place);
      const std::int32_t end = min(step + kSliceSteps, steps);
      for (int i = 0; step < end; ++i, ++step) {
        multiply(i);
        end_step(i);
      }
      wait_steps<0>();
      release(before);
#pragma unroll
      for (int i = 0; i < N / 2; ++i) sum[i] += slice[i];
    }
    pending = true;
  }
  if (!pending) return;
  for_each<kSliceSteps>([&](auto i) {
    ending.template prepare<i()>();
    ending.template finish<i()>(sum);
  });
}

template <int N, End E>
void run(const ProductArgs& a, const Stream& s) {
  using S = Shape<N>;
  allow_shared_memory<group_bf16<N, E>>(S::kBytes);
  const CUtensorMap w = boxes_of(a.w, true, a.stored, a.pitch, N);
  const CUtensorMap x = boxes_of(a.x, true, a.rows.count, padded_bf16(a.in), kGroupRows);
  launch_tiles(group_bf16<N, E>, group_tiles(a.stored, a.rows.count, N), S::kBytes, s, w, x, a.bias,
               a.scale, a.y, a.rows, s.calls_known(), a.out, a.stored, a.pitch);
}

template <End E, int... Widths>
void choose(const ProductArgs& a, const Stream& s) {
  with_best_width<Widths...>(a.stored, a.rows.count, s, [&](auto width) { run<width(), E>(a, s); });
}

}  // namespace

bool many_rows_bf16(const ProductArgs& a, const Stream& s) {
  if (!s.hopper || a.out % 4 != 0) return false;
  if (a.rows.count == 0) return true;
  switch (a.epilogue) {
    case Epilogue::store:
      a.silu ? choose<End::silu, 192, 128, 96, 64>(a, s)
             : choose<End::store, 192, 128, 96, 64>(a, s);
      break;
    case Epilogue::residual:
      choose<End::residual, 192, 128, 96, 64>(a, s);
      break;
    case Epilogue::gated:
      choose<End::gated, 192, 128, 96, 64>(a, s);
      break;
  }
  return true;
}

}  // namespace toto::cuda
