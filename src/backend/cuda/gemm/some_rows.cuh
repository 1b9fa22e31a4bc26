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

/// How many rows there are now, for kernels that do more before they wait: a `known` number is on
/// its way meanwhile.
class LiveRows {
 public:
  __device__ LiveRows(const Rows& rows, bool known) : rows_(rows), known_(known) {
    if (known && rows.live != nullptr) now_ = load();
  }
  /// Before the kernel waits. One that is not known is waited for here.
  [[nodiscard]] __device__ std::int32_t settle() {
    if (rows_.live == nullptr) return rows_.count;
    if (!known_) {
      await_previous();
      now_ = load();
    }
    return now_ * rows_.times;
  }

 private:
  /// Asked for where this stands. Not by an address that all lanes share: their number would go to
  /// a uniform register, and be waited for at once.
  [[nodiscard]] __device__ std::int32_t load() const {
    std::int32_t v = 0;
    const std::int32_t* const from = rows_.live + (threadIdx.x >> 10U);  // 0
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
  }
  const Rows& rows_;
  bool known_;
  std::int32_t now_ = 0;
};

/// Eight rows of a slice, brought by a warp, sixteen bytes at a time, to boxes of 64 columns with
/// rows of 128 bytes, swizzled. Threads bring rows, for the copy engine takes requests in order,
/// and weights that come from memory stand before them. A lane has the same eight columns of every
/// box, of two rows.
struct RowPieces {
  const __nv_bfloat16* from;
  const __nv_bfloat16* from_half;  // four rows further on
  std::uint32_t to;
  std::int32_t columns;  // that are there, from the first of the lane on

  /// From row `first_row` of x[][row_width] and column k on to `first`, where the first of the
  /// eight rows begins, a multiple of 1,024. Zero beyond a row's end.
  __device__ RowPieces(std::uint32_t first, const __nv_bfloat16* x, std::int32_t first_row,
                       std::int32_t k, std::int32_t row_width)
      : from(x + static_cast<std::uint32_t>((first_row + row()) * row_width + k + column())),
        from_half(from + 4 * row_width),
        to(first + row() * 128 + (column() / 8 ^ row()) * 16),
        columns(row_width - k - column()) {}
  /// Of the eight, `rows` are there; the others become zero. Boxes are `Box` bytes apart.
  template <int Box>
  __device__ void copy(std::int32_t rows) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t half_to = (to + half * 512) ^ (half * 64);
      const __nv_bfloat16* const half_from = half == 0 ? from : from_half;
      const bool row_there = row() + half * 4 < rows;
#pragma unroll
      for (int box = 0; box < kSliceBf16 / kPitchBf16; ++box) {
        const bool there = row_there && box * kPitchBf16 < columns;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(half_to + box * Box),
                     "l"(half_from + box * kPitchBf16), "r"(there ? 16 : 0)
                     : "memory");
      }
    }
  }

 private:
  static __device__ int row() { return static_cast<int>(threadIdx.x % 32U / 8); }
  static __device__ int column() { return static_cast<int>(threadIdx.x % 8U * 8); }
};

/// The barrier counts this lane once what it has asked for is there.
__device__ inline void arrive_when_copied(std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
#endif
}

/// What lies in the shared memory of block `rank` of the cluster at the place of `own` here.
__device__ inline std::uint32_t address_in(int rank, std::uint32_t own) {
  std::uint32_t there = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
#endif
  return there;
}
/// Stores two neighbours into the shared memory of a block of the cluster, of which a barrier there
/// counts the bytes.
__device__ inline void send_to(std::uint32_t there, std::uint32_t barrier, const float2& v) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
          there),
      "f"(v.x), "f"(v.y), "r"(barrier)
      : "memory");
#endif
}
/// This block is there, and so are its barriers once published. No more: a release would wait until
/// the whole device sees what the block has stored.
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
