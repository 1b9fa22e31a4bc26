// SPDX-License-Identifier: Apache-2.0
// Quantiles of a mixture of Student-T's to some four digits, in float32, by one warp: a component
// for each lane. From there exact_mixture.cuh mostly needs a single evaluation in float64. Nothing
// here has to be right: what is wrong costs evaluations there.
#pragma once

#include <cstdint>

#include "backend/cuda/runtime/warp.cuh"
#include "core/student_t.h"

namespace toto::cuda::rough {

__device__ inline float root(float v) {
  float r;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

/// As mixture::rough_student_t_quantile().
__device__ inline float student_t_quantile(float df, float q) {
  const float w = root(-2 * __logf(fminf(q, 1 - q)));
  const float normal = w - __fdividef(2.515517F + w * (0.802853F + w * 0.010328F),
                                      1 + w * (1.432788F + w * (0.189269F + w * 0.001308F)));
  const float y = normal * __fdividef(df + 0.375F, df + 0.125F);
  const float t = root(df * expm1f(__fdividef(y * y, df)));
  return q < 0.5F ? -t : t;
}

/// Floats in shared memory for each component: an odd number, so that those of 32 lanes lie in
/// different banks.
inline constexpr int kRoom = student_t::kTerms + 1;

/// This lane's component.
struct Component {
  float df, loc, scale, weight;  // weight: of all weights; 0: there is none
  float inverse_scale, inverse_df, pdf0;
  float below;     // the weight of those before it by location
  const float* c;  // [kTerms], in shared memory
};

/// The share of a weight in those of all lanes.
__device__ inline float share(float p) { return __fdividef(p, sum_of_lanes(p)); }

/// The weight of the components before the one of this lane by location, and where there are
/// several at one, by number. There are `count` in as many lanes.
__device__ inline float weight_below(float loc, float weight, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float below = 0;
#pragma unroll 4
  for (int j = 0; j < count; ++j) {
    const float w = __shfl_sync(~0U, weight, j);
    const float other = __shfl_sync(~0U, loc, j);
    const bool before = (other < loc) | ((other == loc) & (j < lane));
    below += before ? w : 0;
  }
  return below;
}

/// The mixture at x: both tails, the density and its derivative.
struct Point {
  float lower, upper, f, f1;
};

__device__ inline Point evaluate(const Component& own, float x) {
  Point at{};
  if (own.weight > 0) {
    const float z = fminf(fmaxf((x - own.loc) * own.inverse_scale, -1e15F), 1e15F);
    const float t = fabsf(z);
    const float ratio = t * t * own.inverse_df;
    const float pdf = own.pdf0 * __expf(-0.5F * (own.df + 1) * __logf(1 + ratio));
    const float r2 = own.df + t * t;
    float tail = 0;
    if (own.df < static_cast<float>(student_t::kLargeDf)) {
      const float e = __fdividef(1.0F, root(r2) + t);
      const float v = own.df * e * e;
      float sum[4] = {};
#pragma unroll
      for (int k = student_t::kTerms - 4; k >= 0; k -= 4) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] = __fmaf_rn(sum[i], v * v * (v * v), own.c[k + i]);
      }
      tail = pdf * (2 * r2 * e * own.inverse_df) *
             ((sum[3] * v + sum[2]) * (v * v) + (sum[1] * v + sum[0]));
    } else {  // Abramowitz and Stegun 26.7.8
      constexpr float kRootHalf = 0.70710678F;
      tail = 0.5F * erfcf(kRootHalf * t * (1 - 0.25F * own.inverse_df) * rsqrtf(1 + 0.5F * ratio));
    }
    const float small = own.weight * tail;
    const float large = own.weight - small;
    at.lower = z < 0 ? small : large;
    at.upper = z < 0 ? large : small;
    at.f = own.weight * own.inverse_scale * pdf;
    at.f1 = __fdividef(-(own.df + 1) * z, r2) * own.inverse_scale * at.f;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    at.lower += __shfl_xor_sync(~0U, at.lower, offset);
    at.upper += __shfl_xor_sync(~0U, at.upper, offset);
    at.f += __shfl_xor_sync(~0U, at.f, offset);
    at.f1 += __shfl_xor_sync(~0U, at.f1, offset);
  }
  return at;
}

/// Where level q lies if components lie apart: in the one in which the cumulative weight passes q,
/// by location.
__device__ inline float quantile_within(const Component& own, float q) {
  constexpr float kEdge = 1e-6F;
  const bool there = own.weight > 0;
  const float inside = __fdividef(q - own.below, own.weight);
  const float x =
      own.loc + own.scale * student_t_quantile(own.df, fminf(fmaxf(inside, kEdge), 1 - kEdge));
  // The first that reaches q, which has the least below; if rounding leaves none, the last one.
  const float key = !there ? 0 : own.below + own.weight >= q ? 4 - own.below : own.below;
  const int best = __reduce_max_sync(~0U, __float_as_int(key));
  const unsigned owners = __ballot_sync(~0U, there && __float_as_int(key) == best);
  return __shfl_sync(~0U, x, max(__ffs(static_cast<int>(owners)) - 1, 0));
}

/// The inverse of the cdf's logit at x: its argument there, its slope, and that of the slope's log.
struct alignas(16) Node {
  float x, logit, slope, bend;
};

__device__ inline Node node_at(const Component& own, float x) {
  const Point at = evaluate(own, x);
  const float a = __fdividef(1.0F, at.lower);
  const float b = __fdividef(1.0F, at.upper);
  const float slope = __fdividef(1.0F, at.f * (a + b));
  const float bend = at.f1 * (a + b) - at.f * at.f * (a * a - b * b);
  return {x, __logf(__fdividef(at.lower, at.upper)), slope, -bend * slope * slope};
}

/// Nodes over the bulk of the mixture, from which every level starts: where levels 0.04, 0.1, 0.2,
/// .. 0.9, 0.96 are looked for, so the usual nine among them, whatever levels are asked for.
inline constexpr int kNodes = 11;
__device__ inline Node node_of(const Component& own, int i) {
  const float even = 0.1F * static_cast<float>(i);
  return node_at(own, quantile_within(own, i == 0 ? 0.04F : i == kNodes - 1 ? 0.96F : even));
}

/// The x at level q, which lies between `low` and `high`; if things go wrong, any number or none.
/// Between the nodes about it by rational interpolation, which rises as they do (Gregory and
/// Delbourgo, "Piecewise rational quadratic interpolation to monotonic data", 1982), and at last,
/// or where there is a node on one side only, by two terms of the Taylor series.
__device__ inline float solve(const Component& own, const Node* nodes, float q, float low,
                              float high) {
  constexpr int kMaxEvaluations = 11;
  // With more, the first evaluation in float64 is often not the last.
  constexpr float kEnough = 0.05F;
  // Between modes the slope is that of a cliff, and says nothing about its foot.
  constexpr float kSteepest = 10;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float target = __logf(__fdividef(q, 1 - q));
  Node below{low, -INFINITY, 0, 0};
  Node above{high, INFINITY, 0, 0};
  // The nearest on either side: distances are not negative, so in the order of their bits.
  const float off = lane < kNodes ? nodes[lane].logit - target : NAN;
  const auto nearest = [&](bool there, Node& to) {
    const unsigned bits = there ? __float_as_uint(fabsf(off)) : ~0U;
    const unsigned least = __reduce_min_sync(~0U, bits);
    const unsigned owners = __ballot_sync(~0U, there && bits == least);
    if (owners != 0) to = nodes[__ffs(static_cast<int>(owners)) - 1];
  };
  nearest(off < 0, below);
  nearest(off >= 0, above);
  float x = 0;
#pragma unroll 1
  for (int n = 0;; ++n) {
    const float a = target - below.logit;
    const float b = above.logit - target;
    const bool up = a < b;
    const Node from = up ? below : above;
    const float miss = up ? a : -b;
    const float second = 0.5F * from.bend * miss;
    // Where the second term is not small, no more than so much of it.
    const float part = fabsf(second) < 0.5F ? 1 + second
                       : second > 0         ? 1.5F
                                            : __fdividef(1.0F, 1 - second);
    x = from.x + miss * from.slope * part;
    if (n == kMaxEvaluations || (fabsf(miss) < kEnough && fabsf(second) < kEnough)) break;
    if (a + b < INFINITY) {
      const float d = above.x - below.x;
      const float t = __fdividef(a, a + b);
      const float u = t * (1 - t);
      const float first = fminf(below.slope * (a + b), kSteepest * d);
      const float last = fminf(above.slope * (a + b), kSteepest * d);
      x = below.x + d * __fdividef(d * t * t + first * u, d + (first + last - 2 * d) * u);
    }
    if (!(below.x < x && x < above.x)) x = 0.5F * below.x + 0.5F * above.x;
    const Node at = node_at(own, x);
    if (at.logit < target) {
      below = at;
    } else {
      above = at;
    }
  }
  return x;
}

}  // namespace toto::cuda::rough
