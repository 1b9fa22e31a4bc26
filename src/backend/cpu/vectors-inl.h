// SPDX-License-Identifier: Apache-2.0
// Vector helpers shared by the kernels: the ends of rows, and the transcendental functions.
// Compiled once for each instruction set.
#if defined(TOTO_BACKEND_CPU_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TOTO_BACKEND_CPU_VECTORS_INL_H_
#undef TOTO_BACKEND_CPU_VECTORS_INL_H_
#else
#define TOTO_BACKEND_CPU_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;

constexpr std::size_t kLanes = hn::MaxLanes(Floats());

/// The first n < kLanes elements at p, zeros after them.
HWY_INLINE Vec load_n(const float* p, std::size_t n) {
  const Floats d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[kLanes] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#endif
}

HWY_INLINE void store_n(Vec v, float* p, std::size_t n) {
  const Floats d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < n; ++i) p[i] = lanes[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#endif
}

/// Calls body(offset, load, store) for each vector of n elements; the last one may be partial, and
/// goes through the same arithmetic as the others.
template <typename Body>
HWY_INLINE void for_each_vector(std::size_t n, const Body& body) {
  const Floats d;
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    body(
        i, [&](const float* p) { return hn::LoadU(d, p + i); },
        [&](Vec v, float* p) { hn::StoreU(v, d, p + i); });
  }
  if (i < n) {
    body(
        i, [&](const float* p) { return load_n(p + i, n - i); },
        [&](Vec v, float* p) { store_n(v, p + i, n - i); });
  }
}

HWY_INLINE float sum_of(Vec v) { return hn::GetLane(hn::SumOfLanes(Floats(), v)); }

/// e^x / 2^n - 1, of about 1, for a whole n.
HWY_INLINE Vec exp_fraction_less_1(Vec x, Vec n) {
  const Floats d;
  // x - n ln 2, with ln 2 in two parts, the first of which times n is exact.
  Vec r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  Vec p = hn::Set(d, 1.9875691500e-4F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1F));
  return hn::MulAdd(p, hn::Mul(r, r), r);
}

/// e^x / 2^n, about 1, for a whole n.
HWY_INLINE Vec exp_fraction(Vec x, Vec n) {
  return hn::Add(exp_fraction_less_1(x, n), hn::Set(Floats(), 1.0F));
}

/// 2^n for a whole n, -126 to 127.
HWY_INLINE Vec power_of_two(Vec n) {
  const hn::RebindToSigned<Floats> di;
  return hn::BitCast(Floats(), hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127))));
}

/// e^x for x <= 0, within 1 ulp. Below ln(2^-126) the result is 0; NaN stays NaN.
HWY_INLINE Vec exp_negative(Vec x) {
  const Floats d;
  const Vec n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504F)));
  const Vec y = hn::Mul(exp_fraction(x, n), power_of_two(n));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.33654F)), hn::Zero(d), y);
}

/// log(1 + f) + n ln 2 for 1 + f from sqrt(1/2) to sqrt(2) and a whole n; with n = 0 to full
/// relative accuracy.
HWY_INLINE Vec log_of(Vec f, Vec n) {
  const Floats d;
  Vec p = hn::Set(d, 7.0376836292e-2F);
  p = hn::MulAdd(p, f, hn::Set(d, -1.1514610310e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.1676998740e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, -1.2420140846e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.4249322787e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, -1.6668057665e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 2.0000714765e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, -2.4999993993e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 3.3333331174e-1F));
  const Vec square = hn::Mul(f, f);
  Vec y = hn::Mul(hn::Mul(p, square), f);
  y = hn::MulAdd(n, hn::Set(d, -2.12194440e-4F), y);
  y = hn::NegMulAdd(hn::Set(d, 0.5F), square, y);
  return hn::MulAdd(n, hn::Set(d, 0.693359375F), hn::Add(f, y));
}

/// log(1 + e) for 0 <= e <= 1, to full relative accuracy.
HWY_INLINE Vec log1p_unit(Vec e) {
  const Floats d;
  const Vec one = hn::Set(d, 1.0F);
  // log(1 + e) = ln 2 + log(1 + (e - 1) / 2) keeps the argument of the polynomial small.
  const auto big = hn::Gt(e, hn::Set(d, 0.41421356F));
  const Vec f = hn::IfThenElse(big, hn::Mul(hn::Sub(e, one), hn::Set(d, 0.5F)), e);
  return log_of(f, hn::IfThenElseZero(big, one));
}

/// log(x) of a positive number that is not subnormal, to 1e-7 absolute.
HWY_INLINE Vec log_positive(Vec x) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 127));
  const auto mantissa = hn::Or(hn::And(bits, hn::Set(di, 0x007FFFFF)), hn::Set(di, 0x3F800000));
  const Vec e = hn::ConvertTo(d, exponent);
  const Vec low = hn::MulAdd(e, hn::Set(d, -2.12194440e-4F),
                             log1p_unit(hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1))));
  return hn::MulAdd(e, hn::Set(d, 0.693359375F), low);
}

/// M(x) = P(Z > x) / (sqrt(2 pi) times the density), x >= 0: within 2e-7.
HWY_INLINE Vec normal_over_density(Vec x) {
  const Floats d;
  constexpr float kTerms[] = {
      1.979738421e-05F,  1.192242078e-01F, 1.242633040e-01F,  8.302565684e-02F, 1.783417160e-01F,
      -1.470225532e-01F, 3.178879600e-01F, -2.392784387e-01F, 6.949567429e-02F, -5.957310575e-03F};
  const Vec s = hn::Div(hn::Set(d, 1), hn::MulAdd(hn::Set(d, 0.3F), x, hn::Set(d, 1)));
  Vec sum = hn::Set(d, kTerms[9]);
  for (int k = 8; k >= 0; --k) sum = hn::MulAdd(sum, s, hn::Set(d, kTerms[k]));
  return sum;
}

/// To full relative accuracy; infinities and NaN stay what they are.
HWY_INLINE Vec asinh(Vec x) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const Vec one = hn::Set(d, 1.0F);
  const Vec a = hn::Abs(x);
  const Vec square = hn::Mul(a, a);
  // log(1 + t), where nothing cancels; of large ones, whose square may not exist, log(2 a).
  const Vec t = hn::Add(a, hn::Div(square, hn::Add(one, hn::Sqrt(hn::Add(one, square)))));
  const auto large = hn::Gt(a, hn::Set(d, 4096.0F));
  const Vec s = hn::IfThenElse(large, a, hn::Add(one, t));
  const Vec lost = hn::IfThenElse(large, hn::Zero(d), hn::Sub(t, hn::Sub(s, one)));
  // s = 2^k m, with m from sqrt(1/2) to sqrt(2).
  const auto bits = hn::BitCast(di, s);
  const auto k = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
  const Vec m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(k)));
  const Vec power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(hn::Set(di, 127), k)));
  const Vec shrink = hn::IfThenElse(large, one, power);  // of the largest there is none
  const Vec n = hn::ConvertTo(d, k);
  const Vec f = hn::MulAdd(lost, shrink, hn::Sub(m, one));
  const Vec exact = hn::IfThenElse(hn::Eq(hn::IfThenElse(large, one, n), hn::Zero(d)), t, f);
  const Vec y = log_of(exact, hn::Add(n, hn::IfThenElseZero(large, one)));
  const auto finite = hn::Lt(a, hn::Set(d, std::numeric_limits<float>::infinity()));
  return hn::CopySign(hn::IfThenElse(finite, y, a), x);
}

/// Within 2 ulp, infinite where float32 ends; NaN stays NaN.
HWY_INLINE Vec sinh(Vec x) {
  const Floats d;
  const Vec a = hn::Abs(x);
  const Vec square = hn::Mul(a, a);
  Vec p = hn::Set(d, 2.5052108e-8F);  // 1 / 11!
  p = hn::MulAdd(p, square, hn::Set(d, 2.7557319e-6F));
  p = hn::MulAdd(p, square, hn::Set(d, 1.9841270e-4F));
  p = hn::MulAdd(p, square, hn::Set(d, 8.3333333e-3F));
  p = hn::MulAdd(p, square, hn::Set(d, 1.6666667e-1F));
  const Vec small = hn::MulAdd(hn::Mul(p, square), a, a);
  // Half of e^a; its power of two may be one more than float32 has, so it comes in two factors.
  const Vec most = hn::Set(d, 100.0F);
  const Vec capped = hn::IfThenElse(hn::Lt(a, most), a, most);
  const Vec n = hn::Round(hn::Mul(capped, hn::Set(d, 1.44269504F)));
  const Vec part = hn::Mul(exp_fraction(capped, n), power_of_two(hn::Sub(n, hn::Set(d, 65.0F))));
  const Vec half = hn::Mul(part, hn::Set(d, 18446744073709551616.0F));  // 2^64
  const Vec wide = hn::Sub(half, hn::Div(hn::Set(d, 0.25F), half));
  const Vec y = hn::IfThenElse(hn::Lt(a, hn::Set(d, 1.0F)), small, wide);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));
}

/// log(1 + e^x), accurate on both sides: max(x, 0) + log(1 + e^-|x|).
HWY_INLINE Vec softplus(Vec x) {
  const Floats d;
  const Vec positive = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // NaN stays NaN
  return hn::Add(positive, log1p_unit(exp_negative(hn::Neg(hn::Abs(x)))));
}

/// x / (1 + e^-x) within 2 ulp; below ln(2^-126) it is 0, and NaN stays NaN. Of e^-x = 2^n (1 + f)
/// only f is rounded before the sum (1 + 2^n f) + 2^n, in the order that loses least.
HWY_INLINE Vec silu(Vec x) {
  const Floats d;
  const Vec least = hn::Set(d, -87.33654F);
  const Vec t = hn::Max(hn::Min(hn::Neg(x), hn::Set(d, 87.33654F)), least);
  const Vec n = hn::Round(hn::Mul(t, hn::Set(d, 1.44269504F)));
  const Vec power = power_of_two(n);
  const Vec fraction = exp_fraction_less_1(t, n);
  const Vec denominator = hn::Add(hn::MulAdd(fraction, power, hn::Set(d, 1.0F)), power);
  return hn::IfThenElse(hn::Lt(x, least), hn::Zero(d), hn::Div(x, denominator));
}

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
