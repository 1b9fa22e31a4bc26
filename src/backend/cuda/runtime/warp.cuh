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

/// Many quotients by one divisor that is `ordinary`, by the steps of a division, of which some are
/// then taken once. They are its bits, unless a quotient is below 1e-30.
class Divisor {
 public:
  __device__ explicit Divisor(float by) : by_(by) {
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse_) : "f"(by));
    inverse_ = __fmaf_rn(__fmaf_rn(-by, inverse_, 1.0F), inverse_, inverse_);
  }
  static __device__ bool ordinary(float by) { return by > 1e-15F && by < 1e15F; }
  __device__ float operator()(float v) const {
    const float near = v * inverse_;
    const float quotient = __fmaf_rn(__fmaf_rn(-by_, near, v), inverse_, near);
    return v == 0 ? v : quotient;
  }

 private:
  float by_, inverse_;
};

}  // namespace toto::cuda
