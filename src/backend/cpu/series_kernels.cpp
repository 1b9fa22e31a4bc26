// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/series_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/series_kernels.h"
#include "backend/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();
constexpr float kFar = std::numeric_limits<float>::infinity();

// --- eight sums side by side, whatever the width of vectors ---

constexpr std::size_t kSums = 8;
using Doubles = hn::CappedTag<double, kSums>;
using Narrow = hn::Rebind<float, Doubles>;
constexpr std::size_t kWidth = hn::MaxLanes(Doubles());
constexpr std::size_t kParts = kSums / kWidth;

/// All ones where mask[0 .. kWidth) is not 0.
HWY_INLINE auto observed(const std::uint8_t* mask) {
  const hn::RebindToSigned<Narrow> words;
  const hn::Rebind<std::uint8_t, Narrow> bytes;
  const auto wide = hn::PromoteTo(words, hn::LoadU(bytes, mask));
  return hn::VecFromMask(words, hn::Ne(wide, hn::Zero(words)));
}

template <bool kMasked>
cpu::Spread spread_of(const float* values, const std::uint8_t* mask, std::size_t count) {
  const Doubles d;
  const Narrow narrow;
  const std::size_t whole = count / kSums * kSums;
  hn::Vec<Doubles> sums[kParts];
  hn::Vec<Narrow> low[kParts], high[kParts];
  for (std::size_t i = 0; i < kParts; ++i) {
    sums[i] = hn::Zero(d);
    low[i] = hn::Set(narrow, kFar);
    high[i] = hn::Set(narrow, -kFar);
  }
  std::size_t seen = kMasked ? 0 : count;
  for (std::size_t t = 0; t < whole; t += kSums) {
    for (std::size_t i = 0; i < kParts; ++i) {
      const auto x = hn::LoadU(narrow, values + t + i * kWidth);
      auto below = x, above = x, added = x;
      if constexpr (kMasked) {
        const auto there = hn::MaskFromVec(hn::BitCast(narrow, observed(mask + t + i * kWidth)));
        seen += hn::CountTrue(narrow, there);
        added = hn::IfThenElseZero(there, x);
        below = hn::IfThenElse(there, x, hn::Set(narrow, kFar));
        above = hn::IfThenElse(there, x, hn::Set(narrow, -kFar));
      }
      sums[i] = hn::Add(sums[i], hn::PromoteTo(d, added));
      low[i] = hn::IfThenElse(hn::Lt(below, low[i]), below, low[i]);
      high[i] = hn::IfThenElse(hn::Gt(above, high[i]), above, high[i]);
    }
  }
  double parts[kSums];
  float lows[kSums], highs[kSums];
  for (std::size_t i = 0; i < kParts; ++i) {
    hn::StoreU(sums[i], d, parts + i * kWidth);
    hn::StoreU(low[i], narrow, lows + i * kWidth);
    hn::StoreU(high[i], narrow, highs + i * kWidth);
  }
  const auto is_seen = [&](std::size_t t) { return !kMasked || mask[t] != 0; };
  for (std::size_t t = whole; t < count; ++t) {
    if (!is_seen(t)) continue;
    const std::size_t l = t - whole;
    parts[l] += double{values[t]};
    lows[l] = std::min(lows[l], values[t]);
    highs[l] = std::max(highs[l], values[t]);
    seen += kMasked ? 1 : 0;
  }
  cpu::Spread out;
  out.count = seen;
  if (seen == 0) return out;
  double sum = 0;
  for (const double part : parts) sum += part;
  out.mean = sum / static_cast<double>(seen);
  out.lowest = *std::min_element(lows, lows + kSums);
  out.highest = *std::max_element(highs, highs + kSums);

  const auto mean = hn::Set(d, out.mean);
  for (auto& part : sums) part = hn::Zero(d);
  for (std::size_t t = 0; t < whole; t += kSums) {
    for (std::size_t i = 0; i < kParts; ++i) {
      const std::size_t at = t + i * kWidth;
      auto off = hn::Sub(hn::PromoteTo(d, hn::LoadU(narrow, values + at)), mean);
      if constexpr (kMasked) {
        const auto there = hn::PromoteTo(hn::RebindToSigned<Doubles>(), observed(mask + at));
        off = hn::And(off, hn::BitCast(d, there));
      }
      sums[i] = hn::Add(sums[i], hn::Mul(off, off));
    }
  }
  for (std::size_t i = 0; i < kParts; ++i) hn::StoreU(sums[i], d, parts + i * kWidth);
  for (std::size_t t = whole; t < count; ++t) {
    const double off = is_seen(t) ? double{values[t]} - out.mean : 0.0;
    parts[t - whole] += off * off;
  }
  double squares = 0;
  for (const double part : parts) squares += part;
  out.deviation = std::sqrt(squares / static_cast<double>(seen));
  return out;
}

cpu::Spread spread(const float* values, const std::uint8_t* mask, std::size_t count) {
  return mask == nullptr ? spread_of<false>(values, mask, count)
                         : spread_of<true>(values, mask, count);
}

// --- rows ---

void scale(const float* from, std::size_t count, float factor, float* to) {
  const Floats d;
  const Vec by = hn::Set(d, factor), most = hn::Set(d, kMost), least = hn::Set(d, -kMost);
  for_each_vector(count, [&](std::size_t, const auto& load, const auto& put) {
    const Vec x = load(from);
    Vec y = hn::Mul(x, by);  // NaN stays NaN
    y = hn::IfThenElse(hn::Lt(y, least), least, y);
    y = hn::IfThenElse(hn::Gt(y, most), most, y);
    put(hn::IfThenElse(hn::Gt(hn::Abs(x), most), x, y), to);
  });
}

/// All ones where a number is not finite.
HWY_INLINE auto not_finite(Vec x) {
  const hn::RebindToSigned<Floats> di;
  const auto exponent = hn::Set(di, 0x7F800000);
  return hn::VecFromMask(di, hn::Eq(hn::And(hn::BitCast(di, x), exponent), exponent));
}

bool multiply(float* row, std::size_t count, float factor) {
  const hn::RebindToSigned<Floats> di;
  const Vec by = hn::Set(Floats(), factor);
  auto others = hn::Zero(di);
  for_each_vector(count, [&](std::size_t, const auto& load, const auto& put) {
    const Vec y = hn::Mul(load(row), by);
    others = hn::Or(others, not_finite(y));
    put(y, row);
  });
  return hn::AllTrue(di, hn::Eq(others, hn::Zero(di)));
}

bool all_finite(const float* values, std::size_t count) {
  const hn::RebindToSigned<Floats> di;
  auto others = hn::Zero(di);
  for_each_vector(count, [&](std::size_t, const auto& load, const auto&) {
    others = hn::Or(others, not_finite(load(values)));
  });
  return hn::AllTrue(di, hn::Eq(others, hn::Zero(di)));
}

// --- rows out of records, four of each at a time ---

using Four = hn::FixedTag<float, 4>;
using Vec4 = hn::Vec<Four>;
using Two = hn::FixedTag<double, 2>;

/// Row i of the transposed matrix is x[i].
HWY_INLINE void transpose(Vec4 (&x)[4]) {
  const Four d;
  const Two pairs;
  const auto as_pairs = [&](Vec4 v) { return hn::BitCast(pairs, v); };
  const auto ab_low = as_pairs(hn::InterleaveLower(d, x[0], x[1]));
  const auto ab_high = as_pairs(hn::InterleaveUpper(d, x[0], x[1]));
  const auto cd_low = as_pairs(hn::InterleaveLower(d, x[2], x[3]));
  const auto cd_high = as_pairs(hn::InterleaveUpper(d, x[2], x[3]));
  x[0] = hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, cd_low));
  x[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, cd_low));
  x[2] = hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, cd_high));
  x[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, cd_high));
}

/// Four numbers of every record into rows; null: not this one. From number `rising` on each is at
/// least the one before it, number 0 at least what is in the row `below`, if there is one.
HWY_INLINE void take_four(const float* from, std::size_t stride, std::size_t count,
                          float* const (&rows)[4], const float* below, std::size_t rising) {
  const Four d;
  std::size_t t = 0;
  for (; t + 4 <= count; t += 4) {
    Vec4 x[4];
    for (std::size_t k = 0; k < 4; ++k) x[k] = hn::LoadU(d, from + (t + k) * stride);
    transpose(x);
    Vec4 least = below == nullptr ? x[0] : hn::LoadU(d, below + t);
    for (std::size_t k = 0; k < 4; ++k) {
      if (k >= rising) x[k] = hn::IfThenElse(hn::Lt(x[k], least), least, x[k]);
      if (rows[k] != nullptr) hn::StoreU(x[k], d, rows[k] + t);
      least = x[k];
    }
  }
  for (; t < count; ++t) {
    float least = below == nullptr ? from[t * stride] : below[t];
    for (std::size_t k = 0; k < 4; ++k) {
      float x = from[t * stride + k];
      if (k >= rising && x < least) x = least;
      if (rows[k] != nullptr) rows[k][t] = x;
      least = x;
    }
  }
}

void take_records(const float* from, std::size_t stride, std::size_t count,
                  const cpu::RecordRows& rows, std::size_t n, bool ascending) {
  if (count == 0) return;
  const std::size_t first_rising = ascending ? cpu::RecordRows::kLevels + 1 : n;
  std::size_t i = 0;
  for (; i < n && i + 4 <= stride; i += 4) {
    float* row[4];
    for (std::size_t k = 0; k < 4; ++k) row[k] = i + k < n ? rows.row(i + k) : nullptr;
    const float* const below = i >= first_rising ? rows.row(i - 1) : nullptr;
    take_four(from + i, stride, count, row, below, first_rising - std::min(first_rising, i));
  }
  for (; i < n; ++i) {  // fewer than four are left in a record
    float* const row = rows.row(i);
    if (row == nullptr) continue;
    const float* const below = i >= first_rising ? rows.row(i - 1) : nullptr;
    for (std::size_t t = 0; t < count; ++t) {
      const float x = from[t * stride + i];
      row[t] = below != nullptr && x < below[t] ? below[t] : x;
    }
  }
}

}  // namespace

extern const cpu::SeriesKernels kSeriesKernels;
const cpu::SeriesKernels kSeriesKernels = {spread, scale, multiply, all_finite, take_records};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

const SeriesKernels& series_kernels(Isa isa) { return TOTO_SELECT(isa, kSeriesKernels); }

const SeriesKernels& series_kernels() {
  static const SeriesKernels& best = series_kernels(find_isa({}));
  return best;
}

}  // namespace toto::cpu
#endif
