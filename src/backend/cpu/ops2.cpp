// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/ops2.h"

#include <algorithm>

#include "backend/cpu/product.h"
#include "backend/cpu/split.h"
#include "backend/expected_views2.h"
#include "backend/operation.h"
#include "backend/reference/series2.h"

namespace toto::cpu {
namespace {

using series2::lane_of;

static_assert(kQuantiles == kQuantileRows);
constexpr expected2::Types kTypes{ElementType::f32};

// Guessed cycles, to decide whether an operation is worth more than one thread.
constexpr std::int64_t kCyclesOfStep = 8;      // of the running statistics
constexpr std::int64_t kCyclesOfFunction = 4;  // asinh, sinh
constexpr std::int64_t cycles_of_copy(std::int64_t elements) { return elements / 8 + 10; }
constexpr std::int64_t cycles_of_attention(std::int64_t keys, std::int64_t width) {
  return keys * (20 + width / 4) + 200;
}

/// Calls visit(slice index, slice, item of the slice) for the items first .. end-1 of all slices;
/// `items(slice)` is how many one has.
template <typename Items, typename Visit>
void for_each_item(const Call& call, std::int64_t first, std::int64_t end, const Items& items,
                   const Visit& visit) {
  std::int64_t base = 0;
  for (std::int32_t i = 0; i < call.count && base < end; ++i) {
    const CallSlice& s = call.slices[i];
    const std::int64_t count = items(s);
    const std::int64_t last = std::min(end - base, count);
    for (std::int64_t at = std::max<std::int64_t>(first - base, 0); at < last; ++at) {
      visit(i, s, at);
    }
    base += count;
  }
}

template <typename Items>
std::int64_t count_items(const Call& call, const Items& items) {
  std::int64_t count = 0;
  for (std::int32_t i = 0; i < call.count; ++i) count += items(call.slices[i]);
  return count;
}

/// visit(slice, variate, token, row) for every token, divided among the threads.
template <typename Visit>
void split_tokens(ThreadTeam& team, const Call& call, std::int64_t cost, const Visit& visit) {
  const auto items = [](const CallSlice& s) { return std::int64_t{s.rows()}; };
  split(team, call.rows, cost, [&](std::int64_t first, std::int64_t end, int) {
    for_each_item(call, first, end, items, [&](std::int32_t, const CallSlice& s, std::int64_t at) {
      visit(s, static_cast<std::int32_t>(at / s.tokens), static_cast<std::int32_t>(at % s.tokens),
            s.row + at);
    });
  });
}

/// The row of a token of a slice in the same slice of another call, which has that token too.
std::int64_t row_in(const CallSlice& other, const CallSlice& s, std::int32_t variate,
                    std::int32_t token) {
  return other.row + std::int64_t{variate} * other.tokens + token + s.patch - other.patch;
}

/// visit(slice, variate) for every lane.
template <typename Visit>
void split_lanes(ThreadTeam& team, const Call& call, std::int64_t patch, const Visit& visit) {
  const auto items = [](const CallSlice& s) { return std::int64_t{s.variates}; };
  const std::int64_t lanes = count_items(call, items);
  const std::int64_t patches =
      count_items(call, [](const CallSlice& s) { return std::int64_t{s.variates} * s.patches; });
  if (lanes == 0) return;
  split(team, lanes, patches * patch * kCyclesOfStep / lanes,
        [&](std::int64_t first, std::int64_t end, int) {
          for_each_item(call, first, end, items,
                        [&](std::int32_t, const CallSlice& s, std::int64_t at) {
                          visit(s, static_cast<std::int32_t>(at));
                        });
        });
}

}  // namespace

void CpuOps2::inputs(const Call& call, const SeriesArrays& a, bool first, const View& z) const {
  const OperationSpan span(Operation::inputs);
  expected2::inputs(kTypes, call, a, z);
  float* const rows = typed<float>(z);
  split_lanes(team_, call, a.patch, [&](const CallSlice& s, std::int32_t v) {
    const series2::Lane<float> lane = lane_of<float>(s, a, v);
    series2::statistics(lane, s.fallback);
    if (first) series2::cap_bounds(lane, s.cap);
  });
  split_tokens(team_, call, a.patch * kCyclesOfFunction,
               [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
                 const series2::Lane<float> lane = lane_of<float>(s, a, v);
                 const std::int32_t p = s.patch + t;
                 const std::int64_t at = std::int64_t{p} * a.patch;
                 kernels_.embed_input(lane.values + at, lane.mask + at, lane.loc[p], lane.scale[p],
                                      static_cast<std::size_t>(a.patch), t < s.refed,
                                      rows + row * 2 * a.patch);
               });
}

void CpuOps2::quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                        const View& y) const {
  const OperationSpan span(Operation::quantiles);
  expected2::quantiles(kTypes, call, a, raw);
  expected2::quantiles(kTypes, call, a, y);
  const float* const knots = typed<float>(raw);
  float* const results = typed<float>(y);
  const std::int64_t cells = std::int64_t{kQuantiles} * a.patch;
  split_tokens(team_, call, cells * kCyclesOfFunction,
               [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
                 const series2::Lane<float> lane = lane_of<float>(s, a, v);
                 const std::int32_t p = units_of(s, s.patch + t + 1);
                 const auto patch = static_cast<std::size_t>(a.patch);
                 float* const to = results + row * cells;
                 if (kernels_.spread(knots + row * cells, patch, lane.loc[p], lane.scale[p], to)) {
                   for (std::int32_t q = 0; q < kQuantiles; ++q) {
                     series2::replace_infinities(to + std::int64_t{q} * a.patch, a.patch);
                   }
                 }
                 if (!kernels_.cap_and_sort(to, patch, lane.bounds[0], lane.bounds[1])) return;
                 for (std::int32_t i = 0; i < a.patch; ++i) {
                   series2::sort_quantiles(to + i, a.patch);
                 }
               });
}

void CpuOps2::knot_results(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                           const KnotOutputs& to) const {
  const OperationSpan span(Operation::knot_results);
  expected2::quantiles(kTypes, call, a, quantiles);
  const float* const knots = typed<float>(quantiles);
  constexpr std::int64_t kCyclesOfDraw = 150;
  constexpr std::int64_t kCyclesOfScore = 5;
  const bool coherent = to.coherent && to.kept != nullptr;
  const std::int64_t draws = to.kept != nullptr ? to.trajectories : 0;
  const std::int64_t cycles = draws * (coherent ? kCyclesOfScore : kCyclesOfDraw);
  KnotOutputs scalar = to;
  if (coherent) scalar.kept = nullptr;
  split_tokens(team_, call, a.patch * (cycles + 4 * kCyclesOfDraw),
               [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
                 const float* const own = knots + row * kQuantiles * a.patch;
                 series2::knot_results(s, a, v, t, own, scalar);
                 if (coherent) take_scores(s, a.patch, v, t, own, to);
               });
}

/// The draws of the steps that a token predicts, of their scores.
void CpuOps2::take_scores(const CallSlice& s, std::int32_t patch, std::int32_t variate,
                          std::int32_t token, const float* knots, const KnotOutputs& to) const {
  const std::int32_t first = (s.patch + token + 1 - s.context) * patch;
  if (first < 0) return;
  const std::int64_t lane = std::int64_t{s.lane} + variate;
  for (std::int32_t i = 0; i < patch && first + i < s.horizon; ++i) {
    float* const z = to.kept + (lane * to.steps + first + i) * to.trajectories;
    knots_.at_scores(knots + i, static_cast<std::size_t>(patch), s.tails,
                     static_cast<std::size_t>(s.trajectories), z);
  }
}

void CpuOps2::knot_neighbours(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                              double* scores, float* rho) const {
  const OperationSpan span(Operation::knot_neighbours);
  expected2::quantiles(kTypes, call, a, quantiles);
  const float* const knots = typed<float>(quantiles);
  constexpr std::int64_t kCyclesOfScore = 200;
  const auto items = [](const CallSlice& s) { return std::int64_t{s.variates}; };
  const std::int64_t lanes = count_items(call, items);
  if (lanes == 0) return;
  const auto one = [&](std::int32_t, const CallSlice& s, std::int64_t v) {
    const std::int64_t row = s.row + v * s.tokens;
    series2::knot_neighbours(s, a, static_cast<std::int32_t>(v), knots + row * kQuantiles * a.patch,
                             scores + row * a.patch, rho + (s.lane + v) * a.patch);
  };
  split(team_, lanes, call.rows * a.patch * kCyclesOfScore / lanes,
        [&](std::int64_t first, std::int64_t end, int) {
          for_each_item(call, first, end, items, one);
        });
}

void CpuOps2::knot_chains(const Call& call, const SeriesArrays& a, const float* rho,
                          const KnotOutputs& to) const {
  const OperationSpan span(Operation::knot_chains);
  constexpr std::int64_t kCyclesOfScore = 10;
  constexpr std::int32_t kTogether = 64;  // trajectories
  const auto blocks = [](const CallSlice& s) {
    return std::int64_t{s.trajectories} / kTogether + (s.trajectories % kTogether != 0 ? 1 : 0);
  };
  const auto items = [&](const CallSlice& s) { return blocks(s) * s.variates; };
  const std::int64_t count = count_items(call, items);
  const auto one = [&](std::int32_t, const CallSlice& s, std::int64_t item) {
    const std::int64_t v = item / blocks(s);
    const std::int64_t first = item % blocks(s) * kTogether;
    const std::int64_t lane = s.lane + v;
    const auto n = std::min<std::int64_t>(kTogether, s.trajectories - first);
    const float* before = nullptr;
    for (std::int32_t step = 0; step < s.horizon; ++step) {
      const paths::ChainStep next = paths::chain_step(rho + lane * a.patch, a.patch, step);
      float* const z = to.kept + (lane * to.steps + step) * to.trajectories + first;
      knots_.chain({s.seed, s.key, static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(first),
                    static_cast<std::uint32_t>(step), static_cast<float>(next.rho),
                    static_cast<float>(next.free)},
                   before, static_cast<std::size_t>(n), z);
      before = z;
    }
  };
  split(team_, count, to.steps * kTogether * kCyclesOfScore,
        [&](std::int64_t first, std::int64_t end, int) {
          for_each_item(call, first, end, items, one);
        });
}

void CpuOps2::feed_back(const Call& call, const ConstView& quantiles, const SeriesArrays& a) const {
  const OperationSpan span(Operation::feed_back);
  expected2::quantiles(kTypes, call, a, quantiles);
  const float* const knots = typed<float>(quantiles);
  split_tokens(team_, call, cycles_of_copy(a.patch),
               [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
                 if (v >= s.targets || s.patch + t + 1 < s.context) return;
                 series2::feed_back(lane_of<float>(s, a, v), s.patch + t + 1,
                                    knots + row * kQuantiles * a.patch);
               });
}

/// y = x w + bias.
Product CpuOps2::stored(const Matrix& w, const ConstView& x, const View& y) const {
  return {&products_,      static_cast<const PackedMatrix*>(w.weights),
          w.out,           typed<float>(x),
          typed<float>(y), x.rows.count,
          Epilogue::store};
}

void CpuOps2::linear_silu(const Matrix& w, const ConstView& x, const View& y) const {
  const OperationSpan span(Operation::linear_silu);
  expected2::linear_silu(ElementType::f32, w, x, y);
  Product product = stored(w, x, y);
  product.silu = true;
  multiply(product, team_, scratch_);
}

void CpuOps2::rms_norm(const ConstView& x, const View& y, double epsilon) const {
  const OperationSpan span(Operation::rms_norm);
  expected2::rms_norm(kTypes, x, y);
  const std::int64_t dim = x.width;
  const float* const from = typed<float>(x);
  float* const to = typed<float>(y);
  split(team_, x.rows.count, cycles_of_copy(2 * dim),
        [&](std::int64_t first, std::int64_t end, int) {
          for (std::int64_t row = first; row < end; ++row) {
            kernels_.rms_norm(from + row * dim, to + row * dim, static_cast<std::size_t>(dim),
                              static_cast<float>(epsilon));
          }
        });
}

/// The outputs from `first` on.
void CpuOps2::linear_from(std::int32_t first, const Matrix& w, const ConstView& x,
                          const View& y) const {
  Product product = stored(w, x, y);
  product.first = first;
  multiply(product, team_, scratch_);
}

void CpuOps2::linear_values(const Matrix& w, const HeadShape& shape, const ConstView& x,
                            const View& y) const {
  const OperationSpan span(Operation::linear);
  expected2::linear_heads(ElementType::f32, w, shape, x, y);
  linear_from((shape.heads + shape.groups) * shape.qk, w, x, y);
}

void CpuOps2::linear_wanted(const Call& all, const Call& wanted, const Matrix& w,
                            const HeadShape& shape, const ConstView& x, const View& scratch,
                            const View& y) const {
  const std::int32_t width = shape.heads * shape.qk;
  const View rows = scratch.shaped(wanted.all_rows(), w.in);
  {
    const OperationSpan span(Operation::linear);
    expected2::linear_heads(ElementType::f32, w, shape, x, y);
    expect("linear before attention: scratch", scratch, ElementType::f32, wanted.rows,
           w.in + width);
    linear_from(width, w, x, y);
  }
  gather(all, wanted, x, rows);
  const OperationSpan span(Operation::linear);
  float* const queries = typed<float>(scratch) + std::int64_t{wanted.rows} * w.in;
  multiply({&products_, static_cast<const PackedMatrix*>(w.weights), width, typed<float>(rows),
            queries, wanted.rows, Epilogue::store},
           team_, scratch_);
  float* const to = typed<float>(y);
  const CallSlice* first = wanted.slices;
  split_tokens(team_, wanted, cycles_of_copy(width),
               [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
                 std::copy_n(queries + row * width, width,
                             to + row_in(all.slices[&s - first], s, v, t) * w.out);
               });
}

/// Norms queries and keys in place.
void CpuOps2::norm_heads(Rows rows, const HeadShape& shape, const HeadNorm& norm,
                         float* qkv) const {
  if (!norm.query) return;
  const float* const query = typed<float>(norm.query);
  const float* const key = typed<float>(norm.key);
  const std::int64_t heads = shape.heads + shape.groups;
  split(team_, rows.count, cycles_of_copy(4 * heads * shape.qk),
        [&](std::int64_t first, std::int64_t end, int) {
          for (std::int64_t row = first; row < end; ++row) {
            float* head = qkv + row * shape.row();
            for (std::int64_t h = 0; h < heads; ++h, head += shape.qk) {
              kernels_.rms_norm(head, head, static_cast<std::size_t>(shape.qk),
                                static_cast<float>(norm.epsilon));
              const float* gain = h < shape.heads ? query : key;
              for (std::int32_t e = 0; e < shape.qk; ++e) head[e] *= gain[e];
            }
          }
        });
}

/// Norms and rotates queries in place, and appends keys and values to the cache.
void CpuOps2::rotary_append(const Call& call, const HeadShape& shape, const HeadNorm& norm,
                            const Rotary& rotary, float* qkv, const KvCache& kv) const {
  norm_heads(call.rows, shape, norm, qkv);
  const Rotation tables{typed<float>(rotary.cosine), typed<float>(rotary.sine),
                        typed<float>(rotary.factor)};
  float* const kept_keys = typed<float>(kv.keys);
  float* const kept_values = typed<float>(kv.values);
  const std::int64_t pairs = shape.qk / 4;
  const auto one = [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
    float* queries = qkv + row * shape.row();
    float* keys = queries + std::int64_t{shape.heads} * shape.qk;
    const float* values = keys + std::int64_t{shape.groups} * shape.qk;
    const std::int64_t patch = s.patch + t;
    const Rotation at{tables.cosine + patch * pairs, tables.sine + patch * pairs,
                      tables.factor == nullptr
                          ? nullptr
                          : tables.factor + (patch - s.centre + rotary.positions) * pairs};
    const auto qk = static_cast<std::size_t>(shape.qk);
    kernels_.rotate_half(at, queries, static_cast<std::size_t>(shape.heads), qk, false);
    kernels_.rotate_half(at, keys, static_cast<std::size_t>(shape.groups), qk, true);
    for (std::int64_t g = 0; g < shape.groups; ++g) {
      const std::int64_t to =
          (s.slot + std::int64_t{v} * s.slots) * shape.groups + g * s.slots + patch - s.first_slot;
      std::copy_n(keys + g * shape.qk, shape.qk, kept_keys + to * shape.qk);
      std::copy_n(values + g * shape.v, shape.v, kept_values + to * shape.v);
    }
  };
  split_tokens(team_, call, 2 * cycles_of_copy(shape.row()), one);
}

void CpuOps2::time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                             const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                             const View& qkv, const KvCache& kv, bool /*keep*/,
                             const View& out) const {
  const OperationSpan span(Operation::time_attention);
  expected2::time_attention(kTypes, all, wanted, shape, norm, rotary, qkv, kv, out);
  float* const rows = typed<float>(qkv);
  float* const attended = typed<float>(out);
  const float* const keys = typed<float>(kv.keys);
  const float* const values = typed<float>(kv.values);
  rotary_append(all, shape, norm, rotary, rows, kv);
  const std::int64_t heads = shape.heads / shape.groups;  // of a group
  const auto queries = [&](const CallSlice& s) { return s.tokens * heads; };
  const auto parts = [&](const CallSlice& s) {
    return (queries(s) + kQueryGroup - 1) / kQueryGroup;
  };
  const auto tasks = [&](const CallSlice& s) { return parts(s) * s.variates * shape.groups; };
  const std::int64_t count = count_items(wanted, tasks);
  if (count == 0) return;
  const std::int64_t cycles = count_items(wanted, [&](const CallSlice& s) {
    return queries(s) * s.variates * shape.groups *
           cycles_of_attention(s.patch + s.tokens - s.first_slot, shape.qk);
  });
  const auto one = [&](std::int32_t i, const CallSlice& s, std::int64_t item, int thread) {
    const CallSlice& source = all.slices[i];
    const std::int64_t part = item % parts(s);
    const std::int64_t group = item / parts(s) % shape.groups;
    const std::int64_t v = item / parts(s) / shape.groups;
    const std::int64_t from = source.row + v * source.tokens + s.patch - source.patch;
    const std::int64_t slot = (s.slot + v * s.slots) * shape.groups + group * s.slots;
    HeadGroupTask task{};
    task.queries = rows + from * shape.row() + group * heads * shape.qk;
    task.query_stride = static_cast<std::size_t>(shape.row());
    task.out = attended + (s.row + v * s.tokens) * shape.attended() + group * heads * shape.v;
    task.out_stride = static_cast<std::size_t>(shape.attended());
    task.keys = keys + slot * shape.qk;
    task.values = values + slot * shape.v;
    task.hidden = s.time_mask ? a.hidden + s.array + v * s.patches + s.first_slot : nullptr;
    task.first_own = static_cast<std::size_t>(s.patch - s.first_slot);
    task.first = static_cast<std::size_t>(part * kQueryGroup);
    task.count = static_cast<std::size_t>(
        std::min<std::int64_t>(kQueryGroup, queries(s) - part * kQueryGroup));
    task.heads = static_cast<std::size_t>(heads);
    task.qk = static_cast<std::size_t>(shape.qk);
    task.v = static_cast<std::size_t>(shape.v);
    kernels_.time(task, *reinterpret_cast<AttentionScratch*>(scratch_.of(team_.seat(thread))));
  };
  split(team_, count, cycles / count, [&](std::int64_t first, std::int64_t end, int thread) {
    for_each_item(
        wanted, first, end, tasks,
        [&](std::int32_t i, const CallSlice& s, std::int64_t item) { one(i, s, item, thread); });
  });
}

void CpuOps2::variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                                const HeadNorm& norm, const View& qkv, const View& out) const {
  const OperationSpan span(Operation::variate_attention);
  expected2::variate_attention(kTypes, call, shape, norm, qkv, out);
  float* const rows = typed<float>(qkv);
  float* const attended = typed<float>(out);
  if (!call.of_one_variate()) norm_heads(call.rows, shape, norm, rows);
  const std::int64_t heads = shape.heads / shape.groups;  // of a group
  const auto tasks = [&](const CallSlice& s) { return std::int64_t{s.tokens} * shape.heads; };
  const std::int64_t count = count_items(call, tasks);
  if (count == 0) return;
  const std::int64_t cycles = count_items(call, [&](const CallSlice& s) {
    return std::int64_t{s.rows()} * shape.heads * cycles_of_attention(s.variates, shape.qk);
  });
  const auto one = [&](std::int32_t, const CallSlice& s, std::int64_t item) {
    const std::int64_t head = item % shape.heads;
    const std::int64_t token = item / shape.heads;
    const float* row = rows + (s.row + token) * shape.row();
    const std::int32_t patch = s.ids + static_cast<std::int32_t>(token);
    TokenVariatesTask task{};
    task.query = row + head * shape.qk;
    task.key = row + (shape.heads + head / heads) * shape.qk;
    task.value = row + std::int64_t{shape.heads + shape.groups} * shape.qk + head / heads * shape.v;
    task.out = attended + (s.row + token) * shape.attended() + head * shape.v;
    task.stride = static_cast<std::size_t>(s.tokens) * static_cast<std::size_t>(shape.row());
    task.out_stride =
        static_cast<std::size_t>(s.tokens) * static_cast<std::size_t>(shape.attended());
    task.groups = a.groups + s.lane;
    task.hidden = patch < s.context ? a.hidden + s.array + patch : nullptr;
    task.hidden_stride = static_cast<std::size_t>(s.patches);
    task.variates = s.variates;
    task.qk = static_cast<std::size_t>(shape.qk);
    task.v = static_cast<std::size_t>(shape.v);
    kernels_.variates(task);
  };
  split(team_, count, cycles / count, [&](std::int64_t first, std::int64_t end, int) {
    for_each_item(call, first, end, tasks, one);
  });
}

void CpuOps2::gather(const Call& all, const Call& wanted, const ConstView& x, const View& y) const {
  const OperationSpan span(Operation::gather);
  expected2::gather(kTypes, all, wanted, x, y);
  const std::int64_t dim = x.width;
  const float* const rows = typed<float>(x);
  float* const to = typed<float>(y);
  const CallSlice* first = wanted.slices;
  split_tokens(team_, wanted, cycles_of_copy(dim),
               [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
                 const std::int64_t from = row_in(all.slices[&s - first], s, v, t);
                 std::copy_n(rows + from * dim, dim, to + row * dim);
               });
}

}  // namespace toto::cpu
