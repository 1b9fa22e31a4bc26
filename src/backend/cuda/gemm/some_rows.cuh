// SPDX-License-Identifier: Apache-2.0
// What products in bfloat16 with up to 32 rows have in common: what they are told, and how the
// blocks of a cluster meet.
#pragma once

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/row_squares.cuh"

namespace toto::cuda {

inline constexpr int kRowsOfTile = 8;

constexpr int slices_of(std::int32_t in) { return (in + kSliceBf16 - 1) / kSliceBf16; }

/// Of a product, what kernels take of ProductArgs; the weights come by a pointer or by a map.
struct RowsProduct {
  const float* bias;
  const float* scale;    // of the sums of rows, or nullptr
  const float* squares;  // of rows that are to be normed, or nullptr
  const void* x;
  void* y;
  Ahead ahead;
  Rows count;
  bool known;  // Stream::calls_known
  std::int32_t out, stored, in, pitch;
  Epilogue epilogue;
  bool silu, rounded;
  float epsilon;
};
inline RowsProduct rows_product(const ProductArgs& a, const Stream& s) {
  return {a.bias, a.scale,  a.squares, a.x,     a.y,        a.ahead, a.rows,    s.calls_known(),
          a.out,  a.stored, a.in,      a.pitch, a.epilogue, a.silu,  a.rounded, a.epsilon};
}

/// Eight rows of a slice, brought by a warp, sixteen bytes at a time, to boxes of 64 columns with
/// rows of 128 bytes, swizzled. Threads bring rows, for the copy engine takes requests in order,
/// and weights that come from memory stand before them.
class RowPieces {
 public:
  /// `box`: bytes from one box to the next.
  __device__ explicit RowPieces(int box) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int piece = i * 32 + lane;
      row_[i] = piece / kOfRow;
      column_[i] = piece % kOfRow;
      to_[i] = column_[i] / 8 * box + row_[i] * 128 + (column_[i] % 8 ^ row_[i]) * 16;
      column_[i] *= 8;
    }
  }
  /// From x to `to`, where the first of the eight rows begins, a multiple of 1,024. Zero from row
  /// `rows` and from column `columns` on.
  __device__ void copy(std::uint32_t to, const __nv_bfloat16* x, std::int32_t width,
                       std::int32_t rows, std::int32_t columns) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        const int row = row_[i] + half * 4;
        const bool there = row < rows && column_[i] < columns;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         (to + to_[i] + half * 512) ^ (half * 64)),
                     "l"(there ? x + row * width + column_[i] : x), "r"(there ? 16 : 0)
                     : "memory");
      }
    }
  }

 private:
  static constexpr int kOfRow = kSliceBf16 / 8;    // pieces
  static constexpr int kPieces = 4 * kOfRow / 32;  // of a lane, of four rows
  static_assert(kPieces * 32 == 4 * kOfRow);
  int row_[kPieces], column_[kPieces], to_[kPieces];
};
/// The barrier counts this lane once what it has asked for is there.
__device__ inline void arrive_when_copied(std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
#endif
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
