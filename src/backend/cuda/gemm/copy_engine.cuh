// SPDX-License-Identifier: Apache-2.0
// Hopper's copy engine: tiles to shared memory, and the barriers that count what it has copied.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "backend/cuda/gemm/stream.cuh"

namespace toto::cuda {

/// A place in the sequence of stages of a ring.
template <int Stages>
struct Cursor {
  int stage = 0;
  int parity = 0;  // of the barriers there
  /// By up to so many stages as there are.
  __device__ void advance(int count = 1) {
    stage += count;
    if (stage >= Stages) {
      stage -= Stages;
      parity ^= 1;
    }
  }
};

/// Barriers in shared memory: a phase ends when so many have arrived and all announced bytes have.
__device__ inline void make_barrier(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void expect_bytes(std::uint64_t* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ inline void arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
/// What this thread has written to shared memory, for instructions that read tiles there on their
/// own: before it arrives where they are waited for.
__device__ inline void publish_tile() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// Whether a phase has ended; waits for it a little.
__device__ inline bool try_barrier(std::uint64_t* barrier, int parity) {
  unsigned done = 0;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
/// The same until it has, in a loop that the compiler does not look into.
__device__ inline void wait_barrier_at(std::uint32_t barrier, int parity) {
  asm volatile(
      "{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
      "@!done bra again;}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ inline void wait_barrier(std::uint64_t* barrier, int parity) {
  wait_barrier_at(shared_address(barrier), parity);
}

/// A box of a map of two dimensions to shared memory; the barrier counts the bytes.
__device__ inline void copy_tile(void* to, const CUtensorMap& map, int column, int row,
                                 std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}
inline constexpr std::uint64_t kEvictFirst = 0x12F0000000000000U;  // as createpolicy makes it
/// The same of what is read once, and leaves the cache before all else does: what is read again
/// stays there, and so do arguments of kernels.
__device__ inline void copy_once(void* to, const CUtensorMap& map, int column, int row,
                                 std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier)), "l"(kEvictFirst)
      : "memory");
}
/// And of a map of three dimensions.
__device__ inline void copy_once(void* to, const CUtensorMap& map, int x, int y, int z,
                                 std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier)), "l"(kEvictFirst)
      : "memory");
}
__device__ inline void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

}  // namespace toto::cuda
