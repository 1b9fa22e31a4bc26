// SPDX-License-Identifier: Apache-2.0
// What products in bfloat16 with up to 32 rows have in common: what they are told, and how the
// blocks of a cluster meet.
#pragma once

#include "backend/cuda/gemm/product.h"

namespace toto::cuda {

inline constexpr int kRowsOfTile = 8;

constexpr int slices_of(std::int32_t in) { return (in + kSliceBf16 - 1) / kSliceBf16; }

/// Of a product, what kernels take of ProductArgs; the weights come by a pointer or by a map.
struct RowsProduct {
  const float* bias;
  const float* scale;  // of the sums of rows, or nullptr
  const void* x;       // bfloat16, or float32 if `norm`
  void* y;
  Rows count;
  bool known;  // Stream::calls_known
  std::int32_t out, stored, in, pitch;
  Epilogue epilogue;
  bool silu, rounded, norm;
  float epsilon;
};
inline RowsProduct rows_product(const ProductArgs& a, const Stream& s) {
  return {a.bias, a.scale, a.x,        a.y,    a.rows,    s.calls_known(), a.out,    a.stored,
          a.in,   a.pitch, a.epilogue, a.silu, a.rounded, a.norm,          a.epsilon};
}

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
