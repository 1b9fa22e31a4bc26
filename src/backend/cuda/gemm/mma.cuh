// SPDX-License-Identifier: Apache-2.0
// Tensor core steps of 16 outputs x 8 rows with float32 sums: sixteen k in bfloat16, eight in tf32.
// Weights are the first operand; on Hopper wgmma.cuh has steps of other shapes that give the same
// bits.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "backend/cuda/gemm/stream.cuh"

namespace toto::cuda {

__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(shared))
               : "memory");
}

/// The same from an address in shared memory.
__device__ inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

__device__ inline void load_matrices(std::uint32_t (&r)[2], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(shared))
               : "memory");
}

__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Rounded to the eleven bits that tensor cores look at, ties away from zero; NaN stays NaN.
__device__ inline std::uint32_t to_tf32(float v) {
  std::uint32_t r = 0;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
  return r;
}

/// Operands are float32 of which the low thirteen bits are not looked at.
__device__ inline void multiply_add_tf32(float& c0, float& c1, float& c2, float& c3,
                                         std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                         std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline void multiply_add_tf32(float (&c)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
  multiply_add_tf32(c[0], c[1], c[2], c[3], a[0], a[1], a[2], a[3], b0, b1);
}

}  // namespace toto::cuda
