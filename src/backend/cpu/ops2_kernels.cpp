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

constexpr int kRows = 4;  // queries worked on together, so that keys and values are read once
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

constexpr std::size_t kChannels = 64;  // worked on together; whole vectors

/// Channel j of a rotated pair is z[j] * direct[j] + z[j ^ 1] * swapped[j].
void rotate_half(const Rotation& at, float* x, std::size_t heads, std::size_t qk, bool invert) {
  const Floats d;
  HWY_ALIGN float direct[kChannels] = {};
  HWY_ALIGN float swapped[kChannels] = {};
  const std::size_t width = qk / 2;
  for (std::size_t first = 0; first < width; first += kChannels) {
    const std::size_t n = std::min(kChannels, width - first);
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t pair = (first + j) / 2;
      float by = 1.0F;
      if (at.factor != nullptr) by = invert ? 1.0F / at.factor[pair] : at.factor[pair];
      direct[j] = at.cosine[pair] * by;
      swapped[j] = (j % 2 == 0 ? -at.sine[pair] : at.sine[pair]) * by;
    }
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

/// R queries over the n keys in `panel`, which are those from slot `at` on.
template <int R>
void attend_masked(const float* const* query, const float* panel, const float* values,
                   std::size_t at, std::size_t n, const HeadGroupTask& task, const Sight* sight,
                   Softmax* softmax, float* const* out) {
  HWY_ALIGN float logits[R][kChunk];
  float* rows[R];
  const float* weights[R];
  float correction[R];
  for (int r = 0; r < R; ++r) weights[r] = rows[r] = logits[r];
  const std::size_t columns = (n + kLanes - 1) / kLanes * kLanes;
  combine<R>(query, nullptr, Every{panel, kChunk}, task.qk, rows, columns);
  for (int r = 0; r < R; ++r) correction[r] = weigh(sight[r], at, n, logits[r], softmax[r]);
  combine<R>(weights, correction, Every{values, task.v}, n, out, task.v);
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
    for (; panels && q + kRows <= task.count; q += kRows) {
      attend_masked<kRows>(s.query + q, s.panel, values, at, n, task, sight + q, softmax + q,
                           s.out + q);
    }
    for (; q < task.count; ++q) {
      if (panels) {
        attend_masked<1>(s.query + q, s.panel, values, at, n, task, sight + q, softmax + q,
                         s.out + q);
      } else {
        attend_rows(s.query[q], Every{task.keys + at * task.qk, task.qk}, Every{values, task.v}, at,
                    n, task.qk, task.v, sight + q, softmax[q], s.out[q]);
      }
    }
  }
  for (std::size_t q = 0; q < task.count; ++q) finish(softmax[q], s.out[q], task.v);
}

void variates(const TokenVariatesTask& task) {
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
const cpu::Ops2Kernels kOps2Kernels = {rms_norm, rotate_half, time, variates};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

const Ops2Kernels& ops2_kernels(Isa isa) { return TOTO_SELECT(isa, kOps2Kernels); }

}  // namespace toto::cpu
#endif
