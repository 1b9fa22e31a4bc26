// SPDX-License-Identifier: Apache-2.0
// The mixture itself: preparing its components, and its cdf and density at a point. The quantiles
// are in mixture_quantile.cpp.
#include "statistics/mixture.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace toto {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();

}  // namespace

Mixture::Mixture(std::size_t max_components)
    : blocks_((max_components + kLanes - 1) / kLanes), order_(max_components) {}

void Mixture::assign(std::span<const double> df, std::span<const double> loc,
                     std::span<const double> scale, std::span<const double> probability) {
  assert(probability.size() <= order_.size());
  assert(df.size() == probability.size() && loc.size() == df.size() && scale.size() == df.size());
  used_ = 0;
  valid_ = true;
  mean_ = variance_ = tame_variance_ = 0;
  double total = 0;
  for (std::size_t k = 0; k < probability.size(); ++k) {
    const double p = probability[k];
    if (p == 0) continue;
    total += p;
    mean_ += p * loc[k];
    valid_ = valid_ && p > 0 && df[k] >= 2 && std::isfinite(loc[k]) && scale[k] > 0 &&
             std::isfinite(scale[k]) && std::isfinite(1 / scale[k]);
    order_[used_++] = {loc[k], static_cast<std::uint32_t>(k)};
  }
  valid_ = valid_ && total > 0 && std::isfinite(total);
  if (!valid_) {
    mean_ = variance_ = tame_variance_ = kNaN;
    return;
  }
  std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(used_),
            [](const Ordered& a, const Ordered& b) {
              return a.loc < b.loc || (a.loc == b.loc && a.index < b.index);
            });
  center_ = mean_ / total;
  for (std::size_t i = 0; i < used_; ++i) {
    const std::size_t k = order_[i].index;
    const std::size_t lane = i % kLanes;
    Block& b = blocks_[i / kLanes];
    if (lane == 0) {
      b = {};
      std::fill_n(b.df, kLanes, 2.0);  // a lane that stays empty must not divide by 0
    }
    const double nu = std::min(df[k], student_t::kMaxDf);
    double c[student_t::kTerms];
    b.df[lane] = nu;
    b.pdf0[lane] = student_t::prepare(nu, c);
    for (int j = 0; j < student_t::kTerms; ++j) b.c[j][lane] = c[j];
    b.loc[lane] = loc[k];
    b.inverse_scale[lane] = 1 / scale[k];
    b.weight[lane] = probability[k] / total;
    b.large[lane] = nu >= student_t::kLargeDf;
    b.any_large = b.any_large || b.large[lane];
    const double own = nu > 2 ? scale[k] * scale[k] * (nu / (nu - 2)) : kInf;
    const double off = loc[k] - center_;
    variance_ += b.weight[lane] * (own + off * off);
    const double tame = std::max(nu, 3.0);
    tame_variance_ += b.weight[lane] * (scale[k] * scale[k] * (tame / (tame - 2)) + off * off);
  }
}

double Mixture::standard_deviation() const {
  const bool known = std::isfinite(variance_) && variance_ <= mixture::kMaxTail * tame_variance_;
  return known ? std::sqrt(variance_) : kNaN;
}

/// One running sum per lane: the order of addition is fixed, and the sums can be vectors.
struct Mixture::Sums {
  double lower[kLanes] = {}, upper[kLanes] = {};
  double f0[kLanes] = {}, f1[kLanes] = {}, f2[kLanes] = {}, f3[kLanes] = {};
  double radius2 = kInf;
};

/// P(T > t) and the density at t = |z| of every lane: student_t::evaluate(), lane by lane.
void Mixture::tails(const Block& b, const double (&z)[kLanes], double (&pdf)[kLanes],
                    double (&tail)[kLanes]) {
  using student_t::kTerms;
  double ratio[kLanes], u2[kLanes], v[kLanes], factor[kLanes], sum[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    ratio[i] = z[i] * z[i] / b.df[i];
    const double e = 1 / (std::sqrt(b.df[i] + z[i] * z[i]) + std::fabs(z[i]));
    v[i] = b.df[i] * e * e;
    factor[i] = 2 * (1 + ratio[i]) * e;
  }
  // log is twice as fast as log1p; what it rounds away is multiplied by df / 2 only.
  for (int i = 0; i < kLanes; ++i) {
    u2[i] = b.large[i] ? std::log1p(ratio[i]) : std::log(1 + ratio[i]);
  }
  for (int i = 0; i < kLanes; ++i) pdf[i] = b.pdf0[i] * std::exp(-0.5 * (b.df[i] + 1) * u2[i]);
  for (int i = 0; i < kLanes; ++i) {
    v[i] = b.large[i] ? u2[i] : v[i];
    sum[i] = b.c[kTerms - 1][i];
  }
  for (int k = kTerms - 2; k >= 0; --k) {
    for (int i = 0; i < kLanes; ++i) sum[i] = sum[i] * v[i] + b.c[k][i];
  }
  for (int i = 0; i < kLanes; ++i) tail[i] = factor[i] * pdf[i] * sum[i];
  if (!b.any_large) return;
  for (int i = 0; i < kLanes; ++i) {
    if (!b.large[i]) continue;
    tail[i] = ratio[i] > student_t::kFar
                  ? student_t::far_tail(b.df[i], pdf[i], std::fabs(z[i]))
                  : student_t::near_tail(b.df[i], pdf[i], ratio[i], u2[i], sum[i]);
  }
}

void Mixture::add_block(const Block& b, double x, Sums& sums) {
  double z[kLanes], pdf[kLanes], tail[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    z[i] = (x - b.loc[i]) * b.inverse_scale[i];
    z[i] = std::min(std::max(z[i], -student_t::kMaxT), student_t::kMaxT);
  }
  tails(b, z, pdf, tail);
  for (int i = 0; i < kLanes; ++i) {
    const double small = b.weight[i] * tail[i];
    const double large = b.weight[i] - small;
    sums.lower[i] += z[i] < 0 ? small : large;
    sums.upper[i] += z[i] < 0 ? large : small;
    // (df + z^2) p' = -(df + 1) z p, differentiated n times.
    const double nu = b.df[i];
    const double s = b.inverse_scale[i];
    const double r = 1 / (nu + z[i] * z[i]);
    const double p0 = b.weight[i] * s * pdf[i];
    const double p1 = -(nu + 1) * z[i] * p0 * r;
    const double p2 = -((nu + 3) * z[i] * p1 + (nu + 1) * p0) * r;
    const double p3 = -((nu + 5) * z[i] * p2 + 2 * (nu + 2) * p1) * r;
    sums.f0[i] += p0;
    sums.f1[i] += p1 * s;
    sums.f2[i] += p2 * s * s;
    sums.f3[i] += p3 * s * s * s;
  }
  for (int i = 0; i < kLanes; ++i) {
    if (b.weight[i] > 0) {
      const double s = b.inverse_scale[i];
      sums.radius2 = std::min(sums.radius2, (1 + z[i] * z[i]) / (s * s));
    }
  }
}

Mixture::Point Mixture::evaluate(double x) const {
  Sums sums;
  const std::size_t count = (used_ + kLanes - 1) / kLanes;
  for (std::size_t j = 0; j < count; ++j) add_block(blocks_[j], x, sums);
  Point point;
  point.x = x;
  for (int i = 0; i < kLanes; ++i) {
    point.lower += sums.lower[i];
    point.upper += sums.upper[i];
    point.f[0] += sums.f0[i];
    point.f[1] += sums.f1[i];
    point.f[2] += sums.f2[i];
    point.f[3] += sums.f3[i];
  }
  point.logit = std::log(point.lower / point.upper);
  point.radius = std::sqrt(sums.radius2);
  return point;
}

double Mixture::pdf(double x) const {
  return valid_ && !std::isnan(x) ? evaluate(std::clamp(x, -kMax, kMax)).f[0] : kNaN;
}

double Mixture::cdf(double x) const {
  return valid_ && !std::isnan(x) ? evaluate(std::clamp(x, -kMax, kMax)).lower : kNaN;
}

double Mixture::upper(double x) const {
  return valid_ && !std::isnan(x) ? evaluate(std::clamp(x, -kMax, kMax)).upper : kNaN;
}

}  // namespace toto
