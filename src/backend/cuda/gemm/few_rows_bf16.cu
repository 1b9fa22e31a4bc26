// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with up to eight rows, normed on the way with a gain (others are in
// some_rows_bf16.cu): the weights are streamed once. A block has 16 outputs, each warp some slices
// of k, all of whose weights it asks for at once.
#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/norm.cuh"

namespace toto::cuda {
namespace {

constexpr int kOutputs = 16;
constexpr int kPitch = kSliceBf16 + 8;  // eight rows lie in different banks
constexpr int kChunks = kSliceBf16 / 8;
constexpr int kMaxWarps = 8;

__global__ void __launch_bounds__(32 * kMaxWarps)
    few_bf16(const __nv_bfloat16* __restrict__ w, const float* __restrict__ bias, const void* x_any,
             void* y, Rows count, bool known, std::int32_t out, std::int32_t stored,
             std::int32_t in, std::int32_t pitch, Epilogue epilogue, int slices,
             const float* __restrict__ gain) {
  extern __shared__ float4 shared[];
  auto* const ws = reinterpret_cast<__nv_bfloat16*>(shared);  // [slices][kOutputs][kPitch]
  __nv_bfloat16* const xs = ws + slices * kOutputs * kPitch;  // [slices][kFewRows][kPitch]
  auto* const part = reinterpret_cast<float*>(xs + slices * kFewRows * kPitch);
  const int warp = static_cast<int>(threadIdx.x) / 32;  // part: [slices][rows][outputs]
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x) * kOutputs;

  for (int s = warp; s < slices; s += warps) {
    for (int i = lane; i < kOutputs * kChunks; i += 32) {
      const int o = i / kChunks;
      const int k = i % kChunks * 8;
      const bool inside = out0 + o < stored && s * kSliceBf16 + k < pitch;
      copy_16(ws + (s * kOutputs + o) * kPitch + k,
              inside ? w + std::int64_t{out0 + o} * pitch + s * kSliceBf16 + k : w,
              inside ? 16 : 0);
    }
  }
  commit_copies();
  const auto* const x = static_cast<const __nv_bfloat16*>(x_any);
  constexpr int kFours = kNormedWidth / 128;
  float4 gains[kFours];
  __shared__ float inverse[kFewRows];  // of the roots of rows that are to be normed
  if (gain != nullptr) load_part(gains, gain);
  const std::int32_t rows = begin_with_rows(count, known);
  const std::int32_t row_width = padded_bf16(in);
  for (int row = warp; gain != nullptr && row < kFewRows; row += warps) {
    float4 v[kFours] = {};
    if (row < rows) {
      load_part(v, static_cast<const float*>(x_any) + std::int64_t{row} * in);
      const float own = norm_part(v, gains);
      if (lane == 0) inverse[row] = own;
    }
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const int k = i * 128 + lane * 4;
      auto* const to = reinterpret_cast<__nv_bfloat162*>(
          xs + (k / kSliceBf16 * kFewRows + row) * kPitch + k % kSliceBf16);
      to[0] = __floats2bfloat162_rn(v[i].x, v[i].y);
      to[1] = __floats2bfloat162_rn(v[i].z, v[i].w);
    }
  }
  for (int s = warp; gain == nullptr && s < slices; s += warps) {
    for (int i = lane; i < kFewRows * kChunks; i += 32) {
      const int row = i / kChunks;
      const int k = i % kChunks * 8;
      const bool inside = row < rows && s * kSliceBf16 + k < row_width;
      copy_16(xs + (s * kFewRows + row) * kPitch + k,
              inside ? x + std::int64_t{row} * row_width + s * kSliceBf16 + k : x, inside ? 16 : 0);
    }
  }
  commit_copies();
  wait_copies<0>();
  __syncwarp();
  if (gain != nullptr) __syncthreads();

  for (int s = warp; s < slices; s += warps) {
    float sum[4] = {};
    // As many steps as the kernel for many rows takes: whole depths of the padded matrix.
    const int end = min(kSliceBf16, pitch - s * kSliceBf16);
    for (int k = 0; k < end; k += 16) {
      std::uint32_t a[4];
      std::uint32_t b[2];
      load_matrices(a, ws + (s * kOutputs + lane % 16) * kPitch + k + lane / 16 * 8);
      load_matrices(b, xs + (s * kFewRows + lane % 8) * kPitch + k + lane / 8 % 2 * 8);
      multiply_add(sum, a, b[0], b[1]);
    }
    float* const to = part + (s * kFewRows + lane % 4 * 2) * kOutputs + lane / 4;
    to[0] = sum[0];
    to[kOutputs] = sum[1];
    to[8] = sum[2];
    to[kOutputs + 8] = sum[3];
  }
  __syncthreads();

  const auto total = [&](int r, int o) {
    float sum = 0;
    for (int s = 0; s < slices; ++s) sum += part[(s * kFewRows + r) * kOutputs + o];
    return __fmaf_rn(sum, gain == nullptr ? 1.0F : inverse[r],
                     bias == nullptr ? 0.0F : bias[out0 + o]);
  };
  const bool gated = epilogue == Epilogue::gated;
  const int width = gated ? kOutputs / 2 : kOutputs;
  const std::int32_t columns = gated ? padded_bf16(out / 2) : out;
  for (int i = static_cast<int>(threadIdx.x); i < kFewRows * width;
       i += static_cast<int>(blockDim.x)) {
    const int r = i / width;
    const int o = i % width;
    const std::int32_t column = out0 / (gated ? 2 : 1) + o;
    if (r >= rows || column >= columns) continue;
    if (gated) {
      static_cast<__nv_bfloat16*>(y)[std::int64_t{r} * columns + column] =
          __float2bfloat16_rn(silu(total(r, o)) * total(r, o + 8));
    } else {
      float* const to = static_cast<float*>(y) + std::int64_t{r} * columns + column;
      const float v = total(r, o);
      *to = epilogue == Epilogue::residual ? add_residual(*to, v) : v;
    }
  }
}

}  // namespace

bool few_rows_bf16(const ProductArgs& a, const Stream& s) {
  if (a.scale != nullptr) return false;
  const int slices = (a.in + kSliceBf16 - 1) / kSliceBf16;
  const std::size_t bytes =
      static_cast<std::size_t>(slices) *
      ((kOutputs + kFewRows) * kPitch * 2 + kFewRows * kOutputs * sizeof(float));
  // Not for 3072 inputs where a thread block has less shared memory than the A100's.
  if (bytes + sizeof(float) * kFewRows > static_cast<std::size_t>(s.shared_bytes)) return false;
  allow_shared_memory<few_bf16>(bytes);
  const int warps = slices < kMaxWarps ? slices : kMaxWarps;
  launch(few_bf16, dim3(ceil_div(a.stored, kOutputs)), dim3(static_cast<unsigned>(32 * warps)),
         bytes, s, static_cast<const __nv_bfloat16*>(a.w), a.bias, a.x, a.y, a.rows,
         s.calls_known(), a.out, a.stored, a.in, a.pitch, a.epilogue, slices, a.gain);
  return true;
}

}  // namespace toto::cuda
