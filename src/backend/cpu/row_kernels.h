// SPDX-License-Identifier: Apache-2.0
// Operations on one row or one lane, for one instruction set.
#pragma once

#include <cstddef>

#include "backend/cpu/isa.h"

namespace toto::cpu {

/// Rotary tables of one position (spec A8): [d/2] each.
struct Rotation {
  const float* cosine;
  const float* sine;
  const float* factor;
};

struct RowKernels {
  /// y = x / sqrt(mean(x^2) + 1e-8) * scale.
  void (*rms_norm)(const float* x, const float* scale, float* y, std::size_t dim);
  /// Rotates the queries [heads][d] in place; writes the rotated keys and the values of head h to
  /// cached_keys + h * stride, cached_values + h * stride.
  void (*rotate)(const Rotation& at, float* qkv, std::size_t heads, std::size_t d,
                 float* cached_keys, float* cached_values, std::size_t stride);
  /// Spec A10: raw [4][K] becomes df, loc, scale, probability.
  void (*distribution)(float* raw, std::size_t components, bool mixture);
  /// sum(a * b).
  float (*dot)(const float* a, const float* b, std::size_t n);
};

const RowKernels& row_kernels(Isa isa);

}  // namespace toto::cpu
