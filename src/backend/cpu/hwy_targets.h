// SPDX-License-Identifier: Apache-2.0
// Which instruction sets Highway compiles the kernels for. Included before anything of Highway, by
// every file with kernels, since all must agree.
#pragma once

#if defined(__x86_64__)
// The floor is x86-64-v2 (2009). Highway's own default would be one-lane code with this compiler.
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
// Instructions the kernels have no use for, so a processor without them is not turned away.
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLE_F16C
#elif defined(__aarch64__)
// Scalable vectors cannot be array elements, which the register tiles are.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#else
#error "the CPU backend has kernels for x86-64 and 64-bit Arm"
#endif

// TOTO_SELECT(isa, symbol): `symbol` of the namespace that was compiled for `isa`. The vector code
// of avx512_bf16 and amx_bf16 is that of avx512.
#if defined(__x86_64__)
#define TOTO_SELECT(isa, symbol)                 \
  ((isa) == Isa::sse4   ? ::toto::N_SSE4::symbol \
   : (isa) == Isa::avx2 ? ::toto::N_AVX2::symbol \
                        : ::toto::N_AVX3::symbol)
#else
#define TOTO_SELECT(isa, symbol) ((void)(isa), ::toto::N_NEON::symbol)
#endif
