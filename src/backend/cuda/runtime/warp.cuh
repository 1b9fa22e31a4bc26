// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp form together, and values as outputs of either type.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace toto::cuda {

/// The largest, or the sum, over `Lanes` neighbouring lanes; all of a warp where none are named.
template <int Lanes = 32>
__device__ float highest_of_lanes(float v) {
#pragma unroll
  for (int offset = Lanes / 2; offset > 0; offset /= 2) {
    v = fmaxf(v, __shfl_xor_sync(~0U, v, offset));
  }
  return v;
}
template <int Lanes = 32, typename T>
__device__ T sum_of_lanes(T v) {
#pragma unroll
  for (int offset = Lanes / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(~0U, v, offset);
  return v;
}

__device__ inline void put(float* y, std::int64_t at, float v) { y[at] = v; }
__device__ inline void put(__nv_bfloat16* y, std::int64_t at, float v) {
  y[at] = __float2bfloat16_rn(v);
}
__device__ inline void put_four(float* y, const float4& v) { *reinterpret_cast<float4*>(y) = v; }
__device__ inline void put_four(__nv_bfloat16* y, const float4& v) {
  auto* const to = reinterpret_cast<__nv_bfloat162*>(y);
  to[0] = __floats2bfloat162_rn(v.x, v.y);
  to[1] = __floats2bfloat162_rn(v.z, v.w);
}

}  // namespace toto::cuda
