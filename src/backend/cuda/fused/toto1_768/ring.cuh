// SPDX-License-Identifier: Apache-2.0
// A ring of stages in shared memory through which one thread streams weights by the copy engine,
// ahead of the warps that multiply with them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/gemm/copy_engine.cuh"

namespace toto::cuda {

inline constexpr int kStageBytes = 24576;
inline constexpr int kRingStages = 7;

struct Ring {
  std::uint64_t full[kRingStages];
  std::uint64_t empty[kRingStages];
  int released;  // how many stages were given back by release(), or kEnded

  static constexpr int kEnded = 1 << 30;

  /// By one thread, before a barrier of the block. `readers`: warps that give each stage back by
  /// release_once().
  __device__ void initialise(int readers) {
    for (int i = 0; i < kRingStages; ++i) {
      make_barrier(&full[i], 1);
      make_barrier(&empty[i], readers);
    }
    released = 0;
    publish_barriers();
  }

  /// Once the weights of a stage are there.
  __device__ void wait_full(const Cursor<kRingStages>& at) {
    while (!try_barrier(&full[at.stage], at.parity)) {
    }
  }
  /// The first of two ways to give stages back, for claim(at, number): by one thread, which has met
  /// all warps since they multiplied what they read of them. No reading is left that an order of
  /// memory would have to keep before this. `count`: of stages since the beginning.
  __device__ void release(int count) {
    const std::uint32_t at = shared_address(&released);
    asm volatile("st.volatile.shared.s32 [%0], %1;" ::"r"(at), "r"(count) : "memory");
  }
  /// By one thread, once no stage is wanted any more; ended(): whether it has come to that. For
  /// rings whose stages are given back by release().
  __device__ void end() { release(kEnded); }
  [[nodiscard]] __device__ bool ended() const {
    int now = 0;
    asm volatile("ld.volatile.shared.s32 %0, [%1];" : "=r"(now) : "r"(shared_address(&released)));
    return now == kEnded;
  }
  /// The other one, for claim(at): by all of a warp as soon as it has read a stage, once all of
  /// what it read (`read`, words of every instruction that did) is in registers. Right behind the
  /// instructions that read it would be too early, for this does not wait until they have, and the
  /// next copy may come before them. `nothing` is zero without the compiler knowing it and so is
  /// what is returned, but only when this is done: who computes with it keeps the compiler from
  /// putting this off.
  [[nodiscard]] __device__ std::uint32_t release_once(const Cursor<kRingStages>& at,
                                                      std::uint32_t read, std::uint32_t nothing) {
    std::uint64_t state = 0;
    asm volatile(
        "{.reg .pred first; setp.eq.u32 first, %2, 0; mov.b64 %0, 0;"
        "@first mbarrier.arrive.shared::cta.b64 %0, [%1];}"
        : "=l"(state)
        : "r"(shared_address(&empty[at.stage]) + (read & nothing)), "r"(threadIdx.x % 32)
        : "memory");
    return static_cast<std::uint32_t>(state) & nothing;
  }
  /// By the thread that streams: waits until a stage is free and says what will arrive.
  __device__ void claim(const Cursor<kRingStages>& at) {
    while (!try_barrier(&empty[at.stage], at.parity ^ 1)) {
    }
    expect_bytes(&full[at.stage], kStageBytes);
  }
  /// `number`: of stages before this one.
  __device__ void claim(const Cursor<kRingStages>& at, int number) {
    const std::uint32_t from = shared_address(&released);
    for (int now = 0; number >= kRingStages + now;) {
      asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(now) : "r"(from) : "memory");
    }
    expect_bytes(&full[at.stage], kStageBytes);
  }
};

}  // namespace toto::cuda
