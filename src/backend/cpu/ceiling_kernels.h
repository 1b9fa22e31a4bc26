// SPDX-License-Identifier: Apache-2.0
// The loops whose speed is a ceiling.
#pragma once

#include <cstddef>

#include "backend/cpu/isa.h"

namespace toto::cpu {

/// Independent multiply-adds in registers, as many as hide their latency. Returns something that
/// depends on all of them; `flops` is how many operations one step is.
struct PeakLoop {
  float (*run)(std::size_t steps);
  double flops;
};

struct CeilingKernels {
  PeakLoop f32;
  PeakLoop bf16;
  /// Sum of n floats, a multiple of 1024, read once.
  float (*read)(const float* from, std::size_t n);
};

CeilingKernels ceiling_kernels(Isa isa);

#if defined(__x86_64__)
extern const PeakLoop kBf16PairPeak;
extern const PeakLoop kAmxPeak;
#endif

}  // namespace toto::cpu
