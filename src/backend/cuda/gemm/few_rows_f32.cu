// SPDX-License-Identifier: Apache-2.0
// Products in float32 with up to 24 rows: a thread block has eight of them or several groups of
// eight, and blocks of the same outputs read the weights from the cache. A block asks for all its
// weights at once, before it even knows that the inputs are there; where k is so large that they do
// not fit into shared memory, they come in rounds. Each warp has some slices of k (product.h) of a
// group of rows, and forms one sum for each (row, output). The sums of the slices are then added in
// order. Where operands are split or rounded (split.cuh), a slice here is three of those.
#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/gemm/split.cuh"
#include "backend/cuda/ops/norm.cuh"
#include "backend/cuda/ops2/row_squares.cuh"

namespace toto::cuda {
namespace {

constexpr int kPitch = kSlice + 4;  // floats: eight columns or rows lie in different banks
constexpr int kMaxWarps = 16;

constexpr int kSplits = kSlice / kSplitSlice;
static_assert(kSplits * kSplitSlice == kSlice);
constexpr int parts_of(Operands o) { return o == Operands::whole ? 1 : kSplits; }

/// Sums of a slice of length `end` for 8 * CW outputs, [row][output] to `part`; fused
/// multiply-adds. Lanes: 4 pairs of rows by 8 groups of CW outputs.
template <int CW>
__device__ void sum_slice(const float* xs, const float* ws, int end, float* part) {
  constexpr int kOutputs = 8 * CW;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 8 * 2;
  const int column = lane % 8;  // of each group of eight
  float sum[2][CW] = {};
  const float* const x0 = xs + row * kPitch;
  const float* const w0 = ws + column * kPitch;
#pragma unroll 4
  for (int k = 0; k < end; k += 4) {
    const float4 a = *reinterpret_cast<const float4*>(x0 + k);
    const float4 b = *reinterpret_cast<const float4*>(x0 + kPitch + k);
#pragma unroll
    for (int c = 0; c < CW; ++c) {
      const float4 v = *reinterpret_cast<const float4*>(w0 + c * 8 * kPitch + k);
      sum[0][c] = __fmaf_rn(v.x, a.x, sum[0][c]);
      sum[1][c] = __fmaf_rn(v.x, b.x, sum[1][c]);
      sum[0][c] = __fmaf_rn(v.y, a.y, sum[0][c]);
      sum[1][c] = __fmaf_rn(v.y, b.y, sum[1][c]);
      sum[0][c] = __fmaf_rn(v.z, a.z, sum[0][c]);
      sum[1][c] = __fmaf_rn(v.z, b.z, sum[1][c]);
      sum[0][c] = __fmaf_rn(v.w, a.w, sum[0][c]);
      sum[1][c] = __fmaf_rn(v.w, b.w, sum[1][c]);
    }
  }
#pragma unroll
  for (int c = 0; c < CW; ++c) {
    part[row * kOutputs + c * 8 + column] = sum[0][c];
    part[(row + 1) * kOutputs + c * 8 + column] = sum[1][c];
  }
}

/// The same for the slices of split.cuh that lie in one of here: [slice][row][output] to `part`,
/// whose slices are `rows` rows apart.
template <int CW, Operands O>
__device__ void sum_splits(const float* xs, const float* ws, int rows, float* part) {
  constexpr int kQuads = 2 * kSplits;
  constexpr int kOutputs = 8 * CW;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int at = lane % 8 * kPitch + lane / 8 * 4;
  SplitInputs<kSplits, O> x;
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    std::uint32_t r[4];
    load_matrices(r, xs + at + q * 16);
    x.set(q, {r[0], r[1], r[2], r[3]});
  }
#pragma unroll 1
  for (int c = 0; c < CW; ++c) {
    std::uint32_t w[kQuads][4];
#pragma unroll
    for (int q = 0; q < kQuads; ++q) load_matrices(w[q], ws + c * 8 * kPitch + at + q * 16);
    float2 sum[kSplits];
    x.multiply(sum, w);
#pragma unroll
    for (int i = 0; i < kSplits; ++i) {
      float* const to = part + (i * rows + lane / 4) * kOutputs + c * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(to) = sum[i];
    }
  }
}

/// What a thread block does: G groups of eight rows by 8 * CW outputs, all slices at once or in
/// rounds.
template <int CW, int G, Operands O, bool Rounds>
__device__ void multiply_block(const float* __restrict__ w, const float* __restrict__ bias,
                               const float* x, float* y, Rows count, bool known, std::int32_t out,
                               std::int32_t in, std::int32_t pitch, Epilogue epilogue,
                               bool activated, int slices, int in_round,
                               const float* __restrict__ gain, const float* scale, bool norm,
                               float epsilon) {
  constexpr int kOutputs = 8 * CW;
  constexpr int kRows = G * kFewRows;
  constexpr int kQuads = kSlice / 4;
  constexpr int kParts = parts_of(O);  // sums of a slice
  const int at_once = Rounds ? in_round : slices;
  extern __shared__ float4 shared[];
  auto* const memory = reinterpret_cast<float*>(shared);
  float* const ws = memory;                            // [at_once][kOutputs][kPitch]
  float* const xs = ws + at_once * kOutputs * kPitch;  // [at_once][kRows][kPitch]
  float* const part = xs + at_once * kRows * kPitch;   // [slices * kParts][kRows][kOutputs]
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const std::int32_t row0 = static_cast<std::int32_t>(blockIdx.x) * kRows;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.y) * kOutputs;
  x += std::int64_t{row0} * in;

  // A slice's weights and inputs are brought by as many warps as multiply them.
  const auto bring_weights = [&](int first, int count_of) {
    for (int unit = warp; unit < count_of * G; unit += warps) {
      const int s = unit / G;
      const std::int32_t k = (first + s) * kSlice + lane * 4;
      const float* from = w + std::int64_t{out0 + unit % G} * pitch + k;
      float* to = ws + (s * kOutputs + unit % G) * kPitch + lane * 4;
      for (int o = unit % G; o < kOutputs && lane < kQuads; o += G) {
        const bool inside = out0 + o < out && k < pitch;
        copy_16(to, inside ? from : w, inside ? 16 : 0);
        from += std::int64_t{G} * pitch;
        to += G * kPitch;
      }
    }
    commit_copies();
  };
  const auto bring_inputs = [&](int first, int count_of, std::int32_t most) {
    for (int unit = warp; unit < count_of * G; unit += warps) {
      const int s = unit / G;
      const std::int32_t k = (first + s) * kSlice + lane * 4;
      const float* from = x + std::int64_t{unit % G} * in + k;
      float* to = xs + (s * kRows + unit % G) * kPitch + lane * 4;
      for (int row = unit % G; row < most && lane < kQuads; row += G) {
        copy_16(to, k < in ? from : x, k < in ? 16 : 0);
        from += std::int64_t{G} * in;
        to += G * kPitch;
      }
    }
    commit_copies();
  };
  bring_weights(0, at_once);
  constexpr int kFours = kNormedWidth / 128;
  float4 gains[kFours];
  __shared__ float inverse[kRows];  // what sums of rows that are normed are multiplied with
  __shared__ float biases[kOutputs];
  if (gain != nullptr) load_part(gains, gain);
  for (int o = static_cast<int>(threadIdx.x); o < kOutputs; o += static_cast<int>(blockDim.x)) {
    biases[o] = bias != nullptr && out0 + o < out ? bias[out0 + o] : 0;
  }
  // Rows that nobody can ask for are zero; others are read without waiting for how many there are.
  const std::int32_t most = min(count.count - row0, kRows);
  for (int s = warp; s < at_once; s += warps) {
    for (int i = most * kQuads + lane; i < kRows * kQuads; i += 32) {
      const float4 zero{0, 0, 0, 0};
      *reinterpret_cast<float4*>(xs + (s * kRows + i / kQuads) * kPitch + i % kQuads * 4) = zero;
    }
  }
  const std::int32_t rows = begin_with_rows(count, known) - row0;
  if (scale != nullptr && threadIdx.x < static_cast<unsigned>(most)) {
    inverse[threadIdx.x] = scale[row0 + static_cast<int>(threadIdx.x)];
  }
  for (int row = warp; gain != nullptr && row < most; row += warps) {
    float4 v[kFours];
    load_part(v, x + std::int64_t{row} * in);
    const float own = norm_part(v, gains);
    if (lane == 0) inverse[row] = own;
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const int k = i * 128 + lane * 4;
      *reinterpret_cast<float4*>(xs + (k / kSlice * kRows + row) * kPitch + k % kSlice) = v[i];
    }
  }
  if (gain == nullptr) bring_inputs(0, at_once, most);
  // Which output a thread forms, and what that is added to: asked for while others arrive.
  const bool gated = epilogue == Epilogue::gated;
  const bool residual = epilogue == Epilogue::residual;
  const int width = gated ? kOutputs / 2 : kOutputs;
  const std::int32_t columns = gated ? out / 2 : out;
  int r = 0;
  int o = 0;
  float* result = nullptr;
  float before = 0;
  bool there = false;
  const auto take = [&](int i) {
    r = gated ? i / (kOutputs / 2) : i / kOutputs;
    o = i - r * width;
    const std::int32_t column = out0 / (gated ? 2 : 1) + o;
    there = r < min(rows, kRows) && column < columns;
    result = y + std::int64_t{row0 + r} * columns + column;
    if (residual && there) before = *result;
  };
  take(thread);
  wait_copies<0>();
  __syncwarp();
  if (G > 1 || norm || gain != nullptr) __syncthreads();
  if (norm) {
    float squares = 0;  // of the lane's row: one of the warp's
    int own = 0;
    for (int row = warp; row < most; row += warps) {
      const float found = row_squares(xs + row * kPitch, kRows * kPitch, in);
      squares = lane == own ? found : squares;
      ++own;
    }
    if (lane < own) inverse[warp + lane * warps] = inverse_root(squares, in, epsilon);
  }
#pragma unroll 1
  for (int first = 0;;) {
    const int here = min(at_once, slices - first);
    for (int i = warp; i < here * G; i += warps) {
      const int s = i / G;
      const int row = i % G * kFewRows;
      const float* const x0 = xs + (s * kRows + row) * kPitch;
      const float* const w0 = ws + s * kOutputs * kPitch;
      float* const to = part + ((first + s) * kParts * kRows + row) * kOutputs;
      if constexpr (O == Operands::whole) {
        sum_slice<CW>(x0, w0, min(kSlice, in - (first + s) * kSlice), to);
      } else {
        sum_splits<CW, O>(x0, w0, kRows, to);
      }
    }
    __syncthreads();
    if constexpr (!Rounds) break;
    first += here;
    if (first >= slices) break;
    const int next = min(at_once, slices - first);
    bring_weights(first, next);
    bring_inputs(first, next, most);
    wait_copies<0>();
    __syncthreads();
  }

  const int parts = O == Operands::whole ? slices : (in + kSplitSlice - 1) / kSplitSlice;
  const bool normed = norm || gain != nullptr || scale != nullptr;
  const auto total = [&](int output) {
    float sum = 0;
#pragma unroll 4
    for (int s = 0; s < parts; ++s) sum += part[(s * kRows + r) * kOutputs + output];
    return __fmaf_rn(sum, normed ? inverse[r] : 1.0F, biases[output]);
  };
#pragma unroll 1
  for (int i = thread; i < kRows * width;) {
    if (there) {
      if (gated) {
        *result = silu(total(2 * o)) * total(2 * o + 1);
      } else {
        float v = total(o);
        if (activated) v = silu(v);
        *result = residual ? before + v : v;
      }
    }
    i += static_cast<int>(blockDim.x);
    take(i);
  }
}

template <int CW, int G, Operands O, bool Rounds>
__global__ void __launch_bounds__(32 * kMaxWarps)
    few_f32(const float* __restrict__ w, const float* __restrict__ bias, const float* x, float* y,
            Rows count, bool known, std::int32_t out, std::int32_t in, std::int32_t pitch,
            Epilogue epilogue, bool activated, int slices, int at_once,
            const float* __restrict__ gain, const float* scale, bool norm, float epsilon) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  if constexpr (O == Operands::whole)  // others are Hopper's alone (operands_of)
#endif
  {
    multiply_block<CW, G, O, Rounds>(w, bias, x, y, count, known, out, in, pitch, epilogue,
                                     activated, slices, at_once, gain, scale, norm, epsilon);
  }
}

/// false where a block has not as much shared memory: in rounds, for all sums and one slice.
template <int CW, int G, Operands O, bool Rounds = false>
bool run(const ProductArgs& a, const Stream& s) {
  const int slices = (a.in + kSlice - 1) / kSlice;
  constexpr int kRows = G * kFewRows;
  constexpr std::size_t kOfSlice = (8 * CW + kRows) * kPitch * sizeof(float);
  constexpr std::size_t kSums = 8 * CW * kRows * parts_of(O) * sizeof(float);  // of a slice
  const std::size_t fixed =
      (kRows + 8 * CW) * sizeof(float) + kSums * static_cast<std::size_t>(slices);
  const auto room = static_cast<std::size_t>(s.shared_bytes);
  const int fit = fixed < room ? static_cast<int>((room - fixed) / kOfSlice) : 0;
  if (fit < (Rounds ? 1 : slices)) return false;
  const int rounds = (slices + fit - 1) / fit;
  const int at_once = (slices + rounds - 1) / rounds;
  const std::size_t bytes =
      kOfSlice * static_cast<std::size_t>(at_once) + kSums * static_cast<std::size_t>(slices);
  allow_shared_memory<few_f32<CW, G, O, Rounds>>(bytes);
  const int warps = at_once * G < kMaxWarps ? at_once * G : kMaxWarps;
  launch(few_f32<CW, G, O, Rounds>, dim3(ceil_div(a.rows.count, kRows), ceil_div(a.out, 8 * CW)),
         dim3(static_cast<unsigned>(32 * warps)), bytes, s, static_cast<const float*>(a.w), a.bias,
         static_cast<const float*>(a.x), static_cast<float*>(a.y), a.rows, s.calls_known(), a.out,
         a.in, a.pitch, a.epilogue, a.silu, slices, at_once, a.gain, a.scale, a.norm, a.epsilon);
  return true;
}

/// The fewest outputs a block that leave no processor more than one block.
template <int G, Operands O>
bool choose_outputs(const ProductArgs& a, const Stream& s) {
  const auto blocks = [&](int outputs) { return static_cast<int>(ceil_div(a.out, outputs)); };
  if (blocks(8) <= s.processors) return run<1, G, O>(a, s);
  if (blocks(16) <= s.processors) return run<2, G, O>(a, s);
  return run<3, G, O>(a, s) || run<2, G, O>(a, s) || run<1, G, O>(a, s);
}

template <Operands O>
bool choose(const ProductArgs& a, const Stream& s) {
  // Beyond so many rows tiles of tf32 are faster, where the widest blocks here would be more than
  // there are processors. Tiles have no SiLU.
  constexpr int kRoundedRows = 16;
  if (O == Operands::rounded && a.rows.count > kRoundedRows && !a.silu &&
      static_cast<int>(ceil_div(a.out, 24)) > s.processors) {
    return false;
  }
  if constexpr (O != Operands::whole) {
    // Each eight or sixteen rows for themselves where processors would have nothing to do
    // otherwise; else all rows in one block, where there is room: weights and inputs then come from
    // the cache less often.
    const auto all_at_work = [&](int rows) {
      return ceil_div(a.out, 8) * ceil_div(a.rows.count, rows) <=
             static_cast<unsigned>(s.processors);
    };
    if (a.rows.count > kFewRows && all_at_work(kFewRows) && run<1, 1, O>(a, s)) return true;
    if (a.rows.count > 2 * kFewRows && all_at_work(2 * kFewRows) && run<1, 2, O>(a, s)) return true;
    if (a.rows.count > 2 * kFewRows && choose_outputs<3, O>(a, s)) return true;
    if (a.rows.count > kFewRows && choose_outputs<2, O>(a, s)) return true;
  }
  // Wide blocks where there are many outputs: the inputs are read less often.
  const bool wide = a.out >= 4096;
  if (wide ? run<3, 1, O>(a, s) : run<1, 1, O>(a, s)) return true;
  // Norms of rows that come in pieces are not formed here.
  const bool normed = a.norm || a.gain != nullptr;
  return !normed && (wide ? run<3, 1, O, true>(a, s) : run<1, 1, O, true>(a, s));
}

}  // namespace

bool few_rows_f32(const ProductArgs& a, const Stream& s) {
  if (a.in % 4 != 0 || a.rows.count > kSomeRowsF32) return false;
  switch (a.operands) {
    case Operands::whole:
      return choose<Operands::whole>(a, s);
    case Operands::split:
      return choose<Operands::split>(a, s);
    case Operands::rounded:
      return choose<Operands::rounded>(a, s);
  }
  return false;
}

}  // namespace toto::cuda
