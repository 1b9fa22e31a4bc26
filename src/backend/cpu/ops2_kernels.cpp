// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/ops2_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <algorithm>
#include <cmath>

#include "backend/cpu/ops2_kernels.h"
#include "backend/cpu/softmax_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

using cpu::AttentionScratch;
using cpu::HeadGroupTask;
using cpu::Rotation;
using cpu::TokenVariatesTask;

// Queries worked on together, so that keys and values are read once.
constexpr int kRows = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 8 : 4;
constexpr float kNever = -std::numeric_limits<float>::infinity();

/// In an order that depends on n only.
float sum_of_squares(const float* x, std::size_t n) {
  const Floats d;
  Vec s[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (std::size_t k = 0; k < 4; ++k) {
      const Vec v = hn::LoadU(d, x + i + k * kLanes);
      s[k] = hn::MulAdd(v, v, s[k]);
    }
  }
  for_each_vector(n - i, [&](std::size_t, const auto& load, const auto&) {
    const Vec v = load(x + i);
    s[0] = hn::MulAdd(v, v, s[0]);
  });
  return sum_of(hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3])));
}

void rms_norm(const float* x, float* y, std::size_t dim, float epsilon) {
  const float root = std::sqrt(sum_of_squares(x, dim) / static_cast<float>(dim) + epsilon);
  const Vec inverse = hn::Set(Floats(), 1.0F / root);
  for_each_vector(dim, [&](std::size_t, const auto& load, const auto& put) {
    put(hn::Mul(load(x), inverse), y);
  });
}

/// Spec B5 of a patch: asinh of the scaled values, 0 where they are missing, then the flags.
void embed_input(const float* values, const std::uint8_t* mask, float loc, float scale,
                 std::size_t patch, bool refed, float* z) {
  const Floats d;
  for_each_vector(patch, [&](std::size_t, const auto& load, const auto& put) {
    put(asinh(hn::Div(hn::Sub(load(values), hn::Set(d, loc)), hn::Set(d, scale))), z);
  });
  for (std::size_t i = 0; i < patch; ++i) {
    const bool observed = mask[i] != 0;
    z[i] = observed ? z[i] : 0.0F;
    z[patch + i] = observed || refed ? 0.0F : 1.0F;
  }
}

/// y[9][patch] = sinh(raw) * scale + loc. Returns whether any is infinite.
bool spread(const float* raw, std::size_t patch, float loc, float scale, float* y) {
  const Floats d;
  bool any = false;
  for_each_vector(cpu::kQuantileRows * patch, [&](std::size_t, const auto& load, const auto& put) {
    const Vec v = hn::Add(hn::Mul(sinh(load(raw)), hn::Set(d, scale)), hn::Set(d, loc));
    any = any || !hn::AllFalse(d, hn::IsInf(v));
    put(v, y);
  });
  return any;
}

/// Between the bounds, then ascending in each column. Columns with NaN stay unsorted; returns
/// whether there are any.
bool cap_and_sort(float* y, std::size_t patch, float low, float high) {
  // The 25 exchanges of a sorting network of nine.
  constexpr std::uint8_t kNetwork[25][2] = {{0, 3}, {1, 7}, {2, 5}, {4, 8}, {0, 7}, {2, 4}, {3, 8},
                                            {5, 6}, {0, 2}, {1, 3}, {4, 5}, {7, 8}, {1, 4}, {3, 6},
                                            {5, 7}, {0, 1}, {2, 4}, {3, 5}, {6, 8}, {2, 3}, {4, 5},
                                            {6, 7}, {1, 2}, {3, 4}, {5, 6}};
  const Floats d;
  bool unsorted = false;
  for_each_vector(patch, [&](std::size_t, const auto& load, const auto& put) {
    Vec rows[cpu::kQuantileRows];
    auto odd = hn::Lt(hn::Zero(d), hn::Zero(d));
    for (std::size_t q = 0; q < cpu::kQuantileRows; ++q) {
      Vec v = load(y + q * patch);
      odd = hn::Or(odd, hn::IsNaN(v));
      v = hn::IfThenElse(hn::Lt(v, hn::Set(d, low)), hn::Set(d, low), v);  // NaN stays NaN
      rows[q] = hn::IfThenElse(hn::Lt(hn::Set(d, high), v), hn::Set(d, high), v);
    }
    if (hn::AllFalse(d, odd)) {
#pragma GCC unroll 25
      for (const auto& pair : kNetwork) {
        const Vec a = rows[pair[0]];
        const Vec b = rows[pair[1]];
        rows[pair[0]] = hn::Min(a, b);
        rows[pair[1]] = hn::Max(a, b);
      }
    } else {
      unsorted = true;
    }
    for (std::size_t q = 0; q < cpu::kQuantileRows; ++q) put(rows[q], y + q * patch);
  });
  return unsorted;
}

constexpr std::size_t kChannels = 64;  // worked on together; whole vectors

/// Channel j of a rotated pair is z[j] * direct[j] + z[j ^ 1] * swapped[j].
void rotate_half(const Rotation& at, float* x, std::size_t heads, std::size_t qk, bool invert) {
  const Floats d;
  HWY_ALIGN float direct[kChannels + 2 * kLanes];
  HWY_ALIGN float swapped[kChannels + 2 * kLanes];
  const std::size_t width = qk / 2;
  for (std::size_t first = 0; first < width; first += kChannels) {
    const std::size_t n = std::min(kChannels, width - first);
    const std::size_t pair = first / 2;
    for_each_vector(n / 2, [&](std::size_t i, const auto& load, const auto&) {
      Vec by = hn::Set(d, 1.0F);
      if (at.factor != nullptr) {
        by = load(at.factor + pair);
        if (invert) by = hn::Div(hn::Set(d, 1.0F), by);
      }
      const Vec c = hn::Mul(load(at.cosine + pair), by);
      const Vec s = hn::Mul(load(at.sine + pair), by);
      hn::StoreInterleaved2(c, c, d, direct + 2 * i);
      hn::StoreInterleaved2(hn::Neg(s), s, d, swapped + 2 * i);
    });
    for (std::size_t h = 0; h < heads; ++h) {
      float* head = x + h * qk + first;
      for_each_vector(n, [&](std::size_t i, const auto& load, const auto& put) {
        const Vec z = load(head);
        const Vec other = hn::Mul(hn::Reverse2(d, z), hn::Load(d, swapped + i));
        put(hn::MulAdd(z, hn::Load(d, direct + i), other), head);
      });
    }
  }
}

/// What one query sees of a chunk of n keys that starts at slot `at`.
struct Sight {
  const std::uint8_t* hidden;  // of all slots, or nullptr
  std::size_t own;             // slot of the query's token

  /// Logits of what is not seen become -infinity. Returns whether anything is seen.
  HWY_INLINE bool mask(std::size_t at, std::size_t n, float* logits) const {
    const std::size_t visible = own < at ? 0 : std::min(n, own - at + 1);
    std::fill(logits + visible, logits + n, kNever);
    if (hidden == nullptr) return visible > 0;
    bool any = false;
    for (std::size_t i = 0; i < visible; ++i) {
      const bool seen = hidden[at + i] == hidden[own];
      if (!seen) logits[i] = kNever;
      any = any || seen;
    }
    return any;
  }
};

/// Logits become weights; of a chunk that is not seen at all, zeros. Returns the correction.
HWY_INLINE float weigh(const Sight& sight, std::size_t at, std::size_t n, float* logits,
                       Softmax& softmax) {
  if (sight.mask(at, n, logits)) return soften(logits, n, 1.0F, softmax);
  std::fill_n(logits, n, 0.0F);
  return 1.0F;
}

/// R queries over the n keys in `panel`, which are those from slot `at` on, or the first of them if
/// none of the queries sees more: what is not seen has weight 0.
template <int R>
void attend_masked(const float* const* query, const float* panel, const float* values,
                   std::size_t at, std::size_t n, const HeadGroupTask& task, const Sight* sight,
                   Softmax* softmax, float* const* out) {
  HWY_ALIGN float logits[R][kChunk];
  float* rows[R];
  const float* weights[R];
  float correction[R];
  for (int r = 0; r < R; ++r) weights[r] = rows[r] = logits[r];
  n = std::min(n, sight[R - 1].own + 1 - at);  // queries come in the order of their tokens
  const std::size_t columns = (n + kLanes - 1) / kLanes * kLanes;
  combine<R, std::min(kWide, 2)>(query, nullptr, Every{panel, kChunk}, task.qk, rows, columns);
  for (int r = 0; r < R; ++r) correction[r] = weigh(sight[r], at, n, logits[r], softmax[r]);
  // Half as many rows of values at a time: their sums are wider, and are to stay in registers.
  constexpr int kHalf = R > 4 ? R / 2 : R;
  for (int r = 0; r < R; r += kHalf) {
    combine<kHalf>(weights + r, correction + r, Every{values, task.v}, n, out + r, task.v);
  }
}

/// R queries from q on at a time, while there are so many.
template <int R>
void attend_rows_of(const HeadGroupTask& task, AttentionScratch& s, const float* values,
                    std::size_t at, std::size_t n, const Sight* sight, Softmax* softmax,
                    std::size_t& q) {
  for (; q + R <= task.count; q += R) {
    attend_masked<R>(s.query + q, s.panel, values, at, n, task, sight + q, softmax + q, s.out + q);
  }
}

/// One query over keys anywhere.
template <typename Rows>
void attend_rows(const float* query, const Rows& key, const Rows& value, std::size_t at,
                 std::size_t n, std::size_t qk, std::size_t v, const Sight* sight, Softmax& softmax,
                 float* out) {
  HWY_ALIGN float logits[kChunk + kLanes];
  dots(query, key, n, qk, logits);
  const float correction =
      sight == nullptr ? soften(logits, n, 1.0F, softmax) : weigh(*sight, at, n, logits, softmax);
  const float* weights = logits;
  combine<1>(&weights, &correction, value, n, &out, v);
}

void time(const HeadGroupTask& task, AttentionScratch& s) {
  Softmax softmax[cpu::kQueryGroup];
  Sight sight[cpu::kQueryGroup];
  for (std::size_t q = 0; q < task.count; ++q) {
    const std::size_t token = (task.first + q) / task.heads;
    const std::size_t head = (task.first + q) % task.heads;
    s.query[q] = task.queries + token * task.query_stride + head * task.qk;
    s.out[q] = task.out + token * task.out_stride + head * task.v;
    std::fill_n(s.out[q], task.v, 0.0F);
    sight[q] = {task.hidden, task.first_own + token};
  }
  const std::size_t keys = sight[task.count - 1].own + 1;
  const bool panels = task.qk <= static_cast<std::size_t>(cpu::kMaxPanelDim);
  for (std::size_t at = 0; at < keys; at += kChunk) {
    const std::size_t n = std::min(kChunk, keys - at);
    const float* values = task.values + at * task.v;
    std::size_t q = 0;
    while (sight[q].own < at) ++q;  // queries come in the order of their tokens
    if (panels) transpose(task.keys + at * task.qk, n, task.qk, s.panel);
    if (panels) {
      attend_rows_of<kRows>(task, s, values, at, n, sight, softmax, q);
      attend_rows_of<4>(task, s, values, at, n, sight, softmax, q);
      attend_rows_of<2>(task, s, values, at, n, sight, softmax, q);
      attend_rows_of<1>(task, s, values, at, n, sight, softmax, q);
    }
    for (; q < task.count; ++q) {
      attend_rows(s.query[q], Every{task.keys + at * task.qk, task.qk}, Every{values, task.v}, at,
                  n, task.qk, task.v, sight + q, softmax[q], s.out[q]);
    }
  }
  for (std::size_t q = 0; q < task.count; ++q) finish(softmax[q], s.out[q], task.v);
}

/// What one variate alone attends to is its value, whatever its query and key are: in the bits of
/// the sums of several, which start at 0.
void variates(const TokenVariatesTask& task) {
  if (task.variates == 1) {
    for_each_vector(task.v, [&](std::size_t, const auto& load, const auto& put) {
      put(hn::Add(load(task.value), hn::Zero(Floats())), task.out);
    });
    return;
  }
  const auto id = [&](std::int32_t v) -> std::int64_t {
    const auto at = static_cast<std::size_t>(v);
    const bool hidden = task.hidden != nullptr && task.hidden[at * task.hidden_stride] != 0;
    return hidden ? std::numeric_limits<std::int64_t>::min() : task.groups[at];
  };
  for (std::int32_t v = 0; v < task.variates; ++v) {
    float* out = task.out + static_cast<std::size_t>(v) * task.out_stride;
    const float* query = task.query + static_cast<std::size_t>(v) * task.stride;
    std::fill_n(out, task.v, 0.0F);
    Softmax softmax;
    std::int32_t members[kChunk];
    std::size_t n = 0;
    for (std::int32_t j = 0; j < task.variates; ++j) {
      if (id(j) == id(v)) members[n++] = j;
      if (n == kChunk || (n > 0 && j + 1 == task.variates)) {
        attend_rows(query, Picked{task.key, task.stride, members},
                    Picked{task.value, task.stride, members}, 0, n, task.qk, task.v, nullptr,
                    softmax, out);
        n = 0;
      }
    }
    finish(softmax, out, task.v);
  }
}

}  // namespace

extern const cpu::Ops2Kernels kOps2Kernels;
const cpu::Ops2Kernels kOps2Kernels = {rms_norm,    embed_input, spread,  cap_and_sort,
                                       rotate_half, time,        variates};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

const Ops2Kernels& ops2_kernels(Isa isa) { return TOTO_SELECT(isa, kOps2Kernels); }

}  // namespace toto::cpu
#endif
