// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/row_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/row_kernels.h"
#include "backend/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

using cpu::Rotation;

/// Four sums in flight over whole vectors, then one over the rest: an order that depends on n only.
float dot(const float* a, const float* b, std::size_t n) {
  const Floats d;
  Vec s0 = hn::Zero(d);
  Vec s1 = hn::Zero(d);
  Vec s2 = hn::Zero(d);
  Vec s3 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, a + i + kLanes), hn::LoadU(d, b + i + kLanes), s1);
    s2 = hn::MulAdd(hn::LoadU(d, a + i + 2 * kLanes), hn::LoadU(d, b + i + 2 * kLanes), s2);
    s3 = hn::MulAdd(hn::LoadU(d, a + i + 3 * kLanes), hn::LoadU(d, b + i + 3 * kLanes), s3);
  }
  for_each_vector(n - i, [&](std::size_t, const auto& load, const auto&) {
    s0 = hn::MulAdd(load(a + i), load(b + i), s0);
  });
  return sum_of(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

void rms_norm(const float* x, const float* scale, float* y, std::size_t dim) {
  const float root = std::sqrt(dot(x, x, dim) / static_cast<float>(dim) + 1e-8F);
  const Vec inverse = hn::Set(Floats(), 1.0F / root);
  for_each_vector(dim, [&](std::size_t, const auto& load, const auto& put) {
    put(hn::Mul(hn::Mul(load(x), inverse), load(scale)), y);
  });
}

/// Channel j of a rotated pair is z[j] * direct[j] + z[j ^ 1] * swapped[j].
struct Coefficients {
  static constexpr std::size_t kChannels = 64;  // worked on together; even, and whole vectors
  HWY_ALIGN float direct[kChannels];
  HWY_ALIGN float swapped[kChannels];
};

/// Channels first .. first + n - 1 (spec A8: angle by j / 2, factor by j mod d/2).
void coefficients(const Rotation& at, std::size_t d, std::size_t first, std::size_t n, bool invert,
                  Coefficients& c) {
  std::size_t k = first % (d / 2);
  for (std::size_t i = 0; i < n; i += 2) {
    const std::size_t angle = (first + i) / 2;
    for (std::size_t j = i; j < i + 2; ++j) {
      const float sigma = invert ? 1.0F / at.factor[k] : at.factor[k];
      c.direct[j] = at.cosine[angle] * sigma;
      c.swapped[j] = (j == i ? -at.sine[angle] : at.sine[angle]) * sigma;
      k = k + 1 == d / 2 ? 0 : k + 1;
    }
  }
}

void turn(const Coefficients& c, const float* from, float* to, std::size_t n) {
  const Floats d;
  for_each_vector(n, [&](std::size_t i, const auto& load, const auto& put) {
    const Vec z = load(from);
    const Vec direct = hn::Load(d, c.direct + i);
    const Vec swapped = hn::Load(d, c.swapped + i);
    put(hn::MulAdd(z, direct, hn::Mul(hn::Reverse2(d, z), swapped)), to);
  });
}

void rotate(const Rotation& at, float* qkv, std::size_t heads, std::size_t d, float* cached_keys,
            float* cached_values, std::size_t stride) {
  Coefficients for_query{};
  Coefficients for_key{};
  for (std::size_t first = 0; first < d; first += Coefficients::kChannels) {
    const std::size_t n = std::min(Coefficients::kChannels, d - first);
    coefficients(at, d, first, n, false, for_query);
    coefficients(at, d, first, n, true, for_key);
    for (std::size_t h = 0; h < heads; ++h) {
      float* query = qkv + h * d + first;
      turn(for_query, query, query, n);
      turn(for_key, query + heads * d, cached_keys + h * stride + first, n);
      std::memcpy(cached_values + h * stride + first, query + 2 * heads * d, n * sizeof(float));
    }
  }
}

/// What sums to 1 in exact arithmetic, divided by its sum.
void normalise(float* p, std::size_t n) {
  const Floats d;
  Vec sums = hn::Zero(d);
  for_each_vector(
      n, [&](std::size_t, const auto& load, const auto&) { sums = hn::Add(sums, load(p)); });
  const Vec total = hn::Set(d, sum_of(sums));
  for_each_vector(
      n, [&](std::size_t, const auto& load, const auto& put) { put(hn::Div(load(p), total), p); });
}

void distribution(float* raw, std::size_t components, bool mixture) {
  const Floats d;
  float* scale = raw + 2 * components;
  float* weight = raw + 3 * components;
  const Vec floor = hn::Set(d, std::numeric_limits<float>::epsilon());
  const auto above_floor = [&](Vec v) { return hn::IfThenElse(hn::Lt(v, floor), floor, v); };
  for_each_vector(components, [&](std::size_t, const auto& load, const auto& put) {
    put(hn::Add(hn::Set(d, 2.0F), above_floor(softplus(load(raw)))), raw);
    put(above_floor(softplus(load(scale))), scale);
  });
  if (!mixture) {
    std::fill_n(weight, components, 1.0F);
    return;
  }
  float highest = weight[0];
  for (std::size_t k = 1; k < components; ++k) highest = std::max(highest, weight[k]);
  const Vec shift = hn::Set(d, highest);
  for_each_vector(components, [&](std::size_t, const auto& load, const auto& put) {
    put(exp_negative(hn::Sub(load(weight), shift)), weight);
  });
  normalise(weight, components);
  normalise(weight, components);  // a second time, as the reference does
}

}  // namespace

extern const cpu::RowKernels kRowKernels;
const cpu::RowKernels kRowKernels = {rms_norm, rotate, distribution, dot};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

const RowKernels& row_kernels(Isa isa) { return TOTO_SELECT(isa, kRowKernels); }

}  // namespace toto::cpu
#endif
