// SPDX-License-Identifier: Apache-2.0
// Flag-in-data exchange (NCCL calls it LL): words that a thread block publishes to other blocks of
// the same launch without a barrier, or to the next launch where that begins early (EarlyWords in
// early_words.h). The memory is full of kEmptyWord first. A producer stores a word that is not
// empty; a consumer polls until it is not. Each word says by itself that it has arrived, so the
// order in which words become visible does not matter.
//
// publish: store. peek: load what is there now. wait: poll until all of it has arrived.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/runtime/empty_word.h"

namespace toto::cuda::flag {

/// After so many polls without an answer, ten seconds or more, the launch ends with an error
/// instead of holding the device for ever.
inline constexpr std::uint32_t kMaxPolls = 1U << 26;

/// Any word as one that may be published: another NaN instead of kEmptyWord.
__device__ inline float publishable(std::uint32_t word) {
  return __uint_as_float(min(word, kEmptyWord - 1));
}

__device__ inline void publish(float* at, float v) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(__float_as_uint(v)) : "memory");
}
/// Two neighbours; `at` is aligned to eight bytes.
__device__ inline void publish_pair(float* at, const float2& v) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(__float_as_uint(v.x)),
               "r"(__float_as_uint(v.y))
               : "memory");
}

__device__ inline uint4 peek_four(const void* at) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at)
               : "memory");
  return v;
}

__device__ inline uint2 peek_pair(const float* at) {
  uint2 v;
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(at)
               : "memory");
  return v;
}
/// Waits for two neighbours, of which `v` was peeked before.
__device__ inline float2 wait_peeked_pair(uint2 v, const float* at) {
  for (std::uint32_t polls = 0; max(v.x, v.y) == kEmptyWord; ++polls) {
    if (polls == kMaxPolls) __trap();
    v = peek_pair(at);
  }
  return {__uint_as_float(v.x), __uint_as_float(v.y)};
}

__device__ inline std::uint32_t highest(const uint4& v) {
  return max(max(v.x, v.y), max(v.z, v.w));
}

/// N times sixteen bytes as they are now: v[i] from at(i).
template <int N, typename At>
__device__ void peek_fours(uint4 (&v)[N], const At& at) {
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = peek_four(at(i));
}

template <int N>
__device__ bool all_there(const uint4 (&v)[N]) {
  std::uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) most = max(most, highest(v[i]));
  return most != kEmptyWord;
}
__device__ inline bool three_there(const uint4& v) { return max(max(v.x, v.y), v.z) != kEmptyWord; }

/// Waits for N times sixteen bytes, of which `v` was peeked before.
template <int N, typename At>
__device__ void wait_peeked_fours(uint4 (&v)[N], const At& at) {
  for (std::uint32_t polls = 0; !all_there(v); ++polls) {
    if (polls == kMaxPolls) __trap();
    peek_fours(v, at);
  }
}

/// Waits for N times sixteen bytes: v[i] from at(i). If not `any`, v stays as it is.
template <int N, typename At>
__device__ void wait_fours(uint4 (&v)[N], const At& at, bool any = true) {
  std::uint32_t polls = 0;
#pragma unroll 1
  do {
    if (polls++ == kMaxPolls) __trap();
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (any) v[i] = peek_four(at(i));
    }
  } while (!all_there(v));
}

/// Waits for one word.
__device__ inline void wait_word(const float* at) {
  std::uint32_t v = kEmptyWord;
  for (std::uint32_t polls = 0; v == kEmptyWord; ++polls) {
    if (polls == kMaxPolls) __trap();
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
  }
}

}  // namespace toto::cuda::flag
