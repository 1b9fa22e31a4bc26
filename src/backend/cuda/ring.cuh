// SPDX-License-Identifier: Apache-2.0
// A ring of stages in shared memory through which one thread streams weights by the copy engine,
// ahead of the warps that multiply with them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace toto::cuda {

inline constexpr int kStageBytes = 24576;
inline constexpr int kRingStages = 7;

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// Sixteen bytes at an address of shared memory.
__device__ inline float4 load_shared(unsigned at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(at));
  return v;
}

/// A place in the sequence of stages of a launch.
struct Cursor {
  unsigned slot = 0;
  unsigned parity = 0;
  __device__ void advance() {
    ++slot;
    if (slot == kRingStages) {
      slot = 0;
      parity ^= 1U;
    }
  }
};

struct Ring {
  std::uint64_t full[kRingStages];
  std::uint64_t empty[kRingStages];

  /// By one thread, before a barrier of the block. `readers`: warps that read each stage.
  __device__ void initialise(int readers) {
    for (int i = 0; i < kRingStages; ++i) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&full[i])));
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&empty[i])),
                   "r"(readers));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  /// Once the weights of a stage are there.
  __device__ void wait_full(const Cursor& at) { wait(&full[at.slot], at.parity); }
  /// By one thread of each warp, when the warp has read it.
  __device__ void release(const Cursor& at) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(&empty[at.slot]))
                 : "memory");
  }
  /// By the thread that streams: waits until a stage is free and says what will arrive.
  __device__ void claim(const Cursor& at) {
    wait(&empty[at.slot], at.parity ^ 1U);
    asm volatile(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(&full[at.slot])),
        "r"(kStageBytes)
        : "memory");
  }

 private:
  __device__ static void wait(std::uint64_t* barrier, unsigned parity) {
    unsigned done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(shared_address(barrier)), "r"(parity)
          : "memory");
    }
  }
};

/// A box of a matrix, described by `map`, to shared memory.
__device__ inline void stream_box(void* to, const void* map, int x, int y, std::uint64_t* full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(full))
      : "memory");
}
__device__ inline void stream_box(void* to, const void* map, int x, int y, int z,
                                  std::uint64_t* full) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4}], [%5];" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(full))
      : "memory");
}

}  // namespace toto::cuda
