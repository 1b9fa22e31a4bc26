// SPDX-License-Identifier: Apache-2.0
// Running sums of float32 values in float64 where no sum is rounded, so that their order does not
// matter and a block of threads can form them side by side.
#pragma once

#include <cuda_runtime.h>

#include <climits>
#include <cstdint>

#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda {

/// Powers of two that values lie between: all are multiples of 2^low and below 2^high.
struct Powers {
  int low = INT_MAX;
  int high = INT_MIN;

  __device__ void take(float v) {
    const std::uint32_t bits = __float_as_uint(v) & 0x7FFFFFFFU;
    if (bits == 0) return;
    const int exponent = static_cast<int>(bits >> 23U);
    const std::uint32_t mantissa = (bits & 0x7FFFFFU) | (exponent == 0 ? 0U : 0x800000U);
    const int last = max(exponent, 1) - 150;  // what the last bit of the mantissa stands for
    low = min(low, last + __ffs(static_cast<int>(mantissa)) - 1);
    high = max(high, exponent == 255 ? INT_MAX / 2 : last + 24);  // NaN and infinity: no sum
  }
};

/// Warps of a block of threads at most.
inline constexpr int kMaxScanWarps = 16;

/// What the warps of a block tell each other.
struct ScanShared {
  int low[kMaxScanWarps];
  int high[kMaxScanWarps];
  double sum[kMaxScanWarps];
  std::int32_t count[kMaxScanWarps];
};

/// Running sums of exact terms and running counts in place, from 0 and `count` on, if sums of `n`
/// values that lie between the powers of all threads are exact; otherwise nothing is done. All
/// threads of the block, which may read them at once. Returns whether they are.
__device__ inline bool run_up_if_exact(const Powers& own, double* sum, std::int32_t* counts,
                                       std::int32_t n, std::int32_t count, ScanShared& s) {
  constexpr int kBits = 53;  // of a float64
  const int thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  const int lane = thread % 32;
  const int low = __reduce_min_sync(~0U, own.low);
  const int high = __reduce_max_sync(~0U, own.high);
  const std::int32_t each = (n + threads - 1) / threads;
  const std::int32_t first = min(thread * each, n);
  const std::int32_t end = min(first + each, n);
  double total = 0;
  std::int32_t number = 0;
  for (std::int32_t i = first; i < end; ++i) {
    total += sum[i];
    number += counts[i];
  }
  double up_to = total;  // with this thread's
  std::int32_t number_up_to = number;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const double before = __shfl_up_sync(~0U, up_to, offset);
    const std::int32_t number_before = __shfl_up_sync(~0U, number_up_to, offset);
    if (lane < offset) continue;
    up_to += before;
    number_up_to += number_before;
  }
  if (lane == 31) {
    s.low[thread / 32] = low;
    s.high[thread / 32] = high;
    s.sum[thread / 32] = up_to;
    s.count[thread / 32] = number_up_to;
  }
  __syncthreads();
  const bool there = lane < threads / 32;
  const int least = __reduce_min_sync(~0U, there ? s.low[lane] : INT_MAX);
  const int most = __reduce_max_sync(~0U, there ? s.high[lane] : INT_MIN);
  const int longer = 32 - __clz(n);  // 2^longer > n
  const bool none = most == INT_MIN;
  if (!none && (most >= INT_MAX / 2 || most + longer - least > kBits)) return false;
  const bool before = lane < thread / 32;
  double running = up_to - total + sum_of_lanes(before ? s.sum[lane] : 0);
  count += number_up_to - number + __reduce_add_sync(~0U, before ? s.count[lane] : 0);
  for (std::int32_t i = first; i < end; ++i) {
    sum[i] = running += sum[i];
    counts[i] = count += counts[i];
  }
  __syncthreads();
  return true;
}

}  // namespace toto::cuda
