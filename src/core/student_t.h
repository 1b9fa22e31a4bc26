// SPDX-License-Identifier: Apache-2.0
// Student's t distribution for a fixed number of degrees of freedom: density and upper tail, both
// to full relative accuracy however far out, cheap enough to be called thousands of times for a
// forecast.
//
// With r = sqrt(df + t^2) and v = df / (r + t)^2, which falls from 1 at t = 0 to 0 at infinity,
//     P(T > t) = pdf(t) * 2 r^2 / (df (r + t)) * F(1, 1 - df/2; 1 + df/2; -v)
// (DLMF 8.17.7 for I_x(df/2, 1/2) and Kummer's quadratic transformation, section 15.8(iii)). The
// hypergeometric series has the coefficients b_k = prod_{j=1..k} (m - j) / (m + j), m = df/2:
// positive while k < m, alternating after that. The alternating rest converges slowly near v = 1,
// but the b_k are then moments of a positive measure, so the weights of Cohen, Rodriguez Villegas
// and Zagier ("Convergence acceleration of alternating series", Experimental Mathematics 9, 2000)
// turn 14 terms into an error below 2e-15. What is left is one short polynomial in v. It also
// yields pdf(0), since P(T > 0) = 1/2: no gamma function is needed.
//
// For large df the same integral is expanded about the normal distribution (an expansion of the
// kind of DLMF 8.18(ii)): with u^2 = log(1 + t^2/df),
//     P(T > t) = erfc(u sqrt(df/2)) / 2 + pdf(0)/sqrt(df) * exp(-df u^2/2) * u R(u^2),
// where R follows from the Taylor series of h(u) = u / sqrt(1 - exp(-u^2)) by one recurrence.
#pragma once

#include <cmath>

#include "core/philox.h"

// A device fetches instructions from far away: there, a loop that runs seldom stays short.
#ifdef __CUDA_ARCH__
#define TOTO_SHORT_LOOP _Pragma("unroll 4")
#else
#define TOTO_SHORT_LOOP
#endif

namespace toto::student_t {

inline constexpr int kTerms = 24;         // coefficients kept for one df
inline constexpr double kLargeDf = 40.0;  // from here on the expansion about the normal is used
inline constexpr double kFar = 0.5625;    // t^2 / df at v = 1/4, where far_tail() takes over
inline constexpr double kMaxDf = 1e30;    // indistinguishable from the normal long before
inline constexpr double kMaxT = 1e153;    // t^2 must not overflow; the tail is below 1e-305 there

/// Density and upper tail at t.
struct Value {
  double pdf = 0;
  double upper = 0;
};

/// a / b, where neither b nor its inverse is near the end of the range.
TOTO_HOST_DEVICE inline double quotient(double a, double b) {
#ifdef __CUDA_ARCH__
  double r = 0;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(b));
  const double e = __fma_rn(-b, r, 1.0);
  return a * __fma_rn(r, __fma_rn(e, e, e), r);
#else
  return a / b;
#endif
}

/// What counts of the terms that alternate, in order; of those before them all does, of those after
/// them nothing.
inline constexpr int kWeights = 14;
inline constexpr double kWeight[kWeights] = {
    0.99999999996169011871,  0.99999998494421665450,  0.99999900880844148068,
    0.99997401973259703092,  0.99964023707667473767,  0.99696997582929639170,
    0.98313316754742678073,  0.93447625930348968723,  0.81526683410584380815,
    0.60957213964716072268,  0.36057329898664961921,  0.15361322363245857218,
    0.041134921809528655312, 0.0051418652261910819139};

/// The polynomial in v: its kTerms coefficients. Returns its value at 1.
inline double series_coefficients(double m, double* c) {
  const int positive = static_cast<int>(std::ceil(m));
  double b = 1;
  double sum = 0;
  for (int k = 0; k < kTerms; ++k) {
    const auto at = static_cast<double>(k);
    if (k > 0) b *= quotient(m - at, m + at);
    const int i = k - positive;
    c[k] = b * (i < 0 ? 1.0 : i < kWeights ? kWeight[i] : 0.0);
    sum += c[k];
  }
  return sum;
}

/// The polynomial R in u^2, likewise. Returns what h integrates to over the normal density.
TOTO_HOST_DEVICE inline double normal_coefficients(double df, double* c) {
  constexpr int kPowers = 13;
  constexpr double h[kPowers] = {1.0,
                                 0.25,
                                 0.010416666666666666667,
                                 -0.0026041666666666666667,
                                 -0.00009765625,
                                 0.000051540798611111111111,
                                 1.2756024718915343915e-6,
                                 -1.1100970878802910053e-6,
                                 -1.9670584004181823192e-8,
                                 2.4836319884715677359e-8,
                                 3.3966619660386745055e-10,
                                 -5.6900718339421876409e-10,
                                 -6.3372301556671302380e-12};
  double next = 0.0;
  TOTO_SHORT_LOOP
  for (int k = kTerms - 1; k >= 0; --k) {
    c[k] = next = k + 1 < kPowers ? h[k + 1] + quotient((2 * k + 3) * next, df) : 0.0;
  }
  return h[0] + next / df;
}

/// prepare() for large df alone.
TOTO_HOST_DEVICE inline double prepare_large(double df, double* c) {
  constexpr double kInverseSqrt2Pi = 0.39894228040143267794;
  return kInverseSqrt2Pi / normal_coefficients(df, c);
}

/// Makes a distribution ready: fills c[kTerms] and returns the density at 0.
/// 2 <= df <= kMaxDf.
inline double prepare(double df, double* c) {
  return df < kLargeDf ? 0.25 * std::sqrt(df) / series_coefficients(0.5 * df, c)
                       : prepare_large(df, c);
}

TOTO_HOST_DEVICE inline double polynomial(const double* c, double v) {
  double sum = 0.0;
  for (int k = kTerms - 1; k >= 0; --k) {
#ifdef __CUDA_ARCH__
    sum = __fma_rn(sum, v, c[k]);
#else
    sum = sum * v + c[k];
#endif
  }
  return sum;
}

/// P(T > t) far out for large df, where t^2 > kFar df: the series in v as it is, since its terms
/// then fall faster than 4^-k.
TOTO_HOST_DEVICE inline double far_tail(double df, double pdf, double t) {
  constexpr int kFarTerms = 28;
  const double m = 0.5 * df;
  const double r2 = df + t * t;
  const double e = 1.0 / (std::sqrt(r2) + t);
  const double v = df * e * e;
  double term = 1.0;
  double sum = 1.0;
  TOTO_SHORT_LOOP
  for (int k = 1; k < kFarTerms; ++k) {
    term *= quotient(v * (m - k), m + k);
    sum += term;
  }
  return pdf * (2.0 * r2 * e / df) * sum;
}

/// P(T > t) for large df elsewhere: ratio = t^2 / df, u2 = log(1 + ratio), r = R(u2).
TOTO_HOST_DEVICE inline double near_tail(double df, double pdf, double ratio, double u2, double r) {
  return 0.5 * std::erfc(std::sqrt(0.5 * df * u2)) + pdf * std::sqrt((1.0 + ratio) * u2 / df) * r;
}

/// evaluate() for large df alone.
TOTO_HOST_DEVICE inline Value evaluate_large(double df, double pdf0, const double* c, double t) {
  const double ratio = t * t / df;
  const double u2 = std::log1p(ratio);
  const double pdf = pdf0 * std::exp(-0.5 * (df + 1.0) * u2);
  if (ratio > kFar) return {pdf, far_tail(df, pdf, t)};
  return {pdf, near_tail(df, pdf, ratio, u2, polynomial(c, u2))};
}

/// Density and upper tail at t of a distribution made ready. 0 <= t <= kMaxT.
TOTO_HOST_DEVICE inline Value evaluate(double df, double pdf0, const double* c, double t) {
  if (!(df < kLargeDf)) return evaluate_large(df, pdf0, c, t);
  const double pdf = pdf0 * std::exp(-0.5 * (df + 1.0) * std::log1p(t * t / df));
  const double r2 = df + t * t;
  const double e = 1.0 / (std::sqrt(r2) + t);
  return {pdf, pdf * (2.0 * r2 * e / df) * polynomial(c, df * e * e)};
}

/// The same from nothing. 2 <= df; above kMaxDf it is taken as kMaxDf.
inline Value evaluate(double df, double t) {
  const double nu = df > kMaxDf ? kMaxDf : df;  // NaN stays NaN
  double c[kTerms];
  const double pdf0 = prepare(nu, c);
  return t > kMaxT ? Value{} : evaluate(nu, pdf0, c, t);
}

}  // namespace toto::student_t

namespace toto {

/// Density of Student's t at x. df >= 2.
inline double student_t_pdf(double x, double df) {
  return student_t::evaluate(df, std::fabs(x)).pdf;
}

/// P(T > x), without cancellation for large x. df >= 2.
inline double student_t_upper(double x, double df) {
  const double tail = student_t::evaluate(df, std::fabs(x)).upper;
  return x >= 0 ? tail : 1.0 - tail;
}

/// P(T <= x), without cancellation for very negative x. df >= 2.
inline double student_t_cdf(double x, double df) { return student_t_upper(-x, df); }

}  // namespace toto
