// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/mixture_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/mixture_kernels.h"
#include "backend/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

constexpr float kLeastShare = 1e-10F;  // of less nobody ever draws anything
constexpr float kMaxDf = 1e8F;
constexpr float kLargeDf = 10;
constexpr float kFar = 0.5625F;  // t^2/df beyond which F's own series is short
constexpr float kMaxT = 1e18F;   // its square is finite
constexpr float kLeastTail = 1e-37F;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kSeries = 14;  // terms of F
constexpr int kNormal = 7;   // terms of R
constexpr int kMaxSteps = 160;

// Where a component has what, in vectors.
enum Part : std::size_t {
  kLoc,
  kInverse,  // of the scale
  kWeight,   // 0 in a lane with fewer components
  kA,        // 1/df
  kDf,
  kRootA,
  kDensity,   // weight / scale times pdf(0)
  kFarTail,   // weight times pdf(0)/sqrt(df)
  kNearTail,  // pdf(0)/df
  kLarge,     // df >= kLargeDf: all bits
  kF,
  kR = kF + kSeries,
  kParts = kR + kNormal,
};

// At the start of a room.
enum Head : std::size_t {
  kCentre,
  kSpread,
  kGood,  // 0, or NaN where the parameters are not valid
  kHead,
};

HWY_INLINE Vec at(const float* p, std::size_t part) {
  return hn::Load(Floats(), p + part * kLanes);
}
HWY_INLINE void put(Vec v, float* p, std::size_t part) {
  hn::Store(v, Floats(), p + part * kLanes);
}
HWY_INLINE Vec set(float x) { return hn::Set(Floats(), x); }

std::size_t room(std::size_t components) { return (kHead + kParts * components) * kLanes; }

// --- functions ---

HWY_INLINE Vec log1p_of(Vec r) {
  const auto small = hn::Lt(r, set(1));
  const Vec near = log1p_unit(hn::Min(r, set(1)));
  if (hn::AllTrue(Floats(), small)) return near;
  return hn::IfThenElse(small, near, log_positive(hn::Add(set(1), r)));
}

// --- taking parameters ---

/// Coefficients of F in e^2: products of (m - j) / (m + j), m = df/2; where they alternate, with
/// the weights of Cohen, Rodriguez Villegas and Zagier for nine terms. Returns their sum.
HWY_INLINE Vec series(Vec df, float* c) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  HWY_ALIGN static constexpr float kWeights[11] = {
      1.0F,        0.99999974F, 0.99995800F, 0.99884486F, 0.98741658F, 0.92864256F,
      0.75885098F, 0.47071980F, 0.18575490F, 0.03377362F, 0.0F};
  const auto large = hn::Ge(df, set(kLargeDf));
  const Vec m = hn::Mul(df, set(0.5F));
  const auto positive = hn::ConvertTo(di, hn::Min(hn::Ceil(m), set(100)));
  Vec b = set(1);
  Vec sum = hn::Zero(d);
  for (int k = 0; k < kSeries; ++k) {
    const Vec j = set(static_cast<float>(k));
    if (k > 0) b = hn::Mul(b, hn::Div(hn::Sub(m, j), hn::Add(m, j)));
    const auto i = hn::Sub(hn::Set(di, k + 1), positive);
    const auto index = hn::Min(hn::Max(i, hn::Zero(di)), hn::Set(di, 10));
    const Vec weight = hn::IfThenElse(large, set(1), hn::GatherIndex(d, kWeights, index));
    const Vec term = hn::Mul(b, weight);
    put(term, c, static_cast<std::size_t>(k));
    sum = hn::Add(sum, term);
  }
  return sum;
}

/// Coefficients of R in v/df. Returns what pdf(0) is 1/sqrt(2 pi) over.
HWY_INLINE Vec normal_terms(Vec a, float* c) {
  constexpr float kTerms[kNormal] = {0.25F,         0.010416667F,  -0.0026041667F, -9.765625e-5F,
                                     5.1540799e-5F, 1.2756025e-6F, -1.1100971e-6F};
  Vec next = hn::Zero(Floats());
  for (int k = kNormal - 1; k >= 0; --k) {
    const Vec by = hn::Mul(next, a);
    next = hn::MulAdd(set(static_cast<float>(2 * k + 3)), by, set(kTerms[k]));
    put(next, c, static_cast<std::size_t>(k));
  }
  return hn::MulAdd(next, a, set(1));
}

/// The rest of a component whose location, inverse scale, weight and df are in place.
HWY_INLINE void prepare(float* p) {
  const Floats d;
  const Vec df = at(p, kDf);
  const Vec a = hn::Div(set(1), df);
  const Vec weight = at(p, kWeight);
  const auto large = hn::Ge(df, set(kLargeDf));
  const Vec sum = series(df, p + kF * kLanes);
  const Vec spread = normal_terms(a, p + kR * kLanes);
  const Vec root = hn::Sqrt(df);
  const Vec pdf0 = hn::IfThenElse(large, hn::Div(set(0.39894228F), spread),
                                  hn::Div(hn::Mul(set(0.25F), root), sum));
  put(a, p, kA);
  put(hn::Sqrt(a), p, kRootA);
  put(hn::Mul(hn::Mul(weight, pdf0), at(p, kInverse)), p, kDensity);
  put(hn::Mul(weight, hn::Div(pdf0, root)), p, kFarTail);
  put(hn::Mul(pdf0, a), p, kNearTail);
  put(hn::VecFromMask(d, large), p, kLarge);
}

/// Whether one component can be computed with.
bool valid(float df, float loc, float scale) {
  return df >= 2 && std::isfinite(loc) && scale > 0 && scale <= std::numeric_limits<float>::max();
}

/// Sum of the probabilities that count; NaN where a component that does is not valid.
float total_of(const float* params, std::size_t components) {
  float total = 0;
  for (std::size_t k = 0; k < components; ++k) total += params[3 * components + k];
  return total > 0 && total < kInf ? total : std::numeric_limits<float>::quiet_NaN();
}

void clear(float* room, std::size_t first, std::size_t end) {
  const Vec zero = hn::Zero(Floats());
  for (std::size_t k = first; k < end; ++k) {
    float* const p = room + (kHead + k * kParts) * kLanes;
    for (const Part part : {kLoc, kInverse, kWeight}) put(zero, p, part);
    put(set(4), p, kDf);
  }
}

std::size_t take(const float* params, std::size_t stride, std::size_t n, std::size_t components,
                 float* room) {
  std::size_t used = 0;
  put(set(std::numeric_limits<float>::quiet_NaN()), room, kGood);
  for (std::size_t lane = 0; lane < n; ++lane) {
    const float* const own = params + lane * stride;
    const float total = total_of(own, components);
    std::size_t kept = 0;
    // Not a number where the total is none, or infinite.
    float good = std::isfinite(total) ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    for (std::size_t k = 0; k < components; ++k) {
      const float share = own[3 * components + k];
      if (!(share > kLeastShare * total)) continue;
      if (kept == used) clear(room, used, used + 1), ++used;
      float* const p = room + (kHead + kept++ * kParts) * kLanes + lane;
      const float df = own[k], loc = own[components + k], scale = own[2 * components + k];
      if (!valid(df, loc, scale)) good = std::numeric_limits<float>::quiet_NaN();
      p[kLoc * kLanes] = loc;
      p[kInverse * kLanes] = std::min(1 / scale, 1e30F);
      p[kWeight * kLanes] = share / total;
      p[kDf * kLanes] = std::min(df, kMaxDf);
    }
    room[kGood * kLanes + lane] = good;
  }
  Vec centre = hn::Zero(Floats());
  for (std::size_t k = 0; k < used; ++k) {
    float* const p = room + (kHead + k * kParts) * kLanes;
    prepare(p);
    centre = hn::MulAdd(at(p, kWeight), at(p, kLoc), centre);
  }
  Vec variance = hn::Zero(Floats());
  for (std::size_t k = 0; k < used; ++k) {
    const float* const p = room + (kHead + k * kParts) * kLanes;
    const Vec off = hn::Sub(at(p, kLoc), centre);
    const Vec df = hn::Max(at(p, kDf), set(3));
    const auto there = hn::Gt(at(p, kWeight), set(0));
    const Vec scale = hn::Div(set(1), hn::IfThenElse(there, at(p, kInverse), set(1)));
    const Vec own = hn::Mul(hn::Mul(scale, scale), hn::Div(df, hn::Sub(df, set(2))));
    variance = hn::MulAdd(at(p, kWeight), hn::MulAdd(off, off, own), variance);
  }
  put(centre, room, kCentre);
  put(hn::Sqrt(variance), room, kSpread);
  return used;
}

// --- at a point ---

struct Sums {
  Vec lower, upper, f0, f1, f2, f3;
  Vec nearest;  // the inverse square of how far a Taylor series is good
};

/// Adds one component at x; `derivatives` of its density too.
template <bool kDerivatives>
HWY_INLINE void add(const float* p, Vec x, Sums& s) {
  const Floats d;
  const Vec inverse = at(p, kInverse), weight = at(p, kWeight), a = at(p, kA);
  Vec t = hn::Mul(hn::Sub(x, at(p, kLoc)), inverse);
  t = hn::Min(hn::Max(t, set(-kMaxT)), set(kMaxT));
  const Vec magnitude = hn::Abs(t);
  const Vec root = hn::Mul(magnitude, at(p, kRootA));
  const Vec r = hn::Mul(root, root);
  const Vec u2 = log1p_of(r);
  const Vec v = hn::Mul(u2, at(p, kDf));
  const Vec fall = exp_negative(hn::Mul(v, set(-0.5F)));
  const Vec one_r = hn::Add(r, set(1));
  const Vec g = hn::Sqrt(one_r);
  const Vec e = hn::Div(set(1), hn::Add(g, root));
  const Vec e2 = hn::Mul(e, e);
  Vec series = at(p, kF + kSeries - 1);
  for (std::size_t k = kSeries - 1; k-- > 0;) series = hn::MulAdd(series, e2, at(p, kF + k));
  Vec tail = hn::Mul(hn::Mul(at(p, kFarTail), hn::Add(set(1), e2)), series);
  const auto near = hn::And(hn::MaskFromVec(at(p, kLarge)), hn::Le(r, set(kFar)));
  if (!hn::AllFalse(d, near)) {
    Vec sum = at(p, kR + kNormal - 1);
    for (std::size_t k = kNormal - 1; k-- > 0;) sum = hn::MulAdd(sum, u2, at(p, kR + k));
    const Vec tau = hn::Sqrt(v);
    const Vec more = hn::Mul(hn::Mul(at(p, kNearTail), tau), sum);
    tail = hn::IfThenElse(near, hn::Mul(weight, hn::Add(normal_over_density(tau), more)), tail);
  }
  const Vec small = hn::Mul(fall, tail);
  const Vec large = hn::Sub(weight, small);
  const auto left = hn::Lt(t, hn::Zero(d));
  s.lower = hn::Add(s.lower, hn::IfThenElse(left, small, large));
  s.upper = hn::Add(s.upper, hn::IfThenElse(left, large, small));
  if (!kDerivatives) return;
  // (df + t^2) p' = -(df + 1) t p, differentiated n times, over df.
  const Vec i = hn::Div(set(1), one_r);
  const Vec p0 = hn::Mul(hn::Mul(at(p, kDensity), fall), hn::Mul(g, i));
  const Vec a1 = hn::Add(set(1), a);
  const Vec p1 = hn::Neg(hn::Mul(hn::Mul(a1, t), hn::Mul(p0, i)));
  const Vec t3 = hn::Mul(hn::MulAdd(set(3), a, set(1)), t);
  const Vec p2 = hn::Neg(hn::Mul(hn::MulAdd(t3, p1, hn::Mul(a1, p0)), i));
  const Vec t5 = hn::Mul(hn::MulAdd(set(5), a, set(1)), t);
  const Vec a4 = hn::MulAdd(set(4), a, set(2));
  const Vec p3 = hn::Neg(hn::Mul(hn::MulAdd(t5, p2, hn::Mul(a4, p1)), i));
  s.f0 = hn::Add(s.f0, p0);
  s.f1 = hn::MulAdd(p1, inverse, s.f1);
  const Vec square = hn::Mul(inverse, inverse);
  s.f2 = hn::MulAdd(p2, square, s.f2);
  s.f3 = hn::MulAdd(hn::Mul(p3, inverse), square, s.f3);
  s.nearest = hn::Max(s.nearest, hn::Div(square, hn::MulAdd(t, t, set(1))));
}

template <bool kDerivatives>
HWY_INLINE Sums sums_at(const float* room, std::size_t used, Vec x) {
  const Vec zero = hn::Zero(Floats());
  Sums s{zero, zero, zero, zero, zero, zero, zero};
  const float* p = room + kHead * kLanes;
  for (std::size_t k = 0; k < used; ++k, p += kParts * kLanes) add<kDerivatives>(p, x, s);
  s.lower = hn::Max(s.lower, set(kLeastTail));
  s.upper = hn::Max(s.upper, set(kLeastTail));
  return s;
}

void tails(const float* room, std::size_t used, const float* x, float* lower, float* upper) {
  const Floats d;
  const Vec good = at(room, kGood);
  const Sums s = sums_at<false>(room, used, hn::LoadU(d, x));
  hn::StoreU(hn::Add(s.lower, good), d, lower);
  hn::StoreU(hn::Add(s.upper, good), d, upper);
}

// --- the way back ---

/// From a point to where the logit is `miss` more; see step_to() of core/mixture_solver.h.
struct Step {
  Vec newton, length;
  Vec rest;  // about what four terms leave out, in the logit
  hn::Mask<Floats> converges;
};

HWY_INLINE void log_derivatives(Vec tail, Vec f0, Vec f1, Vec f2, Vec f3, Vec (&out)[4]) {
  const Vec r = hn::Div(set(1), tail);
  out[0] = hn::Mul(f0, r);
  out[1] = hn::Mul(hn::NegMulAdd(f0, out[0], f1), r);
  out[2] = hn::Mul(hn::NegMulAdd(f1, out[0], hn::NegMulAdd(hn::Mul(set(2), f0), out[1], f2)), r);
  const Vec three = set(3);
  Vec last = hn::NegMulAdd(hn::Mul(three, f0), out[2], f3);
  last = hn::NegMulAdd(hn::Mul(three, f1), out[1], last);
  out[3] = hn::Mul(hn::NegMulAdd(f2, out[0], last), r);
}

HWY_INLINE Step step_from(const Sums& s, Vec miss) {
  Vec lower[4], upper[4];
  log_derivatives(s.lower, s.f0, s.f1, s.f2, s.f3, lower);
  log_derivatives(s.upper, hn::Neg(s.f0), hn::Neg(s.f1), hn::Neg(s.f2), hn::Neg(s.f3), upper);
  const Vec l1 = hn::Div(set(1), hn::Sub(lower[0], upper[0]));
  const Vec a2 = hn::Mul(hn::Mul(set(0.5F), hn::Sub(lower[1], upper[1])), l1);
  const Vec a3 = hn::Mul(hn::Mul(set(1.0F / 6), hn::Sub(lower[2], upper[2])), l1);
  const Vec a4 = hn::Mul(hn::Mul(set(1.0F / 24), hn::Sub(lower[3], upper[3])), l1);
  const Vec y = hn::Mul(miss, l1);
  const Vec y2 = hn::Mul(y, y);
  const Vec c2 = hn::Neg(hn::Mul(a2, y));
  const Vec square = hn::Mul(a2, a2);
  const Vec c3 = hn::Mul(hn::MulSub(set(2), square, a3), y2);
  const Vec inner = hn::MulSub(hn::Mul(set(5), a2), hn::Sub(a3, square), a4);
  const Vec c4 = hn::Mul(inner, hn::Mul(y2, y));
  const Vec length = hn::Mul(y, hn::Add(set(1), hn::Add(c2, hn::Add(c3, c4))));
  // Fourth powers of how far the step reaches: of the terms, of the miss, of what is nearest.
  const Vec second = hn::Mul(c2, c2);
  const Vec far = hn::Mul(hn::Mul(length, length), s.nearest);
  const Vec m2 = hn::Mul(miss, miss);
  Vec reach = hn::Max(hn::Mul(second, second), hn::Mul(c3, c3));
  reach = hn::Max(reach, hn::Abs(c4));
  const auto converges = hn::Lt(reach, set(1));
  reach = hn::Max(reach, hn::Max(hn::Mul(far, far), hn::Mul(m2, m2)));
  return {y, length, hn::Mul(hn::Abs(miss), reach), converges};
}

/// About halfway between two floats in the list of all floats.
HWY_INLINE Vec middle_of_floats(Vec a, Vec b) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto lowest = hn::Set(di, std::numeric_limits<std::int32_t>::min());
  const auto ordered = [&](Vec v) {
    const auto i = hn::BitCast(di, v);
    return hn::IfThenElse(hn::Lt(i, hn::Zero(di)), hn::Sub(lowest, i), i);
  };
  const auto i = ordered(a), j = ordered(b);
  const auto middle = hn::Add(hn::And(i, j), hn::ShiftRight<1>(hn::Xor(i, j)));
  const auto back = hn::IfThenElse(hn::Lt(middle, hn::Zero(di)), hn::Sub(lowest, middle), middle);
  return hn::BitCast(d, back);
}

struct Bracket {
  Vec low, high;
};

/// Where the quantile of a tail lies, whatever the degrees of freedom: with df = 2 it is furthest.
HWY_INLINE Bracket bracket(const float* room, std::size_t used, Vec tail, hn::Mask<Floats> below) {
  const Vec inner = hn::NegMulAdd(set(2), tail, set(1));  // of df = 2: (1 - 2q) / sqrt(2q(1 - q))
  const Vec outer = hn::Mul(hn::Mul(set(2), tail), hn::Sub(set(1), tail));
  const Vec reach = hn::Mul(hn::Div(inner, hn::Sqrt(outer)), set(1.0001F));
  Vec low = set(kInf), high = set(-kInf);
  const float* p = room + kHead * kLanes;
  for (std::size_t k = 0; k < used; ++k, p += kParts * kLanes) {
    const auto there = hn::Gt(at(p, kWeight), set(0));
    const Vec loc = at(p, kLoc);
    const Vec off = hn::Div(reach, at(p, kInverse));
    const Vec left = hn::IfThenElse(below, hn::Sub(loc, off), loc);
    const Vec right = hn::IfThenElse(below, loc, hn::Add(loc, off));
    low = hn::IfThenElse(there, hn::Min(low, left), low);
    high = hn::IfThenElse(there, hn::Max(high, right), high);
  }
  const Vec largest = set(std::numeric_limits<float>::max());
  const Vec slack = hn::MulAdd(set(1e-6F), hn::Max(hn::Abs(low), hn::Abs(high)), set(1e-30F));
  return {hn::Max(hn::Sub(low, slack), hn::Neg(largest)), hn::Min(hn::Add(high, slack), largest)};
}

void at_scores(const float* room, std::size_t used, const float* scores, float* out) {
  constexpr float kMaxScore = 8.3F;
  constexpr float kRest = 2e-7F;
  const Floats d;
  using Mask = hn::Mask<Floats>;
  const Vec good = at(room, kGood);
  const Vec z = hn::Min(hn::Max(hn::LoadU(d, scores), set(-kMaxScore)), set(kMaxScore));
  const Vec magnitude = hn::Abs(z);
  const Mask below = hn::Lt(z, hn::Zero(d));
  const Vec tail =
      hn::Mul(exp_negative(hn::Mul(hn::Mul(z, z), set(-0.5F))), normal_over_density(magnitude));
  const Vec rest = hn::Sub(set(1), tail);
  const Vec odds = hn::Div(hn::IfThenElse(below, tail, rest), hn::IfThenElse(below, rest, tail));

  Bracket b = bracket(room, used, tail, below);
  Vec x = hn::MulAdd(at(room, kSpread), z, at(room, kCentre));
  x = hn::Min(hn::Max(x, b.low), b.high);
  Vec answer = x;
  Mask done = hn::Or(hn::IsNaN(good), hn::IsNaN(z));
  Vec last = set(kInf);
  for (int n = 0; n < kMaxSteps; ++n) {
    const Sums s = sums_at<true>(room, used, x);
    const Vec miss = log_positive(hn::Div(hn::Mul(odds, s.upper), s.lower));
    const Vec size = hn::Abs(miss);
    const Mask up = hn::Gt(miss, hn::Zero(d));
    b.low = hn::IfThenElse(up, x, b.low);
    b.high = hn::IfThenElse(up, b.high, x);
    const Step step = step_from(s, miss);
    const Vec next = hn::Add(x, step.length);
    const auto inside = [&](Vec v) { return hn::And(hn::Ge(v, b.low), hn::Le(v, b.high)); };
    // The last step, where what it leaves out does not matter.
    const Mask ends = hn::And(hn::Lt(step.rest, set(kRest)), inside(next));
    answer = hn::IfThenElse(hn::AndNot(done, ends), next, answer);
    done = hn::Or(done, ends);
    if (hn::AllTrue(d, done)) break;

    const Vec newton = hn::Add(x, step.newton);
    const Vec there = hn::IfThenElse(hn::And(step.converges, inside(next)), next, newton);
    const Mask falls = hn::And(hn::Lt(size, hn::Mul(set(0.5F), last)), inside(there));
    const Vec half = n % 2 == 0 ? hn::MulAdd(set(0.5F), b.low, hn::Mul(set(0.5F), b.high))
                                : middle_of_floats(b.low, b.high);
    x = hn::IfThenElse(falls, there, half);
    last = hn::IfThenElse(falls, size, set(kInf));
    // Neighbouring floats: nothing lies between.
    const Mask stuck = hn::Or(hn::Le(x, b.low), hn::Ge(x, b.high));
    const Mask ended = hn::AndNot(done, hn::And(stuck, hn::Not(falls)));
    answer = hn::IfThenElse(ended, b.high, answer);
    done = hn::Or(done, ended);
    x = hn::IfThenElse(done, answer, x);
  }
  answer = hn::IfThenElse(done, answer, x);
  hn::StoreU(hn::Add(answer, good), d, out);
}

}  // namespace

extern const cpu::MixtureKernels kMixtureKernels;
const cpu::MixtureKernels kMixtureKernels = {kLanes, room, take, at_scores, tails};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

const MixtureKernels& mixture_kernels(Isa isa) { return TOTO_SELECT(isa, kMixtureKernels); }

}  // namespace toto::cpu
#endif
