// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/knot_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <cmath>

#include "backend/cpu/knot_kernels.h"
#include "backend/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

constexpr float kMaxScore = 8.3F;
constexpr std::size_t kKnots = 9;
constexpr std::size_t kMiddle = kKnots / 2;

using Words = hn::RebindToUnsigned<Floats>;
using Wide = hn::RepartitionToWide<Words>;
using WordVec = hn::Vec<Words>;

// --- random words (core/philox.h) ---

struct Product {
  WordVec high, low;
};

HWY_INLINE Product multiply(WordVec a, std::uint32_t by) {
  const Words d;
  const Wide wide;
  const WordVec b = hn::Set(d, by);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
}

struct FourWords {
  WordVec x[4];
};

HWY_INLINE FourWords philox(FourWords c, std::uint64_t key) {
  const Words d;
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Product p0 = multiply(c.x[0], 0xD2511F53U);
    const Product p1 = multiply(c.x[2], 0xCD9E8D57U);
    c = {{hn::Xor(hn::Xor(p1.high, c.x[1]), hn::Set(d, k0)), p1.low,
          hn::Xor(hn::Xor(p0.high, c.x[3]), hn::Set(d, k1)), p0.low}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

// --- normals ---

template <std::size_t N>
HWY_INLINE Vec polynomial(const float (&terms)[N], Vec x) {
  const Floats d;
  Vec sum = hn::Set(d, terms[N - 1]);
  for (std::size_t k = N - 1; k-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, terms[k]));
  return sum;
}

/// The z > 0 beyond which a tail lies, 0 < tail <= 1/2, no further than kMaxScore: z / (1 - 2 tail)
/// is a polynomial in w = -log(4 tail (1 - tail)), and far out in its root. Within 2e-7 of its size
/// up to z = 3, 2e-6 beyond.
HWY_INLINE Vec score_of_tail(Vec tail) {
  constexpr float kNear[] = {2.338620869e+00F,  3.396347544e-01F, -8.533752498e-03F,
                             -1.047228365e-03F, 2.648151756e-04F, -1.974185255e-05F,
                             -2.154159457e-06F, 6.160148572e-07F, -1.234325262e-08F,
                             -7.155804078e-09F};
  constexpr float kFar[] = {6.072982839e+00F,  1.428659890e+00F,  4.980458298e-04F,
                            -7.484691548e-04F, 3.211966740e-04F,  2.919993728e-05F,
                            -3.921047203e-05F, -3.568917355e-05F, 1.669429684e-05F};
  const Floats d;
  const Vec one = hn::Set(d, 1.0F);
  const Vec product = hn::Mul(hn::Mul(hn::Set(d, 4.0F), tail), hn::Sub(one, tail));
  const Vec w = hn::Max(hn::Neg(log_positive(product)), hn::Zero(d));
  Vec over = polynomial(kNear, hn::Sub(w, hn::Set(d, 3.125F)));
  const auto far = hn::Gt(w, hn::Set(d, 6.25F));
  if (!hn::AllFalse(d, far)) {
    const Vec root = hn::Min(hn::Sqrt(w), hn::Set(d, 6.4F));
    over = hn::IfThenElse(far, polynomial(kFar, hn::Sub(root, hn::Set(d, 4.45F))), over);
  }
  const Vec z = hn::Mul(over, hn::NegMulAdd(hn::Set(d, 2.0F), tail, one));
  return hn::Min(z, hn::Set(d, kMaxScore));
}

/// The normal of a level (high, low, as quantile_level() has them): the tail on its side of one
/// half is the same for a level and its mirror image.
HWY_INLINE Vec normal_of(WordVec high, WordVec low) {
  const Floats d;
  const Words du;
  const hn::RebindToSigned<Floats> di;
  const auto upper = hn::ShiftRight<31>(hn::BitCast(di, high));  // all ones above one half
  const auto fold = [&](WordVec w) { return hn::Xor(w, hn::BitCast(du, upper)); };
  const Vec half = hn::Set(d, 0.5F);
  const Vec rest =
      hn::Mul(hn::Add(hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<12>(fold(low)))), half),
              hn::Set(d, 0x1p-20F));
  const Vec whole = hn::ConvertTo(d, hn::BitCast(di, fold(high)));
  const Vec tail = hn::Min(hn::Mul(hn::Add(whole, rest), hn::Set(d, 0x1p-32F)), half);
  const Vec z = score_of_tail(tail);
  return hn::IfThenElse(hn::MaskFromVec(hn::BitCast(d, upper)), z, hn::Neg(z));
}

void chain(const cpu::ChainTask& task, const float* before, std::size_t n, float* z) {
  const Floats d;
  const Words du;
  const Vec rho = hn::Set(d, task.rho);
  const Vec free = hn::Set(d, task.free);
  const WordVec key = hn::Set(du, static_cast<std::uint32_t>(task.key));
  const WordVec variate = hn::Set(
      du, (static_cast<std::uint32_t>(task.key >> 32) & 0xFFFFU) << 16 | (task.variate & 0xFFFFU));
  const WordVec step = hn::Set(du, task.step);
  for_each_vector(n, [&](std::size_t i, const auto& load, const auto& put) {
    const WordVec sample = hn::Iota(du, task.sample + static_cast<std::uint32_t>(i));
    const FourWords words = philox({{key, variate, sample, step}}, task.seed);
    const Vec fresh = hn::Mul(free, normal_of(words.x[1], words.x[3]));
    put(before == nullptr ? fresh : hn::MulAdd(rho, load(before), fresh), z);
  });
}

// --- quantiles ---

/// So many widths of the tail (from `inner` to `outer`) beyond `outer`, as knot_beyond().
HWY_INLINE Vec beyond(Vec outer, Vec inner, Vec widths) {
  const Floats d;
  const Vec largest = hn::Set(d, std::numeric_limits<float>::max());
  const Vec width = hn::Sub(outer, inner);
  const auto there = hn::Lt(hn::Abs(width), hn::Set(d, std::numeric_limits<float>::infinity()));
  const Vec off = hn::MulAdd(width, widths, outer);
  const auto moves = hn::And(there, hn::Ne(width, hn::Zero(d)));
  return hn::IfThenElse(moves, hn::Min(hn::Max(off, hn::Neg(largest)), largest), outer);
}

void at_scores(const float* knots, std::size_t stride, KnotTails tails, std::size_t n, float* z) {
  const Floats d;
  const Vec zero = hn::Zero(d), one = hn::Set(d, 1.0F);
  const Vec over_score = hn::Set(d, static_cast<float>(1 / knot_outer_score(kKnots)));
  // From the outermost to the middle and one beyond it, of either side.
  Vec left[kMiddle + 2], right[kMiddle + 2];
  for (std::size_t i = 0; i < kMiddle + 2; ++i) {
    left[i] = hn::Set(d, knots[i * stride]);
    right[i] = hn::Set(d, knots[(kKnots - 1 - i) * stride]);
  }
  for_each_vector(n, [&](std::size_t, const auto& load, const auto& put) {
    const Vec score = load(z);
    const auto below = hn::Lt(score, zero);
    const Vec size = hn::Min(hn::Abs(score), hn::Set(d, kMaxScore));
    const Vec density = exp_negative(hn::Mul(hn::Mul(size, size), hn::Set(d, -0.5F)));
    const Vec share = hn::Mul(hn::Mul(density, normal_over_density(size)),
                              hn::Set(d, static_cast<float>(kKnots + 1)));
    // Knots inwards from the outermost of its side: 0 to kMiddle.
    const Vec at =
        hn::Min(hn::Max(hn::Sub(share, one), zero), hn::Set(d, static_cast<float>(kMiddle)));
    const Vec whole = hn::Floor(at);
    Vec outer = hn::IfThenElse(below, left[0], right[0]);
    Vec inner = hn::IfThenElse(below, left[1], right[1]);
    const Vec first = outer, second = inner;
    for (std::size_t i = 1; i <= kMiddle; ++i) {
      const auto reached = hn::Ge(whole, hn::Set(d, static_cast<float>(i)));
      outer = hn::IfThenElse(reached, inner, outer);
      inner = hn::IfThenElse(reached, hn::IfThenElse(below, left[i + 1], right[i + 1]), inner);
    }
    const Vec part = hn::Sub(at, whole);
    Vec x = hn::MulAdd(inner, part, hn::Mul(outer, hn::Sub(one, part)));
    if (tails != KnotTails::clamped) {
      const auto out = hn::Lt(share, one);
      if (!hn::AllFalse(d, out)) {
        const bool normal = tails == KnotTails::normal;
        const Vec widths =
            normal ? hn::Max(hn::MulSub(size, over_score, one), zero)
                   : hn::Mul(log_positive(hn::Min(share, one)), hn::Set(d, -1.44269504F));
        x = hn::IfThenElse(out, beyond(first, normal ? left[kMiddle] : second, widths), x);
      }
    }
    put(hn::IfThenElse(hn::IsNaN(score), score, x), z);
  });
}

}  // namespace

extern const cpu::KnotKernels kKnotKernels;
const cpu::KnotKernels kKnotKernels = {chain, at_scores};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

const KnotKernels& knot_kernels(Isa isa) { return TOTO_SELECT(isa, kKnotKernels); }

}  // namespace toto::cpu
#endif
