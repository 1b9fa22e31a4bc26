// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with up to 32 rows, of any width: the weights are streamed once. A thread
// block has 16 or 32 outputs, each warp some slices of k: it asks for the weights of its first
// slice before it even knows that the inputs are there. Inputs are bfloat16, or float32 rows that
// are normed on the way (row_squares.cuh). Every output is summed as product.h says.
#include <algorithm>

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/row_squares.cuh"

namespace toto::cuda {
namespace {

constexpr int kPitch = kSliceBf16 + 8;  // eight rows lie in different banks
constexpr int kChunks = kSliceBf16 / 8;
constexpr int kMaxWarps = 8;
constexpr int kRowsOfTile = 8;

/// Sizes for Tiles * 8 rows and Parts * 16 outputs.
template <int Tiles, int Parts>
struct Shape {
  static constexpr int kRows = Tiles * kRowsOfTile;
  static constexpr int kOutputs = Parts * 16;
  static constexpr int kWarpElements = (kOutputs + kRows) * kPitch;  // of a warp's slice
  static constexpr std::size_t bytes(int warps, int slices) {
    return static_cast<std::size_t>(warps) * kWarpElements * 2 +
           static_cast<std::size_t>(slices) * kRows * (kOutputs + 1) * sizeof(float);
  }
};

struct Some {
  const __nv_bfloat16* w;
  const float* bias;
  const float* scale;  // of the sums of rows, or nullptr
  const void* x;       // bfloat16, or float32 if `norm`
  void* y;
  Rows count;
  std::int32_t out, stored, in, pitch;
  Epilogue epilogue;
  bool silu, norm;
  float epsilon;
  int slices;
};

template <int Tiles, int Parts>
__global__ void __launch_bounds__(32 * kMaxWarps) some_bf16(Some a) {
  using S = Shape<Tiles, Parts>;
  extern __shared__ float4 shared[];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  auto* const ws = reinterpret_cast<__nv_bfloat16*>(shared) + warp * S::kWarpElements;
  __nv_bfloat16* const xs = ws + S::kOutputs * kPitch;  // [kRows][kPitch]
  auto* const part = reinterpret_cast<float*>(reinterpret_cast<__nv_bfloat16*>(shared) +
                                              warps * S::kWarpElements);  // [slices][rows][outputs]
  float* const squares = part + a.slices * S::kRows * S::kOutputs;        // [slices][rows]
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x) * S::kOutputs;

  const auto bring_weights = [&](int s) {
#pragma unroll 4
    for (int i = lane; i < S::kOutputs * kChunks; i += 32) {
      const int o = i / kChunks;
      const int k = i % kChunks * 8;
      const bool inside = out0 + o < a.stored && s * kSliceBf16 + k < a.pitch;
      copy_16(ws + o * kPitch + k,
              inside ? a.w + std::int64_t{out0 + o} * a.pitch + s * kSliceBf16 + k : a.w,
              inside ? 16 : 0);
    }
    commit_copies();
  };
  if (warp < a.slices) bring_weights(warp);
  begin_kernel();
  const std::int32_t rows = live_rows(a.count);
  const std::int32_t row_width = padded_bf16(a.in);

  for (int s = warp; s < a.slices; s += warps) {
    if (s != warp) bring_weights(s);
    if (a.norm) {
      const auto* const x = static_cast<const float*>(a.x) + s * kSliceBf16;
      const int half = lane / kSliceLanes;
      const int own = lane % kSliceLanes;
#pragma unroll 4
      for (int r = half; r < S::kRows; r += 2) {
        float4 v[kSliceFours];
        load_slice(v, x + std::int64_t{r} * a.in, own, r < rows ? a.in - s * kSliceBf16 : 0);
        const float sum = slice_squares(v);
        if (own == 0) squares[s * S::kRows + r] = sum;
#pragma unroll
        for (int i = 0; i < kSliceFours; ++i) {
          *reinterpret_cast<uint2*>(xs + r * kPitch + (own + i * kSliceLanes) * 4) =
              four_bf16(v[i]);
        }
      }
    } else {
      const auto* const x = static_cast<const __nv_bfloat16*>(a.x);
#pragma unroll 4
      for (int i = lane; i < S::kRows * kChunks; i += 32) {
        const int r = i / kChunks;
        const int k = i % kChunks * 8;
        const bool inside = r < rows && s * kSliceBf16 + k < row_width;
        copy_16(xs + r * kPitch + k,
                inside ? x + std::int64_t{r} * row_width + s * kSliceBf16 + k : x, inside ? 16 : 0);
      }
      commit_copies();
    }
    wait_copies<0>();
    __syncwarp();

    float sum[Parts][Tiles][4] = {};
    const int end = min(kSliceBf16, a.pitch - s * kSliceBf16);
#pragma unroll 2
    for (int k = 0; k < end; k += 16) {
      std::uint32_t w[Parts][4];
#pragma unroll
      for (int p = 0; p < Parts; ++p) {
        load_matrices(w[p], ws + (p * 16 + lane % 16) * kPitch + k + lane / 16 * 8);
      }
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        std::uint32_t x[2];
        load_matrices(x, xs + (t * kRowsOfTile + lane % 8) * kPitch + k + lane / 8 % 2 * 8);
#pragma unroll
        for (int p = 0; p < Parts; ++p) multiply_add(sum[p][t], w[p], x[0], x[1]);
      }
    }
    __syncwarp();  // before the next slice is written over this one
#pragma unroll
    for (int p = 0; p < Parts; ++p) {
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const int row = t * kRowsOfTile + lane % 4 * 2;
        float* const to = part + (s * S::kRows + row) * S::kOutputs + p * 16 + lane / 4;
        to[0] = sum[p][t][0];
        to[S::kOutputs] = sum[p][t][1];
        to[8] = sum[p][t][2];
        to[S::kOutputs + 8] = sum[p][t][3];
      }
    }
  }
  __syncthreads();

  const auto scale_of = [&](int r) {
    if (a.norm) {
      float all = 0;
      for (int s = 0; s < a.slices; ++s) all += squares[s * S::kRows + r];
      return inverse_root(all, a.in, a.epsilon);
    }
    return a.scale != nullptr ? a.scale[r] : 1.0F;
  };
  const auto total = [&](int r, int o, float by) {
    float sum = 0;
    for (int s = 0; s < a.slices; ++s) sum += part[(s * S::kRows + r) * S::kOutputs + o];
    return __fmaf_rn(sum, by, a.bias == nullptr ? 0.0F : a.bias[out0 + o]);
  };
  const bool gated = a.epilogue == Epilogue::gated;
  const int width = gated ? S::kOutputs / 2 : S::kOutputs;
  const std::int32_t columns = gated ? padded_bf16(a.out / 2) : a.out;
  for (int i = thread; i < S::kRows * width; i += static_cast<int>(blockDim.x)) {
    const int r = i / width;
    const int o = i % width;
    const std::int32_t column = out0 / (gated ? 2 : 1) + o;
    if (r >= rows || column >= columns) continue;
    const std::int64_t at = std::int64_t{r} * columns + column;
    const float by = scale_of(r);
    if (gated) {  // gates and values lie in groups of eight
      const int gate = o / 8 * 16 + o % 8;
      static_cast<__nv_bfloat16*>(a.y)[at] =
          __float2bfloat16_rn(silu(total(r, gate, by)) * total(r, gate + 8, by));
      continue;
    }
    const float v = total(r, o, by);
    if (a.silu) {
      static_cast<__nv_bfloat16*>(a.y)[at] = __float2bfloat16_rn(silu(v));
    } else {
      float* const to = static_cast<float*>(a.y) + at;
      *to = a.epilogue == Epilogue::residual ? *to + v : v;
    }
  }
}

template <int Tiles, int Parts>
bool run(const Some& a, const Stream& s) {
  const int warps = std::min(a.slices, kMaxWarps);
  const std::size_t bytes = Shape<Tiles, Parts>::bytes(warps, a.slices);
  if (bytes > static_cast<std::size_t>(s.shared_bytes)) return false;
  allow_shared_memory<some_bf16<Tiles, Parts>>(bytes);
  launch(some_bf16<Tiles, Parts>, dim3(ceil_div(a.stored, Shape<Tiles, Parts>::kOutputs)),
         dim3(static_cast<unsigned>(32 * warps)), bytes, s, a);
  return true;
}

template <int Tiles>
bool choose(const Some& a, const Stream& s) {
  // Wide blocks where narrow ones would come in more than one wave: rows are read less often.
  const bool wide = ceil_div(a.stored, 16) > static_cast<unsigned>(s.processors);
  return (wide && run<Tiles, 2>(a, s)) || run<Tiles, 1>(a, s);
}

}  // namespace

bool some_rows_bf16(const ProductArgs& a, const Stream& s) {
  if (a.gain != nullptr || a.rows.count > kSomeRows) return false;
  if (a.norm && a.in % 4 != 0) return false;
  const Some some{static_cast<const __nv_bfloat16*>(a.w),
                  a.bias,
                  a.scale,
                  a.x,
                  a.y,
                  a.rows,
                  a.out,
                  a.stored,
                  a.in,
                  a.pitch,
                  a.epilogue,
                  a.silu,
                  a.norm,
                  a.epsilon,
                  (a.in + kSliceBf16 - 1) / kSliceBf16};
  switch ((a.rows.count + kRowsOfTile - 1) / kRowsOfTile) {
    case 0:
      return true;
    case 1:
      return choose<1>(some, s);
    case 2:
      return choose<2>(some, s);
    case 3:
      return choose<3>(some, s);
    default:
      return choose<4>(some, s);
  }
}

}  // namespace toto::cuda
