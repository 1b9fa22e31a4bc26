// SPDX-License-Identifier: Apache-2.0
// Words that one block of threads hands to others of the same launch without a barrier, or of the
// next one where that begins early (EarlyWords in kernels.h): a wire is memory full of `kNothing`,
// a word that arithmetic never leaves (a NaN that it makes is 0x7FFFFFFF). Who writes a word makes
// it something else, who reads it asks until it is. So each word says by itself that it is there,
// and no order between words is needed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace toto::cuda::wire {

inline constexpr std::uint32_t kNothing = 0xFFFFFFFFU;
/// So many questions without an answer, some ten seconds at least, end the launch with an error
/// instead of holding the device for ever.
inline constexpr std::uint32_t kPatience = 1U << 26;

/// A word that may be any, as one that may be put: another NaN instead of kNothing.
__device__ inline float something(std::uint32_t word) {
  return __uint_as_float(min(word, kNothing - 1));
}

__device__ inline void put(float* at, float v) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(__float_as_uint(v)) : "memory");
}
/// Two side by side; `at` is aligned to eight bytes.
__device__ inline void put_pair(float* at, const float2& v) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(__float_as_uint(v.x)),
               "r"(__float_as_uint(v.y))
               : "memory");
}

__device__ inline uint4 look_four(const void* at) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at)
               : "memory");
  return v;
}

__device__ inline uint2 look_pair(const float* at) {
  uint2 v;
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(at)
               : "memory");
  return v;
}
/// Two side by side once they are there, which were looked at before.
__device__ inline float2 take_pair_looked_at(uint2 v, const float* at) {
  for (std::uint32_t asked = 0; max(v.x, v.y) == kNothing; ++asked) {
    if (asked == kPatience) __trap();
    v = look_pair(at);
  }
  return {__uint_as_float(v.x), __uint_as_float(v.y)};
}

__device__ inline std::uint32_t highest(const uint4& v) {
  return max(max(v.x, v.y), max(v.z, v.w));
}

/// N times sixteen bytes as they are now: v[i] from at(i).
template <int N, typename At>
__device__ void look_fours(uint4 (&v)[N], const At& at) {
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = look_four(at(i));
}

template <int N>
__device__ bool all_there(const uint4 (&v)[N]) {
  std::uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) most = max(most, highest(v[i]));
  return most != kNothing;
}
__device__ inline bool three_there(const uint4& v) { return max(max(v.x, v.y), v.z) != kNothing; }

/// The same once they are all there, if they were looked at before.
template <int N, typename At>
__device__ void take_fours_looked_at(uint4 (&v)[N], const At& at) {
  for (std::uint32_t asked = 0; !all_there(v); ++asked) {
    if (asked == kPatience) __trap();
    look_fours(v, at);
  }
}

/// N times sixteen bytes once they are there: v[i] from at(i); if not `any`, none.
template <int N, typename At>
__device__ void take_fours(uint4 (&v)[N], const At& at, bool any = true) {
  std::uint32_t asked = 0;
#pragma unroll 1
  do {
    if (asked++ == kPatience) __trap();
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (any) v[i] = look_four(at(i));
    }
  } while (!all_there(v));
}

/// Until a word is there.
__device__ inline void await_word(const float* at) {
  std::uint32_t v = kNothing;
  for (std::uint32_t asked = 0; v == kNothing; ++asked) {
    if (asked == kPatience) __trap();
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
  }
}

}  // namespace toto::cuda::wire
