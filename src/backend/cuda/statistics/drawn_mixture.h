// SPDX-License-Identifier: Apache-2.0
// A mixture of Student-T's in float32, of which a few threads have some components each: what
// coherent paths are drawn with on a device. The formulas are those of
// backend/cpu/mixture_kernels.h. On the host one thread has all components, for tests.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/philox.h"

#ifdef __CUDA_ARCH__
#define TOTO_UNROLL _Pragma("unroll")
#else
#define TOTO_UNROLL
#endif

namespace toto::cuda::drawn {

// Functions of a device are within a few units of the last place; results and divisors below the
// least normal float are zero.
#ifdef __CUDA_ARCH__
__device__ inline float fma_of(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline float quotient(float a, float b) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
  return a * inverse;
}
__device__ inline float exp_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.442695041F));
  return y;
}
__device__ inline float root(float v) {
  float r;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
/// log(1 + r), r >= 0: where r is small by the series of the inverse hyperbolic tangent.
__device__ inline float log1p_of(float r) {
  constexpr float kSmall = 0.42F;
  const float s = quotient(r, 2 + r);
  const float s2 = s * s;
  float sum = fma_of(2.0F / 9, s2, 2.0F / 7);
  sum = fma_of(sum, s2, 2.0F / 5);
  sum = fma_of(sum, s2, 2.0F / 3);
  sum = fma_of(sum, s2, 2.0F);
  float binary;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(binary) : "f"(1 + r));
  return r < kSmall ? s * sum : binary * 0.693147181F;
}
#else
inline float fma_of(float a, float b, float c) { return std::fma(a, b, c); }
inline float quotient(float a, float b) { return a / b; }
inline float exp_of(float x) { return std::exp(x); }
inline float root(float v) { return std::sqrt(v); }
inline float log1p_of(float r) { return std::log1p(r); }
#endif

TOTO_HOST_DEVICE inline float smaller(float a, float b) { return b < a ? b : a; }
TOTO_HOST_DEVICE inline float larger(float a, float b) { return a < b ? b : a; }

inline constexpr float kLeastShare = 1e-10F;  // of less nobody ever draws anything
inline constexpr float kMaxDf = 1e8F;
inline constexpr float kLargeDf = 10;
inline constexpr float kFar = 0.5625F;  // t^2/df beyond which F's own series is short
inline constexpr float kMaxT = 1e18F;   // its square is finite
inline constexpr float kLeastTail = 1e-37F;
inline constexpr int kSeries = 14;  // terms of F
inline constexpr int kNormal = 7;   // terms of R
inline constexpr int kTerms = kSeries + kNormal;
/// What the terms of F are weighed with from where they alternate, number kSeries of these: Cohen,
/// Rodriguez Villegas and Zagier for nine terms. Those before have 1. i < kWeights.
inline constexpr int kWeights = 2 * kSeries - 1;
TOTO_HOST_DEVICE inline float alternating_weight(int i) {
  static constexpr float kWeight[kSeries] = {
      1.0F,        0.99999974F, 0.99995800F, 0.99884486F, 0.98741658F, 0.92864256F, 0.75885098F,
      0.47071980F, 0.18575490F, 0.03377362F, 0.0F,        0.0F,        0.0F,        0.0F};
  return kWeight[i < kSeries ? 0 : i - kSeries + 1];
}

/// The normal's tail over its density.
TOTO_HOST_DEVICE inline float normal_over_density(float x) {
  constexpr float kEach[] = {
      1.979738421e-05F,  1.192242078e-01F, 1.242633040e-01F,  8.302565684e-02F, 1.783417160e-01F,
      -1.470225532e-01F, 3.178879600e-01F, -2.392784387e-01F, 6.949567429e-02F, -5.957310575e-03F};
  const float s = quotient(1, fma_of(0.3F, x, 1));
  float sum = kEach[9];
  TOTO_UNROLL
  for (int k = 8; k >= 0; --k) sum = fma_of(sum, s, kEach[k]);
  return sum;
}

/// About halfway between two floats in the list of all floats.
TOTO_HOST_DEVICE inline float middle_of_floats(float a, float b) {
  const auto ordered = [](float v) {
    const auto i = std::bit_cast<std::int32_t>(v);
    return i < 0 ? std::numeric_limits<std::int32_t>::min() - i : i;
  };
  const std::int32_t i = ordered(a), j = ordered(b);
  const std::int32_t middle = (i & j) + ((i ^ j) >> 1);
  return std::bit_cast<float>(middle < 0 ? std::numeric_limits<std::int32_t>::min() - middle
                                         : middle);
}

/// One component, ready but for its terms, which lie elsewhere: first those of F, then those of R.
struct Part {
  float loc, inverse;   // of the scale
  float weight;         // 0: there is none, and it adds nothing
  float df, a, root_a;  // a: 1/df
  float density;        // weight / scale times pdf(0)
  float far_tail;       // weight times pdf(0)/sqrt(df)
  float near_tail;      // pdf(0)/df
};

/// Coefficients of F in e^2: products of (m - j) / (m + j), m = df/2; where they alternate, with
/// weights[i] = alternating_weight(i). Calls put(k, coefficient). Returns their sum.
template <typename Put>
TOTO_HOST_DEVICE inline float series(float df, const float* weights, const Put& put) {
  const float m = df * 0.5F;
  const int positive = df >= kLargeDf ? kSeries : static_cast<int>(std::ceil(m));
  const float* const own = weights + kSeries - positive;
  float b = 1, sum = 0;
  TOTO_UNROLL
  for (int k = 0; k < kSeries; ++k) {
    const auto j = static_cast<float>(k);
    if (k > 0) b *= quotient(m - j, m + j);
    const float c = b * own[k];
    put(k, c);
    sum += c;
  }
  return sum;
}

/// Coefficients of R in v/df. Calls put(k, coefficient). Returns what pdf(0) is 1/sqrt(2 pi) over.
template <typename Put>
TOTO_HOST_DEVICE inline float normal_terms(float a, const Put& put) {
  constexpr float kEach[kNormal] = {0.25F,         0.010416667F,  -0.0026041667F, -9.765625e-5F,
                                    5.1540799e-5F, 1.2756025e-6F, -1.1100971e-6F};
  float next = 0;
  TOTO_UNROLL
  for (int k = kNormal - 1; k >= 0; --k) {
    next = fma_of(static_cast<float>(2 * k + 3), next * a, kEach[k]);
    put(k, next);
  }
  return fma_of(next, a, 1);
}

/// weight: of all weights; 0: the other parameters do not matter. Calls put(k, term).
template <typename Put>
TOTO_HOST_DEVICE inline Part part_of(float df, float loc, float scale, float weight,
                                     const float* weights, const Put& put) {
  Part p;
  const bool there = weight > 0 && df >= 2;
  p.loc = there ? loc : 0;
  p.inverse = there ? smaller(quotient(1, scale), 1e30F) : 0;
  p.weight = there ? weight : 0;
  p.df = there ? smaller(df, kMaxDf) : 4;
  p.a = quotient(1, p.df);
  p.root_a = root(p.a);
  const float sum = series(p.df, weights, put);
  const float spread = normal_terms(p.a, [&](int k, float v) { put(kSeries + k, v); });
  const float root_df = root(p.df);
  const float pdf0 =
      p.df >= kLargeDf ? quotient(0.39894228F, spread) : quotient(0.25F * root_df, sum);
  p.density = p.weight * pdf0 * p.inverse;
  p.far_tail = p.weight * quotient(pdf0, root_df);
  p.near_tail = pdf0 * p.a;
  return p;
}

struct Tails {
  float lower, upper;
};
struct Sums {
  float lower = 0, upper = 0, f0 = 0, f1 = 0, f2 = 0, f3 = 0;
  float nearest = 0;  // the inverse square of how far a Taylor series is good
};

/// Adds one component at x; `Derivatives` of its density too. term(k): of its terms.
template <bool Derivatives, typename Terms>
TOTO_HOST_DEVICE inline void add(const Part& p, const Terms& term, float x, Sums& s) {
  const float t = smaller(larger((x - p.loc) * p.inverse, -kMaxT), kMaxT);
  const float along = std::fabs(t) * p.root_a;
  const float r = along * along;
  const float u2 = log1p_of(r);
  const float v = u2 * p.df;
  const float fall = exp_of(v * -0.5F);
  const float one_r = r + 1;
  const float g = root(one_r);
  const float e = quotient(1, g + along);
  const float e2 = e * e;
  float sum = term(kSeries - 1);
  TOTO_UNROLL
  for (int k = kSeries - 2; k >= 0; --k) sum = fma_of(sum, e2, term(k));
  float tail = p.far_tail * (1 + e2) * sum;
  if (p.df >= kLargeDf && r <= kFar) {
    float more = term(kTerms - 1);
    TOTO_UNROLL
    for (int k = kTerms - 2; k >= kSeries; --k) more = fma_of(more, u2, term(k));
    const float tau = root(v);
    tail = p.weight * fma_of(p.near_tail * tau, more, normal_over_density(tau));
  }
  const float small = fall * tail;
  const float large = p.weight - small;
  s.lower += t < 0 ? small : large;
  s.upper += t < 0 ? large : small;
  if (!Derivatives) return;
  // (df + t^2) p' = -(df + 1) t p, differentiated n times, over df.
  const float i = quotient(1, one_r);
  const float p0 = p.density * fall * (g * i);
  const float a1 = p.a + 1;
  const float p1 = -(a1 * t * (p0 * i));
  const float p2 = -(fma_of(fma_of(3, p.a, 1) * t, p1, a1 * p0) * i);
  const float p3 = -(fma_of(fma_of(5, p.a, 1) * t, p2, fma_of(4, p.a, 2) * p1) * i);
  const float square = p.inverse * p.inverse;
  s.f0 += p0;
  s.f1 = fma_of(p1, p.inverse, s.f1);
  s.f2 = fma_of(p2, square, s.f2);
  s.f3 = fma_of(p3 * p.inverse, square, s.f3);
  s.nearest = larger(s.nearest, quotient(square, fma_of(t, t, 1)));
}

/// From a point to where the logit is `miss` more; see step_to() of core/mixture_solver.h.
struct Step {
  float newton, length;
  float rest;  // about what four terms leave out, in the logit
  bool converges;
};

TOTO_HOST_DEVICE inline void log_derivatives(float tail, float f0, float f1, float f2, float f3,
                                             float (&out)[4]) {
  const float r = quotient(1, tail);
  out[0] = f0 * r;
  out[1] = fma_of(-f0, out[0], f1) * r;
  out[2] = fma_of(-f1, out[0], fma_of(-2 * f0, out[1], f2)) * r;
  out[3] = fma_of(-f2, out[0], fma_of(-3 * f1, out[1], fma_of(-3 * f0, out[2], f3))) * r;
}

TOTO_HOST_DEVICE inline Step step_from(const Sums& s, float miss) {
  float lower[4], upper[4];
  log_derivatives(s.lower, s.f0, s.f1, s.f2, s.f3, lower);
  log_derivatives(s.upper, -s.f0, -s.f1, -s.f2, -s.f3, upper);
  const float l1 = quotient(1, lower[0] - upper[0]);
  const float a2 = 0.5F * (lower[1] - upper[1]) * l1;
  const float a3 = 1.0F / 6 * (lower[2] - upper[2]) * l1;
  const float a4 = 1.0F / 24 * (lower[3] - upper[3]) * l1;
  const float y = miss * l1;
  const float y2 = y * y;
  const float c2 = -(a2 * y);
  const float square = a2 * a2;
  const float c3 = fma_of(2, square, -a3) * y2;
  const float c4 = fma_of(5 * a2, a3 - square, -a4) * (y2 * y);
  Step step;
  step.newton = y;
  step.length = y * (1 + (c2 + (c3 + c4)));
  // Fourth powers of how far the step reaches: of the terms, of the miss, of what is nearest.
  const float second = c2 * c2;
  const float far = step.length * step.length * s.nearest;
  const float m2 = miss * miss;
  float reach = larger(larger(second * second, c3 * c3), std::fabs(c4));
  step.converges = reach < 1;
  reach = larger(reach, larger(far * far, m2 * m2));
  step.rest = std::fabs(miss) * reach;
  return step;
}

/// Group: the threads of a mixture, of which component k belongs to number k % kThreads. All of
/// them call each function, and all get the same bits. group.term(i, k) is where term k of the
/// thread's component i lies, group.weights() what they are made with. kOwn: components of a
/// thread, at most; 0: any number, made ready whenever they are needed, in the place of one.
template <typename Group, int kOwn>
class Mixture {
 public:
  /// params [4][K]
  TOTO_HOST_DEVICE Mixture(const Group& group, const float* params, std::int32_t components)
      : group_(group), params_(params), components_(components) {
    float total = 0;
    for (std::int32_t k = group_.thread(); k < components_; k += Group::kThreads) {
      total += params_[3 * components_ + k];
    }
    total_ = group_.sum(total);
    bool good = total_ > 0 && total_ < kInf;
    for (std::int32_t k = group_.thread(); k < components_; k += Group::kThreads) {
      const float df = params_[k], loc = params_[components_ + k];
      const float scale = params_[2 * components_ + k];
      const bool valid = df >= 2 && std::isfinite(loc) && scale > 0 && scale <= kLargest;
      if (params_[3 * components_ + k] > kLeastShare * total_ && !valid) good = false;
    }
    valid_ = group_.sum(good ? 0.0F : 1.0F) == 0;
    if constexpr (kOwn > 0) {
      TOTO_UNROLL
      for (int i = 0; i < kOwn; ++i) own_[i] = made(i);
    }
    float centre = 0;
    each([&](const Part& p, int) { centre = fma_of(p.weight, p.loc, centre); });
    centre_ = group_.sum(centre);
    float variance = 0;
    each([&](const Part& p, int) {
      const float off = p.loc - centre_;
      const float df = larger(p.df, 3);
      const float scale = quotient(1, p.weight > 0 ? p.inverse : 1);
      const float inner = scale * scale * quotient(df, df - 2);
      variance = fma_of(p.weight, fma_of(off, off, inner), variance);
    });
    spread_ = root(group_.sum(variance));
  }

  /// P(X <= x) and P(X > x), NaN for parameters that are not valid.
  [[nodiscard]] TOTO_HOST_DEVICE Tails tails(float x) const {
    const Sums s = sums_at<false>(x);
    return valid_ ? Tails{s.lower, s.upper} : Tails{NAN, NAN};
  }

  /// About where the quantile of Phi(score) is.
  [[nodiscard]] TOTO_HOST_DEVICE float guess(float score) const {
    return fma_of(spread_, score, centre_);
  }

  /// x with cdf(x) = Phi(score), NaN for parameters that are not valid. The search begins at
  /// `from`.
  [[nodiscard]] TOTO_HOST_DEVICE float at_score(float score) const {
    return at_score(score, guess(score));
  }
  [[nodiscard]] TOTO_HOST_DEVICE float at_score(float score, float from) const {
    constexpr float kMaxScore = 8.3F;
    constexpr float kRest = 2e-7F;
    constexpr int kMaxSteps = 160;
    const float z = smaller(larger(score, -kMaxScore), kMaxScore);
    const bool below = z < 0;
    const float tail = std::exp(-0.5F * (z * z)) * normal_over_density(std::fabs(z));
    const float odds = below ? quotient(tail, 1 - tail) : quotient(1 - tail, tail);
    Bracket b = bracket(tail, below);
    float x = smaller(larger(from, b.low), b.high);
    float answer = x;
    bool done = !valid_ || std::isnan(score);
    float last = kInf;
    for (int n = 0; n < kMaxSteps; ++n) {
      const Sums s = sums_at<true>(x);
      const float miss = std::log(odds * quotient(s.upper, s.lower));
      const float size = std::fabs(miss);
      (miss > 0 ? b.low : b.high) = x;
      const Step step = step_from(s, miss);
      const float next = x + step.length;
      const auto inside = [&b](float v) { return v >= b.low && v <= b.high; };
      // The last step, where what it leaves out does not matter.
      const bool ends = step.rest < kRest && inside(next);
      if (!done && ends) answer = next;
      done = done || ends;
      if (group_.all(done)) break;

      const float there = step.converges && inside(next) ? next : x + step.newton;
      const bool falls = size < 0.5F * last && inside(there);
      const float half =
          n % 2 == 0 ? fma_of(0.5F, b.low, 0.5F * b.high) : middle_of_floats(b.low, b.high);
      x = falls ? there : half;
      last = falls ? size : kInf;
      // Neighbouring floats: nothing lies between.
      const bool ended = !done && !falls && (x <= b.low || x >= b.high);
      if (ended) answer = b.high;
      done = done || ended;
      if (done) x = answer;
    }
    return valid_ ? (done ? answer : x) : NAN;
  }

 private:
  static constexpr float kInf = std::numeric_limits<float>::infinity();
  static constexpr float kLargest = std::numeric_limits<float>::max();
  struct Bracket {
    float low, high;
  };

  /// The thread's component i.
  [[nodiscard]] TOTO_HOST_DEVICE Part made(int i) const {
    const std::int32_t k = group_.thread() + i * Group::kThreads;
    const bool there = k < components_;
    const float* const at = params_ + (there ? k : 0);
    const float share = there ? at[3 * components_] : 0;
    const float weight = share > kLeastShare * total_ ? quotient(share, total_) : 0;
    const int place = kOwn > 0 ? i : 0;
    return part_of(at[0], at[components_], at[2 * components_], weight, group_.weights(),
                   [&](int term, float v) { group_.term(place, term) = v; });
  }
  /// Calls visit(component, its place) for those of this thread.
  template <typename Visit>
  TOTO_HOST_DEVICE void each(const Visit& visit) const {
    if constexpr (kOwn > 0) {
      TOTO_UNROLL
      for (int i = 0; i < kOwn; ++i) visit(own_[i], i);
    } else {
      for (int i = 0; i * Group::kThreads + group_.thread() < components_; ++i) visit(made(i), 0);
    }
  }

  template <bool Derivatives>
  [[nodiscard]] TOTO_HOST_DEVICE Sums sums_at(float x) const {
    Sums s;
    each([&](const Part& p, int place) {
      add<Derivatives>(
          p, [&](int k) { return group_.term(place, k); }, x, s);
    });
    s.lower = larger(group_.sum(s.lower), kLeastTail);
    s.upper = larger(group_.sum(s.upper), kLeastTail);
    if (!Derivatives) return s;
    s.f0 = group_.sum(s.f0);
    s.f1 = group_.sum(s.f1);
    s.f2 = group_.sum(s.f2);
    s.f3 = group_.sum(s.f3);
    s.nearest = group_.highest(s.nearest);
    return s;
  }

  /// Where the quantile of a tail lies, whatever the degrees of freedom: with df = 2 it is
  /// furthest.
  [[nodiscard]] TOTO_HOST_DEVICE Bracket bracket(float tail, bool below) const {
    // Of df = 2: (1 - 2q) / sqrt(2q(1 - q)).
    const float inner = fma_of(-2, tail, 1);
    const float reach = quotient(inner, root(2 * tail * (1 - tail))) * 1.0001F;
    float low = kInf, high = -kInf;
    each([&](const Part& p, int) {
      if (!(p.weight > 0)) return;
      const float off = quotient(reach, p.inverse);
      low = smaller(low, below ? p.loc - off : p.loc);
      high = larger(high, below ? p.loc : p.loc + off);
    });
    low = -group_.highest(-low);
    high = group_.highest(high);
    const float slack = fma_of(1e-6F, larger(std::fabs(low), std::fabs(high)), 1e-30F);
    return {larger(low - slack, -kLargest), smaller(high + slack, kLargest)};
  }

  Group group_;
  const float* params_;
  std::int32_t components_;
  float total_ = 0, centre_ = 0, spread_ = 0;
  bool valid_ = false;
  Part own_[kOwn > 0 ? kOwn : 1];
};

}  // namespace toto::cuda::drawn
