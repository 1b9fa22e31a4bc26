// SPDX-License-Identifier: Apache-2.0
// Hopper's own instructions (sm_90a): tensor core steps of a whole warpgroup on tiles in shared
// memory. A chain of these steps gives the bits of a chain of mma.cuh's: as many products at a time
// either way.
#pragma once

#include <cstdint>

#include "backend/cuda/gemm/copy_engine.cuh"

namespace toto::cuda {

/// A tile of rows of 128 bytes, in the copy engine's swizzle of 128 bytes: the address counts
/// sixteens of bytes, as does the distance between groups of eight rows.
__device__ inline std::uint64_t tile_descriptor(const void* tile) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t kGroups = std::uint64_t{1024 >> 4} << 32;
  return kSwizzle128 | kGroups | (std::uint64_t{1} << 16) | (shared_address(tile) >> 4 & 0x3FFFU);
}
constexpr std::uint64_t kDescriptorStep = 32 >> 4;  // sixteen k of bfloat16, eight of float32

__device__ inline void begin_steps() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_steps() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most so many groups of steps are under way.
template <int Left>
__device__ inline void wait_steps() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

#define TOTO_FLOATS_4(c, i) "+f"(c[i]), "+f"(c[(i) + 1]), "+f"(c[(i) + 2]), "+f"(c[(i) + 3])
#define TOTO_FLOATS_8(c, i)                                                           \
  "+f"(c[i]), "+f"(c[(i) + 1]), "+f"(c[(i) + 2]), "+f"(c[(i) + 3]), "+f"(c[(i) + 4]), \
      "+f"(c[(i) + 5]), "+f"(c[(i) + 6]), "+f"(c[(i) + 7])
#define TOTO_FLOATS_32(c, i)                                                  \
  TOTO_FLOATS_8(c, i), TOTO_FLOATS_8(c, (i) + 8), TOTO_FLOATS_8(c, (i) + 16), \
      TOTO_FLOATS_8(c, (i) + 24)
#define TOTO_NAMES_4 "%0,%1,%2,%3"
#define TOTO_NAMES_8 TOTO_NAMES_4 ",%4,%5,%6,%7"
#define TOTO_NAMES_12 TOTO_NAMES_8 ",%8,%9,%10,%11"
#define TOTO_NAMES_16_0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define TOTO_NAMES_16_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define TOTO_NAMES_16_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define TOTO_NAMES_16_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define TOTO_NAMES_32_64                                                                      \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85," \
  "%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define TOTO_NAMES_32 TOTO_NAMES_16_0 TOTO_NAMES_16_16
#define TOTO_NAMES_48 TOTO_NAMES_32 TOTO_NAMES_16_32
#define TOTO_NAMES_64 TOTO_NAMES_48 TOTO_NAMES_16_48
#define TOTO_NAMES_96 TOTO_NAMES_64 TOTO_NAMES_32_64
#define TOTO_STEP(shape, names, operands, more, ones) \
  "{.reg .pred p; setp.ne.b32 p, " more               \
  ", 0;"                                              \
  "wgmma.mma_async.sync.aligned." shape " {" names "}, " operands ", p, " ones ";}"
#define TOTO_STEP_BF16(shape, names, operands, more) \
  TOTO_STEP(shape ".f32.bf16.bf16", names, operands, more, "1, 1, 0, 0")
#define TOTO_STEP_TF32(shape, names, operands, more) \
  TOTO_STEP(shape ".f32.tf32.tf32", names, operands, more, "1, 1")

/// Sixteen k of 64 rows of the first operand by N of the second: c = a b, or c += a b where there
/// is more before it. The layout of c is that of N / 8 tiles of mma.cuh, sixteen rows to a warp.
template <int N>
__device__ inline void multiply_add_group(float (&c)[N / 2], std::uint64_t a, std::uint64_t b,
                                          int more) {
  static_assert(N == 8 || N == 16 || N == 24 || N == 32 || N == 64 || N == 96 || N == 128 ||
                N == 192);
  if constexpr (N == 8) {
    asm volatile(TOTO_STEP_BF16("m64n8k16", TOTO_NAMES_4, "%4, %5", "%6")
                 : TOTO_FLOATS_4(c, 0)
                 : "l"(a), "l"(b), "r"(more));
  } else if constexpr (N == 16) {
    asm volatile(TOTO_STEP_BF16("m64n16k16", TOTO_NAMES_8, "%8, %9", "%10")
                 : TOTO_FLOATS_8(c, 0)
                 : "l"(a), "l"(b), "r"(more));
  } else if constexpr (N == 24) {
    asm volatile(TOTO_STEP_BF16("m64n24k16", TOTO_NAMES_12, "%12, %13", "%14")
                 : TOTO_FLOATS_8(c, 0), TOTO_FLOATS_4(c, 8)
                 : "l"(a), "l"(b), "r"(more));
  } else if constexpr (N == 32) {
    asm volatile(TOTO_STEP_BF16("m64n32k16", TOTO_NAMES_16_0, "%16, %17", "%18")
                 : TOTO_FLOATS_8(c, 0), TOTO_FLOATS_8(c, 8)
                 : "l"(a), "l"(b), "r"(more));
  } else if constexpr (N == 64) {
    asm volatile(TOTO_STEP_BF16("m64n64k16", TOTO_NAMES_32, "%32, %33", "%34")
                 : TOTO_FLOATS_32(c, 0)
                 : "l"(a), "l"(b), "r"(more));
  } else if constexpr (N == 96) {
    asm volatile(TOTO_STEP_BF16("m64n96k16", TOTO_NAMES_48, "%48, %49", "%50")
                 : TOTO_FLOATS_32(c, 0), TOTO_FLOATS_8(c, 32), TOTO_FLOATS_8(c, 40)
                 : "l"(a), "l"(b), "r"(more));
  } else if constexpr (N == 128) {
    asm volatile(TOTO_STEP_BF16("m64n128k16", TOTO_NAMES_64, "%64, %65", "%66")
                 : TOTO_FLOATS_32(c, 0), TOTO_FLOATS_32(c, 32)
                 : "l"(a), "l"(b), "r"(more));
  } else {
    asm volatile(TOTO_STEP_BF16("m64n192k16", TOTO_NAMES_96, "%96, %97", "%98")
                 : TOTO_FLOATS_32(c, 0), TOTO_FLOATS_32(c, 32), TOTO_FLOATS_32(c, 64)
                 : "l"(a), "l"(b), "r"(more));
  }
}

/// Eight k in tf32, of which the rows are in registers: a is as in mma.cuh, sixteen rows to a warp.
template <int N>
__device__ inline void multiply_add_group(float (&c)[N / 2], const std::uint32_t (&a)[4],
                                          std::uint64_t b, int more) {
  static_assert(N == 32 || N == 64 || N == 96 || N == 128);
  if constexpr (N == 32) {
    asm volatile(TOTO_STEP_TF32("m64n32k8", TOTO_NAMES_16_0, "{%16,%17,%18,%19}, %20", "%21")
                 : TOTO_FLOATS_8(c, 0), TOTO_FLOATS_8(c, 8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
  } else if constexpr (N == 64) {
    asm volatile(TOTO_STEP_TF32("m64n64k8", TOTO_NAMES_32, "{%32,%33,%34,%35}, %36", "%37")
                 : TOTO_FLOATS_32(c, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
  } else if constexpr (N == 96) {
    asm volatile(TOTO_STEP_TF32("m64n96k8", TOTO_NAMES_48, "{%48,%49,%50,%51}, %52", "%53")
                 : TOTO_FLOATS_32(c, 0), TOTO_FLOATS_8(c, 32), TOTO_FLOATS_8(c, 40)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
  } else {
    asm volatile(TOTO_STEP_TF32("m64n128k8", TOTO_NAMES_64, "{%64,%65,%66,%67}, %68", "%69")
                 : TOTO_FLOATS_32(c, 0), TOTO_FLOATS_32(c, 32)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
  }
}

#undef TOTO_FLOATS_4
#undef TOTO_FLOATS_8
#undef TOTO_FLOATS_32
#undef TOTO_NAMES_4
#undef TOTO_NAMES_8
#undef TOTO_NAMES_12
#undef TOTO_NAMES_16_0
#undef TOTO_NAMES_16_16
#undef TOTO_NAMES_16_32
#undef TOTO_NAMES_16_48
#undef TOTO_NAMES_32_64
#undef TOTO_NAMES_32
#undef TOTO_NAMES_48
#undef TOTO_NAMES_64
#undef TOTO_NAMES_96
#undef TOTO_STEP
#undef TOTO_STEP_BF16
#undef TOTO_STEP_TF32

template <int Registers>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

}  // namespace toto::cuda
