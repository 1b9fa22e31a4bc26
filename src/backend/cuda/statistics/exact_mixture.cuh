// SPDX-License-Identifier: Apache-2.0
// A mixture of Student-T's in shared memory, and what a warp asks of it: a component for each lane.
// The same quantities as in statistics/mixture.cpp, rounded in other places.
//
// What a warp waits for is instructions: a cell runs each of them a few times only, so most come
// from far away. Hence loops that stay loops, functions that stay functions, and one copy of what
// is long.
#pragma once

#include <cfloat>
#include <climits>
#include <cstdint>

#include "backend/cuda/statistics/rough_mixture.cuh"
#include "core/mixture_solver.h"
#include "core/student_t.h"

namespace toto::cuda {

/// A component; an odd number of doubles, so that those of 32 lanes lie in different banks.
struct Component {
  double c[student_t::kTerms];
  double df, inverse_df, pdf0;
  double loc, scale, inverse_scale;
  double weight;  // 0: it does not count, and nothing else here need be set
};
static_assert(sizeof(Component) / sizeof(double) % 2 == 1);

/// The inverse of the logit of the mixture's cdf near x: its Taylor series to four terms.
struct Expansion {
  double x, logit, radius;  // as in mixture::Point
  double slope, c2, c3, c4;
  double target;  // the logit that is looked for
};

/// A level of the distribution, and what is known of it whatever the mixture.
struct Level {
  double q;
  double target;  // its logit
  double odds;    // (1 - q) / q
  double reach;   // as mixture::reach_of_bracket(), rounded outwards
};

__device__ inline double inverse(double v) { return student_t::quotient(1, v); }

__device__ inline double inverse_root(double v) {
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(v));
  const double e = fma(-(v * r), r, 1.0);
  return fma(r * e, fma(e, 0.375, 0.5), r);
}

__device__ inline float rough_cube_root(float v) {
  float r;
  asm("{ .reg .f32 t; lg2.approx.ftz.f32 t, %1; mul.f32 t, t, 0f3EAAAAAB; ex2.approx.ftz.f32 %0, "
      "t; }"
      : "=f"(r)
      : "f"(v));
  return r;
}

/// mixture::solve() finds it by its argument.
__device__ inline mixture::Step step_to(const Expansion& at, double logit) {
  const double y = (logit - at.logit) * at.slope;
  const double c2 = at.c2 * y;
  const double c3 = at.c3 * y * y;
  const double c4 = at.c4 * y * y * y;
  const float ratio =
      fmaxf(fabsf(static_cast<float>(c2)), fmaxf(rough::root(fabsf(static_cast<float>(c3))),
                                                 rough_cube_root(fabsf(static_cast<float>(c4)))));
  return {y, fma(y, c2 + c3 + c4, y), static_cast<double>(ratio)};
}

/// Likewise: it was formed before.
__device__ inline double logit_of(const Expansion& at, double /*q*/) { return at.target; }

__device__ inline Level level_of(double q) {
  constexpr double kMargin = 1 + 1e-9;  // for the rounding of what is compared with it
  const double odds = (1 - q) * inverse(q);
  return {q, -log(odds), odds, (2 * q - 1) * inverse_root(2 * q * (1 - q)) * kMargin};
}

/// log(a / b), which mostly lie close together.
__device__ inline double log_of_ratio(double a, double b) {
  const double d = (a - b) * inverse(b);
  if (!(fabs(d) < 0x1p-7)) return log(a / b);
  double sum = -1.0 / 8;
#pragma unroll
  for (int n = 7; n > 0; --n) sum = fma(sum, d, (n % 2 == 0 ? -1.0 : 1.0) / n);
  return sum * d;
}

/// Where many degrees of freedom make the series in v slow: seldom.
__device__ __noinline__ inline student_t::Value evaluate_large(double df, double pdf0,
                                                               const double* c, double t) {
  return student_t::evaluate_large(df, pdf0, c, t);
}

/// c[0] + c[1] v + ..: four sums side by side, since each waits for itself.
__device__ inline double polynomial(const double* c, double v) {
  constexpr int kTerms = student_t::kTerms;
  static_assert(kTerms % 4 == 0);
  const double v2 = v * v;
  const double v4 = v2 * v2;
  double sum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[i] = c[kTerms - 4 + i];
#pragma unroll
  for (int k = kTerms - 8; k >= 0; k -= 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] = fma(sum[i], v4, c[k + i]);
  }
  return fma(fma(sum[3], v, sum[2]), v2, fma(sum[1], v, sum[0]));
}

/// The six sums of v[0..6) over the warp, to shared memory: every exchange halves what a lane has
/// still to add up.
__device__ inline void sums_of_warp(const double (&v)[6], int lane, double* to) {
  const bool a = (lane & 16) != 0;
  const bool b = (lane & 8) != 0;
  const bool c = (lane & 4) != 0;
  double half[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    half[i] = (a ? v[i + 3] : v[i]) + __shfl_xor_sync(~0U, a ? v[i] : v[i + 3], 16);
  }
  const double outer = (b ? half[2] : half[0]) + __shfl_xor_sync(~0U, b ? half[0] : half[2], 8);
  const double inner = half[1] + __shfl_xor_sync(~0U, half[1], 8);
  double sum = (c ? inner : outer) + __shfl_xor_sync(~0U, c ? outer : inner, 4);
  sum += __shfl_xor_sync(~0U, sum, 2);
  sum += __shfl_xor_sync(~0U, sum, 1);
  __syncwarp();
  if (lane % 4 == 0) to[(a ? 3 : 0) + (c ? 1 : b ? 2 : 0)] = sum;
  __syncwarp();
}

/// The mixture at x, where a level is looked for. `sums` is the warp's own, [6].
__device__ __noinline__ inline Expansion evaluate(const Component* all, int count, double* sums,
                                                  const Level& level, double x) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Component& own = all[lane];
  double v[6] = {};
  float radius2 = INFINITY;
  if (lane < count && own.weight > 0) {
    const double s = own.inverse_scale;
    const double nu = own.df;
    const double weight = own.weight;
    double z = (x - own.loc) * s;
    z = fmin(fmax(z, -student_t::kMaxT), student_t::kMaxT);
    const double t = fabs(z);
    const double t2 = t * t;
    const double r2 = nu + t2;
    const double ir = inverse_root(r2);
    const double r = ir * ir;
    student_t::Value tail;
    if (nu < student_t::kLargeDf) {
      const double e = inverse(fma(r2, ir, t));
      tail.pdf = own.pdf0 * exp(-0.5 * (nu + 1) * log(fma(t2, own.inverse_df, 1.0)));
      tail.upper = tail.pdf * (2 * r2 * e * own.inverse_df) * polynomial(own.c, nu * e * e);
    } else {
      tail = evaluate_large(nu, own.pdf0, own.c, t);
    }
    const double small = weight * tail.upper;
    const double large = weight - small;
    v[0] = z < 0 ? small : large;
    v[1] = z < 0 ? large : small;
    // (df + z^2) p' = -(df + 1) z p, differentiated n times.
    const double p0 = weight * s * tail.pdf;
    const double rs = r * s;
    v[2] = p0;
    v[3] = -(nu + 1) * z * p0 * rs;
    v[4] = -fma((nu + 3) * z, v[3], (nu + 1) * s * p0) * rs;
    v[5] = -fma((nu + 5) * z, v[4], 2 * (nu + 2) * s * v[3]) * rs;
    radius2 = static_cast<float>((1 + t2) * (own.scale * own.scale));
  }
  sums_of_warp(v, lane, sums);
  // Not negative, so in the order of its bits.
  radius2 = __uint_as_float(__reduce_min_sync(~0U, __float_as_uint(radius2)));
  const double lower = sums[0];
  const double upper = sums[1];
  const double f[3] = {sums[3], sums[4], sums[5]};
  const double f0 = sums[2];
  // Derivatives of log(tail), as mixture::log_derivatives(); of the upper one with the sign of -f.
  double d[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const double r = inverse(i == 0 ? lower : upper);
    const double g = i == 0 ? f0 : -f0;
    const double g1 = i == 0 ? f[0] : -f[0];
    const double g2 = i == 0 ? f[1] : -f[1];
    const double g3 = i == 0 ? f[2] : -f[2];
    d[i][0] = g * r;
    d[i][1] = fma(-g, d[i][0], g1) * r;
    d[i][2] = fma(-2 * g, d[i][1], fma(-g1, d[i][0], g2)) * r;
    d[i][3] = fma(-3 * g, d[i][2], fma(-3 * g1, d[i][1], fma(-g2, d[i][0], g3))) * r;
  }
  Expansion at;
  at.x = x;
  at.target = level.target;
  at.logit = level.target + log_of_ratio(lower * level.odds, upper);
  at.radius = static_cast<double>(rough::root(radius2));
  at.slope = inverse(d[0][0] - d[1][0]);
  const double a2 = (d[0][1] - d[1][1]) * (at.slope * (1.0 / 2));
  const double a3 = (d[0][2] - d[1][2]) * (at.slope * (1.0 / 6));
  const double a4 = (d[0][3] - d[1][3]) * (at.slope * (1.0 / 24));
  at.c2 = -a2;
  at.c3 = fma(2 * a2, a2, -a3);
  at.c4 = fma(5 * a2, fma(-a2, a2, a3), -a4);
  return at;
}

/// Floats in the order of integers, and back.
__device__ inline int ordered(int bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }

/// As Mixture::bracket(), rounded outwards, by a warp whose lanes have a component each, or none.
__device__ inline mixture::Bracket bracket(bool there, double loc, double scale, double reach) {
  int low = INT_MAX;
  int high = INT_MIN;
  if (there) {
    const double far = loc + reach * scale;
    low = ordered(__float_as_int(__double2float_rd(fmin(loc, far))));
    high = ordered(__float_as_int(__double2float_ru(fmax(loc, far))));
  }
  low = __reduce_min_sync(~0U, low);
  high = __reduce_max_sync(~0U, high);
  return {fmax(static_cast<double>(__int_as_float(ordered(low))), -DBL_MAX),
          fmin(static_cast<double>(__int_as_float(ordered(high))), DBL_MAX)};
}

}  // namespace toto::cuda
