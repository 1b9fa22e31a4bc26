// SPDX-License-Identifier: Apache-2.0
// The instruction sets that the CPU backend has kernels for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace toto::cpu {

enum class Isa {
  sse4,         // x86-64-v2, the floor on x86: no fused multiply-add
  avx2,         // with FMA
  avx512,       // F, BW, DQ, VL
  avx512_bf16,  // the same, and bf16 products in hardware
  amx_bf16,     // the same, and bf16 products of whole tiles
  neon,         // 64-bit Arm
};

std::string_view isa_name(Isa isa);

/// What this machine can run, best first.
std::vector<Isa> available_isas();

/// The instruction set of that name; empty: the best. Throws Error invalid_isa (2), with the list
/// of those available, if there is none of that name or this machine cannot run it.
Isa find_isa(std::string_view name);

}  // namespace toto::cpu
