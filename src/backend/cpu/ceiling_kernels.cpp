// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/ceiling_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include "backend/cpu/ceiling_kernels.h"
#include "backend/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

constexpr int kChains = 12;  // two units with a latency of up to five cycles, and 16 registers

float multiply_add(std::size_t steps) {
  const Floats d;
  Vec sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  const Vec x = hn::Set(d, 0.5F);
  const Vec y = hn::Set(d, 0.25F);
  for (std::size_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], x, y);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  return sum_of(sum[0]);
}

float read(const float* from, std::size_t n) {
  const Floats d;
  Vec sum[8];
  for (Vec& s : sum) s = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += 8 * kLanes) {
#pragma GCC unroll 8
    for (std::size_t j = 0; j < 8; ++j) {
      sum[j] = hn::Add(sum[j], hn::Load(d, from + i + j * kLanes));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  return sum_of(sum[0]);
}

}  // namespace

extern const cpu::CeilingKernels kCeilingKernels;
const cpu::CeilingKernels kCeilingKernels = {
    {multiply_add, 2.0 * kChains* kLanes}, {multiply_add, 2.0 * kChains* kLanes}, read};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

CeilingKernels ceiling_kernels(Isa isa) {
  CeilingKernels kernels = TOTO_SELECT(isa, kCeilingKernels);
#if defined(__x86_64__)
  if (isa == Isa::avx512_bf16) kernels.bf16 = kBf16PairPeak;
  if (isa == Isa::amx_bf16) kernels.bf16 = kAmxPeak;
#endif
  return kernels;
}

}  // namespace toto::cpu
#endif
