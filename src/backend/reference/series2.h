// SPDX-License-Identifier: Apache-2.0
// What surrounds the network of Toto 2.0 for one lane or one token (spec B5, B8), in plain loops:
// shared by every host backend, since the order of these sums is part of the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/knot_steps.h"
#include "backend/ops2.h"

namespace toto::series2 {

inline constexpr double kMinScale = 1e-6;

/// One variate of a request.
template <typename T>
struct Lane {
  std::int32_t patches;
  std::int32_t context;
  std::int32_t patch;  // P
  T* values;           // [patches][P]
  std::uint8_t* mask;  // [patches][P]
  T* loc;              // [patches]
  T* scale;            // [patches]
  T* bounds;           // [2]
};

template <typename T>
Lane<T> lane_of(const CallSlice& s, const SeriesArrays& a, std::int32_t variate) {
  const std::int64_t first = first_patch_of(s, variate);
  return {s.patches,
          s.context,
          a.patch,
          typed<T>(a.values) + first * a.patch,
          a.mask + first * a.patch,
          typed<T>(a.loc) + first,
          typed<T>(a.scale) + first,
          typed<T>(a.bounds) + std::int64_t{2} * (s.lane + variate)};
}

/// Patches with fewer than `least` observations up to their end take the statistics of the first
/// `least` observations of the lane, wherever those lie.
template <typename T>
void fall_back(const Lane<T>& lane, std::int32_t least) {
  const std::int64_t steps = std::int64_t{lane.patches} * lane.patch;
  const auto for_first = [&](const auto& body) {
    std::int32_t count = 0;
    for (std::int64_t t = 0; t < steps && count < least; ++t) {
      if (lane.mask[t] == 0) continue;
      ++count;
      body(lane.values[t]);
    }
    return count;
  };
  // In the precision of the data, as in the reference: a level far above the spread shows it.
  T sum = 0;
  const std::int32_t count = for_first([&](T x) { sum += x; });
  const T loc = sum / static_cast<T>(std::max(count, 1));
  T squares = 0;
  for_first([&](T x) { squares += (x - loc) * (x - loc); });
  const T scale = std::max(std::sqrt(squares / static_cast<T>(std::max(count - 1, 1))),
                           static_cast<T>(kMinScale));
  std::int32_t seen = 0;
  for (std::int32_t p = 0; p < lane.patches; ++p) {
    const std::uint8_t* mask = lane.mask + std::int64_t{p} * lane.patch;
    for (std::int32_t i = 0; i < lane.patch; ++i) seen += mask[i] != 0 ? 1 : 0;
    if (seen >= least) return;
    lane.loc[p] = loc;
    lane.scale[p] = scale;
  }
}

/// Spec B5: running statistics in float64; a patch has those of its last step.
template <typename T>
void statistics(const Lane<T>& lane, std::int32_t fallback) {
  double count = 0;
  double sum = 0;
  double squares = 0;
  double mean = 0;
  for (std::int32_t p = 0; p < lane.patches; ++p) {
    const std::int64_t first = std::int64_t{p} * lane.patch;
    for (std::int64_t t = first; t < first + lane.patch; ++t) {
      if (lane.mask[t] == 0) continue;
      const auto x = static_cast<double>(lane.values[t]);
      count += 1;
      sum += x;
      const double previous = mean;
      mean = sum / count;
      squares += (x - previous) * (x - mean);
    }
    lane.loc[p] = static_cast<T>(mean);
    lane.scale[p] =
        static_cast<T>(std::max(std::sqrt(squares / std::max(count - 1, 1.0)), kMinScale));
  }
  if (fallback > 0) fall_back(lane, fallback);
}

/// Spec B8.3.
template <typename T>
void cap_bounds(const Lane<T>& lane, double cap) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (!(cap > 0)) {
    lane.bounds[0] = -kInfinity;
    lane.bounds[1] = kInfinity;
    return;
  }
  T low = kInfinity;
  T high = -kInfinity;
  const std::int64_t steps = std::int64_t{lane.context} * lane.patch;
  for (std::int64_t t = 0; t < steps; ++t) {
    if (lane.mask[t] == 0) continue;
    low = std::min(low, lane.values[t]);
    high = std::max(high, lane.values[t]);
  }
  if (low > high) low = high = 0;
  const T reach = static_cast<T>(cap) * lane.scale[lane.context - 1];
  lane.bounds[0] = low - reach;
  lane.bounds[1] = high + reach;
}

/// z [2P]: transformed values, then flags. `refed`: nothing is flagged.
template <typename T>
void embed_input(const Lane<T>& lane, std::int32_t p, bool refed, T* z) {
  const std::int64_t first = std::int64_t{p} * lane.patch;
  for (std::int32_t i = 0; i < lane.patch; ++i) {
    const bool observed = lane.mask[first + i] != 0;
    z[i] = observed ? std::asinh((lane.values[first + i] - lane.loc[p]) / lane.scale[p]) : T{0};
    z[lane.patch + i] = observed || refed ? T{0} : T{1};
  }
}

/// Spec B8.2: +inf becomes the largest finite value of the row, -inf the smallest; where there is
/// none they change places.
template <typename T>
void replace_infinities(T* row, std::int32_t n) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  T low = kInfinity;
  T high = -kInfinity;
  bool any = false;
  for (std::int32_t i = 0; i < n; ++i) {
    any = any || std::isinf(row[i]);
    if (!std::isfinite(row[i])) continue;
    low = std::min(low, row[i]);
    high = std::max(high, row[i]);
  }
  if (!any) return;
  for (std::int32_t i = 0; i < n; ++i) {
    if (std::isinf(row[i])) row[i] = row[i] > 0 ? high : low;
  }
}

/// Ascending, NaN last: values `stride` apart.
template <typename T>
void sort_quantiles(T* y, std::int32_t stride) {
  const auto before = [](T a, T b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  for (std::int32_t q = 1; q < kQuantiles; ++q) {
    const T moved = y[std::int64_t{q} * stride];
    std::int32_t at = q;
    for (; at > 0 && before(moved, y[std::int64_t{at - 1} * stride]); --at) {
      y[std::int64_t{at} * stride] = y[std::int64_t{at - 1} * stride];
    }
    y[std::int64_t{at} * stride] = moved;
  }
}

/// Spec B8: raw [9][P] to y [9][P], in units of patch p.
template <typename T>
void quantiles(const Lane<T>& lane, std::int32_t p, const T* raw, T* y) {
  const T loc = lane.loc[p], scale = lane.scale[p];
  for (std::int32_t q = 0; q < kQuantiles; ++q) {
    T* row = y + std::int64_t{q} * lane.patch;
    const T* from = raw + std::int64_t{q} * lane.patch;
    for (std::int32_t i = 0; i < lane.patch; ++i) {
      row[i] = std::sinh(from[i]) * scale + loc;
    }
    replace_infinities(row, lane.patch);
    for (std::int32_t i = 0; i < lane.patch; ++i) {  // NaN stays NaN
      row[i] = std::min(std::max(row[i], lane.bounds[0]), lane.bounds[1]);
    }
  }
  for (std::int32_t i = 0; i < lane.patch; ++i) sort_quantiles(y + i, lane.patch);
}

template <typename T>
void feed_back(const Lane<T>& lane, std::int32_t p, const T* quantiles) {
  const std::int64_t first = std::int64_t{p} * lane.patch;
  std::copy_n(quantiles + std::int64_t{kQuantiles / 2} * lane.patch, lane.patch,
              lane.values + first);
  std::fill_n(lane.mask + first, lane.patch, std::uint8_t{1});
}

/// The steps of the patch that a token's row predicts: quantiles [9][P].
template <typename T>
void knot_results(const CallSlice& s, const SeriesArrays& a, std::int32_t variate,
                  std::int32_t token, const T* quantiles, const KnotOutputs& to) {
  const std::int32_t p = s.patch + token + 1;
  if (p < s.context) return;
  const std::int32_t first = (p - s.context) * a.patch;
  const std::int64_t at = first_patch_of(s, variate) + p;
  const auto loc = static_cast<double>(typed<T>(a.loc)[at]);
  const auto scale = static_cast<double>(typed<T>(a.scale)[at]);
  double knots[kQuantiles];
  for (std::int32_t i = 0; i < a.patch && first + i < s.horizon; ++i) {
    for (std::int32_t q = 0; q < kQuantiles; ++q) {
      knots[q] = static_cast<double>(quantiles[std::int64_t{q} * a.patch + i]);
    }
    const KnotStep step{s, variate, first + i, loc, scale, knots};
    step.put_statistics(to);
    for (std::int32_t n = 0; n < step.draws(to); ++n) step.put_draw(to, n);
  }
}

/// Ops2::knot_neighbours of one lane: quantiles [tokens][9][P] and scores [tokens][P] of its
/// tokens, rho [P].
template <typename T>
void knot_neighbours(const CallSlice& s, const SeriesArrays& a, std::int32_t variate,
                     const T* quantiles, double* scores, float* rho) {
  const std::int32_t tokens = std::max(s.scored - 1 - s.patch, 0);
  const std::int64_t lane = first_patch_of(s, variate);
  const T* const values = typed<T>(a.values);
  double knots[kQuantiles];
  for (std::int32_t t = 0; t < tokens; ++t) {
    const std::int64_t cell = (lane + s.patch + t + 1) * a.patch;
    for (std::int32_t i = 0; i < a.patch; ++i) {
      double& score = scores[std::int64_t{t} * a.patch + i];
      score = std::numeric_limits<double>::quiet_NaN();
      if (a.mask[cell + i] == 0) continue;
      for (std::int32_t q = 0; q < kQuantiles; ++q) {
        knots[q] = static_cast<double>(quantiles[(std::int64_t{t} * kQuantiles + q) * a.patch + i]);
      }
      score = paths::knot_score(knots, static_cast<double>(values[cell + i]));
    }
  }
  paths::knot_correlations(scores, tokens, a.patch, rho);
}

/// Calls visit(slice, variate, token, row) for every token of a call.
template <typename Visit>
void for_each_token(const Call& call, const Visit& visit) {
  for (std::int32_t i = 0; i < call.count; ++i) {
    const CallSlice& s = call.slices[i];
    for (std::int32_t v = 0; v < s.variates; ++v) {
      for (std::int32_t t = 0; t < s.tokens; ++t) {
        visit(s, v, t, std::int64_t{s.row} + std::int64_t{v} * s.tokens + t);
      }
    }
  }
}

}  // namespace toto::series2
