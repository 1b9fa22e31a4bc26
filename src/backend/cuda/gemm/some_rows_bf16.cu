// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with up to 32 rows, of any width: the weights are streamed once. On Hopper
// held_rows_sm90a.cu has most of them, and streamed_rows_sm90a.cu those of wide layers. A thread
// block has 16, 32 or 48 outputs. A warp has eight rows of one slice of k; those of a slice share
// its weights, which they ask for before they even know that the inputs are there. One warp more
// finds what sums are multiplied with, and asks for what is added to them.
// Every output is summed as product.h says. A second product of other inputs may be added to the
// first (ProductArgs::also): its slices come after those of the first, by an instance of its own.
// Otherwise there is one kernel for all numbers of rows, and little is unrolled: a layer runs
// through several kernels, and instructions that are not near come at some nine cycles each.
#include <algorithm>
#include <type_traits>

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/some_rows.cuh"

namespace toto::cuda {
namespace {

constexpr int kPitch = kSliceBf16 + 8;  // eight rows lie in different banks
constexpr int kColumns = kPitchBf16;    // eight lanes copy so many
static_assert(kSliceBf16 % kColumns == 0 && kColumns == 64);
constexpr int kMaxWarps = 26;
/// Beyond so many bytes of weights for each processor they are streamed: else they would come in
/// rounds, or their blocks in waves. Those of layers from kWideFrom on all are, so that blocks of
/// all their products fit beside each other. Measured on 132 processors.
constexpr std::int64_t kStreamedFrom = std::int64_t{88} << 10;
constexpr std::int32_t kWideFrom = 1536;

struct Some : RowsProduct {
  const __nv_bfloat16* w;
  Summand also;      // its slices come after those of the product itself
  int first_slices;  // of the product itself
  int slices;
  int tiles;          // of eight rows
  int at_once;        // slices
  int part_of_65536;  // 65536 / tiles, rounded up: divides the numbers of warps without a division
};

/// Shared memory of a block with `Outputs` outputs.
template <int Outputs>
struct Memory {
  __nv_bfloat16* ws;  // [at_once][Outputs][kPitch]
  __nv_bfloat16* xs;  // [at_once][rows][kPitch]
  float* part;        // [slices][rows][Outputs]
  float* before;      // [rows][Outputs] what a residual is added to
  float* by;          // [rows]
  float* bias;        // [Outputs]
  float* also_bias;   // [Outputs]
  float* also_by;     // [rows]

  __device__ Memory(void* shared, const Some& a) {
    const int rows = a.tiles * kRowsOfTile;
    ws = static_cast<__nv_bfloat16*>(shared);
    xs = ws + a.at_once * Outputs * kPitch;
    part = reinterpret_cast<float*>(xs + a.at_once * rows * kPitch);
    before = part + a.slices * rows * Outputs;
    by = before + rows * Outputs;
    bias = by + rows;
    also_bias = bias + Outputs;
    also_by = also_bias + Outputs;
  }
  static std::size_t bytes(int tiles, int slices, int at_once) {
    const auto rows = static_cast<std::size_t>(tiles) * kRowsOfTile;
    const std::size_t floats =
        (static_cast<std::size_t>(slices) + 1) * rows * Outputs + 2 * rows + 2 * Outputs;
    return static_cast<std::size_t>(at_once) * (Outputs + rows) * kPitch * 2 +
           floats * sizeof(float);
  }
};

/// Sixteen k of all parts, twice: `w` and `x` are addresses in shared memory.
template <int Parts>
__device__ void multiply_pair(float (&sum)[Parts][4], std::uint32_t w, std::uint32_t x) {
  std::uint32_t in[4];
  load_matrices(in, x);
#pragma unroll
  for (int step = 0; step < 2; ++step) {
#pragma unroll
    for (int p = 0; p < Parts; ++p) {
      std::uint32_t weights[4];
      load_matrices(weights, w + (p * 16 * kPitch + step * 16) * 2);
      multiply_add(sum[p], weights, in[2 * step], in[2 * step + 1]);
    }
  }
}

/// What the sums of a row are multiplied with.
__device__ float sums_times(const float* scale, const float* squares, int row, std::int32_t rows,
                            std::int32_t in, float epsilon) {
  if (row >= rows || (scale == nullptr && squares == nullptr)) return 1;
  if (squares == nullptr) return scale[row];
  const float* const of = squares + std::int64_t{row} * (in / kSixteen);
  float all = 0;
#pragma unroll 4
  for (int s = 0; s < slices_of(in); ++s) {
    SliceSixteens slice;
    slice.load(of, s, in);
    all += slice.sum();
  }
  return inverse_root(all, in, epsilon);
}

/// For a norm that follows: a column of y, `at` in it; a half of a warp has sixteen.
__device__ void leave_column(const Ahead& to, std::int64_t at, float v, bool there) {
  const float sum = sum_across<1, kSixteen>(square(v));
  if (!there) return;
  to.rows[at] = __float2bfloat16_rn(v);
  if (at % kSixteen == 0) to.squares[at / kSixteen] = sum;
}

template <int Parts, bool Also>
__global__ void __launch_bounds__(32 * kMaxWarps) some_bf16(const Some a) {
  constexpr int kOutputs = Parts * 16;
  extern __shared__ float4 shared[];
  const Memory<kOutputs> m(shared, a);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int most = a.tiles * kRowsOfTile;  // rows
  const bool helps = warp == a.at_once * a.tiles;
  const int group = warp * a.part_of_65536 / 65536;  // which of the slices at hand this warp has
  const int tile = warp - group * a.tiles;
  __nv_bfloat16* const ws = m.ws + group * kOutputs * kPitch;
  __nv_bfloat16* const xs = m.xs + (group * most + tile * kRowsOfTile) * kPitch;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x) * kOutputs;
  const bool adds = a.epilogue == Epilogue::residual && a.out % 4 == 0;
  // Addresses are worked out before the inputs are there: of the weights and rows that a warp
  // multiplies, and of what a lane brings of its rows.
  const std::uint32_t w_at = shared_address(ws + lane % 16 * kPitch + lane / 16 * 8);
  const std::uint32_t x_at = shared_address(xs + lane % 8 * kPitch + lane / 8 * 8);

  std::int32_t rows = 0;
#pragma unroll 1
  for (int s0 = 0; s0 < a.slices; s0 += a.at_once) {
    const int s = s0 + group;
    const bool works = !helps && s < a.slices;
    const bool second = Also && s >= a.first_slices;
    const std::int32_t k0 = (second ? s - a.first_slices : s) * kSliceBf16;
    const std::int32_t pitch = second ? a.also.pitch : a.pitch;
    if (s0 > 0) __syncthreads();  // the slices before have been multiplied
    if (works) {
      // Four outputs at a time, every tile's warp some of them. Others than those that are stored
      // stay as they are: nobody takes their sums.
      const int first = tile * 4 + lane / 8;
      const int columns = pitch - k0;
      __nv_bfloat16* to = ws + first * kPitch + lane % 8 * 8;
      const __nv_bfloat16* w = (second ? static_cast<const __nv_bfloat16*>(a.also.w) : a.w) +
                               std::int64_t{out0 + first} * pitch + k0 + lane % 8 * 8;
#pragma unroll 1
      for (int o = first; o < kOutputs && out0 + o < a.stored; o += 4 * a.tiles) {
#pragma unroll
        for (int k = 0; k < kSliceBf16; k += kColumns) {
          if (k < columns) copy_16(to + k, w + k, 16);
        }
        w += 4 * a.tiles * pitch;
        to += 4 * a.tiles * kPitch;
      }
    } else if (helps && s0 == 0) {
      for (int o = lane; o < kOutputs; o += 32) {
        m.bias[o] = a.bias != nullptr && out0 + o < a.stored ? a.bias[out0 + o] : 0.0F;
        if (!Also) continue;
        m.also_bias[o] =
            a.also.bias != nullptr && out0 + o < a.stored ? a.also.bias[out0 + o] : 0.0F;
      }
    }
    const int first_row = tile * kRowsOfTile + lane / 8;
    const int column = lane % 8 * 8;
    const std::int32_t width = padded_bf16(second ? a.also.in : a.in);
    const std::int32_t left = width - k0 - column;
    const std::int64_t from = std::int64_t{first_row} * width + k0 + column;
    if (s0 == 0) rows = begin_with_rows(a.count, a.known);
    if (works) {
      const __nv_bfloat16* x = static_cast<const __nv_bfloat16*>(second ? a.also.x : a.x) + from;
      __nv_bfloat16* to = xs + lane / 8 * kPitch + column;
#pragma unroll
      for (int i = 0; i < kRowsOfTile / 4; ++i) {
        const bool there = first_row + i * 4 < rows;
#pragma unroll
        for (int k = 0; k < kSliceBf16; k += kColumns) {
          copy_16(to + k, x + k, there && k < left ? 16 : 0);
        }
        x += 4 * width;
        to += 4 * kPitch;
      }
    } else if (helps && s0 == 0) {
      if (lane < most) {
        m.by[lane] = sums_times(a.scale, a.squares, lane, rows, a.in, a.epsilon);
        if (Also) {
          m.also_by[lane] =
              sums_times(a.also.scale, a.also.squares, lane, rows, a.also.in, a.epsilon);
        }
      }
      for (int i = lane; adds && i < most * (kOutputs / 4); i += 32) {
        const int r = i / (kOutputs / 4);
        const int o = i % (kOutputs / 4) * 4;
        const bool inside = r < rows && out0 + o < a.out;
        const float* const y = static_cast<const float*>(a.y);
        copy_16(m.before + r * kOutputs + o, inside ? y + std::int64_t{r} * a.out + out0 + o : y,
                inside ? 16 : 0);
      }
    }
    commit_copies();
    wait_copies<0>();
    __syncthreads();

    if (works) {
      float sum[Parts][4] = {};
      const int end = min(kSliceBf16, pitch - k0);
      if (end == kSliceBf16) {
#pragma unroll
        for (int k = 0; k < kSliceBf16; k += 32) multiply_pair(sum, w_at + k * 2, x_at + k * 2);
      } else {
#pragma unroll 1
        for (int k = 0; k < end; k += 32) multiply_pair(sum, w_at + k * 2, x_at + k * 2);
      }
      const int row = tile * kRowsOfTile + lane % 4 * 2;
      float* const to = m.part + (s * most + row) * kOutputs + lane / 4;
#pragma unroll
      for (int p = 0; p < Parts; ++p) {
        to[p * 16] = sum[p][0];
        to[p * 16 + kOutputs] = sum[p][1];
        to[p * 16 + 8] = sum[p][2];
        to[p * 16 + kOutputs + 8] = sum[p][3];
      }
    }
  }
  const bool gated = a.epilogue == Epilogue::gated;
  const int width = gated ? kOutputs / 2 : kOutputs;
  const std::int32_t columns = gated ? padded_bf16(a.out / 2) : a.out;
  int r = 0;
  int o = 0;
  std::int64_t at = 0;
  bool there = false;
  const auto take = [&](int i) {
    r = gated ? i / (kOutputs / 2) : i / kOutputs;
    o = i - r * width;
    const std::int32_t column = out0 / (gated ? 2 : 1) + o;
    at = std::int64_t{r} * columns + column;
    there = r < rows && column < columns;
  };
  take(thread);  // while others still multiply
  __syncthreads();

#pragma unroll 1
  for (int i = thread; i < most * width;) {
    float v = 0;
    if (there) {
      const int first = gated ? o / 8 * 16 + o % 8 : o;  // gates and values lie in groups of eight
      const int second = gated ? first + 8 : first;
      const float* const part = m.part + r * kOutputs;
      float u = 0;
#pragma unroll 4
      for (int s = 0; s < (Also ? a.first_slices : a.slices); ++s) {
        v += part[s * most * kOutputs + first];
        u += part[s * most * kOutputs + second];
      }
      v = __fmaf_rn(v, m.by[r], m.bias[first]);
      u = __fmaf_rn(u, m.by[r], m.bias[second]);
      if (Also) {
        float w = 0;
        for (int s = a.first_slices; s < a.slices; ++s) w += part[s * most * kOutputs + first];
        v = add_residual(v, __fmaf_rn(w, m.also_by[r], m.also_bias[first]));
      }
      if (gated || a.silu || a.rounded) {
        if (!a.rounded) v = silu(v);
        static_cast<__nv_bfloat16*>(a.y)[at] = __float2bfloat16_rn(gated ? v * u : v);
      } else {
        float* const to = static_cast<float*>(a.y) + at;
        if (a.epilogue == Epilogue::residual) {
          v = add_residual(adds ? m.before[r * kOutputs + o] : *to, v);
        }
        *to = v;
      }
    }
    if (a.ahead.rows != nullptr) leave_column(a.ahead, at, v, there);
    i += static_cast<int>(blockDim.x);
    take(i);
  }
}

/// false where a block has not as much shared memory, or not for all slices if `at_once`.
template <int Parts>
bool run(Some a, const Stream& s, bool at_once = false) {
  a.part_of_65536 = (65536 + a.tiles - 1) / a.tiles;
  a.at_once = std::min(a.slices, (kMaxWarps - 1) / a.tiles);
  const int rounds = (a.slices + a.at_once - 1) / a.at_once;
  a.at_once = (a.slices + rounds - 1) / rounds;
  const auto bytes = [&] { return Memory<Parts * 16>::bytes(a.tiles, a.slices, a.at_once); };
  while (a.at_once > 1 && bytes() > static_cast<std::size_t>(s.shared_bytes)) --a.at_once;
  if (bytes() > static_cast<std::size_t>(s.shared_bytes)) return false;
  if (at_once && a.at_once < a.slices) return false;
  const auto start = [&](auto also) {
    constexpr auto kernel = some_bf16<Parts, also()>;
    allow_shared_memory<kernel>(bytes());
    const auto warps = static_cast<unsigned>(a.at_once * a.tiles + 1);
    launch(kernel, dim3(ceil_div(a.stored, Parts * 16)), dim3(32 * warps), bytes(), s, a);
  };
  if (a.also.w != nullptr) {
    start(std::true_type{});
  } else {
    start(std::false_type{});
  }
  return true;
}

}  // namespace

bool some_rows_fit(std::int32_t rows, std::int32_t inputs, const Stream& s) {
  if (rows > kSomeRows) return false;
  const int tiles = (rows + kRowsOfTile - 1) / kRowsOfTile;
  const int slices = slices_of(inputs) + 1;  // a summand begins with a slice of its own
  return Memory<16>::bytes(tiles, slices, 1) <= static_cast<std::size_t>(s.shared_bytes);
}

bool some_rows_bf16(const ProductArgs& a, const Stream& s) {
  if (a.gain != nullptr || a.rows.count > kSomeRows) return false;
  if (a.rows.count == 0) return true;
  const Some some{rows_product(a, s),
                  static_cast<const __nv_bfloat16*>(a.w),
                  a.also,
                  slices_of(a.in),
                  slices_of(a.in) + slices_of(a.also.in),
                  (a.rows.count + kRowsOfTile - 1) / kRowsOfTile,
                  0,
                  0};
  const std::int64_t weights = std::int64_t{a.stored} * a.pitch * 2;
  const bool many = weights > s.processors * kStreamedFrom;
  const bool wide = std::min(a.in, a.stored) >= kWideFrom;
  if ((many || wide) && streamed_rows_bf16(a, s)) return true;
  if (held_rows_bf16(a, s)) return true;
  // Wide blocks where narrow ones would come in more than one wave: rows are read less often.
  const auto waves = [&](int outputs) {
    return ceil_div(a.stored, outputs) > static_cast<unsigned>(s.processors);
  };
  if (some.tiles > 1 && waves(32) && !waves(48) && run<3>(some, s, true)) return true;
  return (waves(16) && run<2>(some, s)) || run<1>(some, s);
}

}  // namespace toto::cuda
