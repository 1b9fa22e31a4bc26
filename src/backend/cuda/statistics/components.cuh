// SPDX-License-Identifier: Apache-2.0
// The components of the mixture of one step, made ready by the warps of a block, and its moments.
#pragma once

#include "backend/cuda/statistics/exact_mixture.cuh"
#include "backend/cuda/statistics/rough_mixture.cuh"

namespace toto::cuda {

__device__ inline double limited_df(float df) {  // NaN stays NaN
  const auto wide = static_cast<double>(df);
  return wide > student_t::kMaxDf ? student_t::kMaxDf : wide;
}

/// Makes the series of components first, first + step, .. of `count` ready, by a warp whose lanes
/// have a term of it each: three at a time, for most is waited for. `df`: of the component of this
/// lane; `shares`: of the alternating term with the lane's number.
__device__ inline void prepare_components(double df, double shares, int first, int step, int count,
                                          Component* all, float* room) {
  constexpr int kSide = 3;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto at = static_cast<double>(lane);
#pragma unroll 1
  for (int j0 = first; j0 < count; j0 += kSide * step) {
    double m[kSide];
    double b[kSide];
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      m[i] = 0.5 * __shfl_sync(~0U, df, min(j0 + i * step, 31));
      b[i] = lane == 0 ? 1 : student_t::quotient(m[i] - at, m[i] + at);
    }
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const double before = __shfl_up_sync(~0U, b[i], offset);
        if (lane >= offset) b[i] *= before;
      }
    }
    double sum[kSide];
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      const int alternating = lane - static_cast<int>(ceil(m[i]));
      const double share = __shfl_sync(~0U, shares, max(alternating, 0));
      sum[i] = lane >= student_t::kTerms ? 0 : alternating < 0 ? b[i] : b[i] * share;
      const int j = j0 + i * step;
      if (j < count && lane < student_t::kTerms) {
        all[j].c[lane] = sum[i];
        room[j * rough::kRoom + lane] = static_cast<float>(sum[i]);
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
#pragma unroll
      for (int i = 0; i < kSide; ++i) sum[i] += __shfl_xor_sync(~0U, sum[i], offset);
    }
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      if (lane == i && j0 + i * step < count) all[j0 + i * step].pdf0 = sum[i];
    }
  }
  __syncwarp();
  // The rest by a lane for each of them, and all of it where there are many degrees of freedom.
  const int j = first + lane * step;
  const double own = __shfl_sync(~0U, df, min(j, 31));
  if (j >= count) return;
  Component& to = all[j];
  to.df = own;
  to.inverse_df = inverse(own);
  to.pdf0 = own < student_t::kLargeDf ? student_t::quotient(0.25 * sqrt(own), to.pdf0)
                                      : student_t::prepare_large(own, to.c);
}

/// What a component adds to the moments of its mixture.
struct Moment {
  double df, loc, scale, weight;
};

/// Lane k of the warp takes the rest of component k; the warp finds whether the mixture is one.
__device__ inline Moment weigh_components(float df, float loc, float scale, float p, bool inside,
                                          Component* own, std::int64_t& all_valid) {
  bool valid = true;
  const auto wide = static_cast<double>(p);
  Moment m{2, 0, 1, 0};
  if (p != 0) {
    m.df = limited_df(df);
    m.loc = static_cast<double>(loc);
    m.scale = static_cast<double>(scale);
    own->loc = m.loc;
    own->scale = m.scale;
    own->inverse_scale = inverse(m.scale);
    valid = p > 0 && m.df >= 2 && isfinite(m.loc) && m.scale > 0 && isfinite(m.scale) &&
            isfinite(own->inverse_scale);
  }
  const double total = sum_of_lanes(wide);
  valid = __all_sync(~0U, valid) != 0 && total > 0 && isfinite(total);
  m.weight = wide * inverse(total);
  if (inside) own->weight = m.weight;
  all_valid = valid ? 1 : 0;
  return m;
}

/// Mean and standard deviation, which is NaN by the rule of Mixture::standard_deviation(). `p`: of
/// the lane's component, before it was divided by all of them.
__device__ inline double2 moments_of(const Moment& m, float p) {
  const double mean = sum_of_lanes(m.weight == 0 ? 0 : static_cast<double>(p) * m.loc);
  const double center = sum_of_lanes(m.weight == 0 ? 0 : m.weight * m.loc);
  double variance = 0;
  double tame = 0;
  if (m.weight != 0) {
    const double square = m.scale * m.scale;
    const double inner = m.df > 2 ? square * (m.df * inverse(m.df - 2)) : HUGE_VAL;
    const double off = m.loc - center;
    variance = m.weight * (inner + off * off);
    const double df = fmax(m.df, 3.0);
    tame = m.weight * (square * (df * inverse(df - 2)) + off * off);
  }
  variance = sum_of_lanes(variance);
  tame = sum_of_lanes(tame);
  const bool known = isfinite(variance) && variance <= mixture::kMaxTail * tame;
  return {mean, known ? sqrt(variance) : nan("")};
}

}  // namespace toto::cuda
