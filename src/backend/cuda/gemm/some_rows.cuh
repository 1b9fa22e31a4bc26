// SPDX-License-Identifier: Apache-2.0
// What products in bfloat16 with up to 32 rows have in common: how rows and weights lie in shared
// memory, and what the blocks of a cluster hand to each other.
#pragma once

#include "backend/cuda/gemm/product.h"

namespace toto::cuda {

inline constexpr int kPitch = kSliceBf16 + 8;  // eight rows lie in different banks
inline constexpr int kRowsOfTile = 8;
/// Eight lanes copy so many columns.
inline constexpr int kColumns = kPitchBf16;
static_assert(kSliceBf16 % kColumns == 0 && kColumns == 64);

/// Stores into the shared memory of block `rank` of the cluster, at the place of `own` here.
__device__ inline void store_at(std::uint32_t own, int rank, float v) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "st.shared::cluster.f32 [there], %2;\n}" ::"r"(own),
      "r"(rank), "f"(v)
      : "memory");
#endif
}
/// What this block has stored is there for the cluster.
__device__ inline void arrive_in_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
/// This block is there, no more: a release would wait until what it has stored is seen everywhere.
__device__ inline void begin_in_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ inline void await_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

}  // namespace toto::cuda
