// SPDX-License-Identifier: Apache-2.0
// What this machine offers, as far as it decides how work is done: cores and vector instructions.
#pragma once

#include <string>

namespace toto {

/// Instruction sets that the processor and the operating system both support. Each one includes all
/// that its kernels are compiled for, so `avx2` also means FMA and BMI.
struct CpuFeatures {
  bool sse4 = false;         // x86-64-v2
  bool avx2 = false;         // AVX2, FMA, BMI, BMI2
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_bf16 = false;  // and BF16
  bool amx_bf16 = false;     // and AMX tiles of BF16, which this process may use
  bool neon = false;         // 64-bit Arm
};

const CpuFeatures& cpu_features();

/// Cores that this process may run on (its affinity), at least 1.
int available_cores();

/// As the system calls it, for reports.
std::string processor_name();

}  // namespace toto
