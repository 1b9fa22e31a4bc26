// SPDX-License-Identifier: Apache-2.0
// Exact statistics of the mixture of each step.
#include <type_traits>

#include "backend/cuda/runtime/flag_in_data.cuh"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/statistics/components.cuh"
#include "backend/cuda/statistics/distribution.cuh"
#include "backend/cuda/statistics/statistics.h"

namespace toto::cuda {
namespace {

// Warps for each step in exact statistics, which share out components and levels: many where there
// are few steps and time is what counts (the usual nine levels and two warps that weigh and place;
// a node of the rough quantiles for each), few where there are many and work is.
constexpr int kManyWarps = 11;
constexpr int kFewWarps = 3;
constexpr int kFewBlocks = 28 / kFewWarps;  // of a multiprocessor, which bounds the registers
constexpr std::int64_t kManyCells = 1024;
// Blocks that share out the levels of a step where there are so few steps that they are not in each
// other's way.
constexpr int kParts = 3;

__constant__ double kWeightOnDevice[32] = {
    student_t::kWeight[0],  student_t::kWeight[1], student_t::kWeight[2],  student_t::kWeight[3],
    student_t::kWeight[4],  student_t::kWeight[5], student_t::kWeight[6],  student_t::kWeight[7],
    student_t::kWeight[8],  student_t::kWeight[9], student_t::kWeight[10], student_t::kWeight[11],
    student_t::kWeight[12], student_t::kWeight[13]};
static_assert(student_t::kTerms <= 32 && student_t::kWeights == 14);

/// What the warps of a step have in shared memory; after it the components, a level and a double
/// for each one asked for, and what rough solutions need of each component.
template <int kWarps>
struct CellShared {
  double sums[kWarps][6];
  std::int64_t valid;
  // Of each component:
  float df[32], scale[32], probability[32], share[32];
  float below[32];
  alignas(16) float raw[4 * 32];  // early words
  rough::Node nodes[rough::kNodes];
};

/// A block of threads for each step of each lane. What a warp finds does not depend on how many
/// there are. `params` [lanes][steps][4][K] are formed here if they are not yet; if they come as
/// `early` words, what they are formed of may still be on its way there. With several `parts` a
/// step has so many blocks, each with some of its levels, and the first one with all else.
///
/// Most of the time goes by until an instruction has what the one before gives, so what can go on
/// at the same time is shared out among warps.
template <int kWarps>
__global__ void __launch_bounds__(32 * kWarps, kWarps == kFewWarps ? kFewBlocks : 1)
    exact_cells(const LiveBatch* live, PatchShape shape, HeadOutput head, float* params,
                const float* locs, const float* scales, Levels levels, float* out, EarlyWords early,
                int parts) {
  extern __shared__ __align__(16) double dynamic[];
  const std::int32_t count = shape.components;
  auto& shared = *reinterpret_cast<CellShared<kWarps>*>(dynamic);
  auto* const all = reinterpret_cast<Component*>(&shared + 1);
  auto* const level = reinterpret_cast<Level*>(all + count);
  auto* const found = reinterpret_cast<double*>(level + levels.max);
  auto* const room = reinterpret_cast<float*>(found + levels.max);
  const auto cell = static_cast<std::int32_t>(blockIdx.x) / parts;
  const auto part = static_cast<std::int32_t>(blockIdx.x) % parts;
  const std::int32_t lane = cell / shape.steps;
  const std::int32_t step = cell % shape.steps;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int k = static_cast<int>(threadIdx.x) % 32;
  const bool inside = k < count;
  float* const at = params + std::int64_t{cell} * 4 * count + k;
  float* const to = out + std::int64_t{cell} * (2 + levels.max);
  const float* const loc_at = locs + (std::int64_t{lane} * shape.patch + step);
  const float* const scale_at = scales + (std::int64_t{lane} * shape.patch + step);
  const double shares = kWeightOnDevice[k];
  // Where there are many warps, the last two have other things to do than to prepare components.
  const bool prepares = warp < (kWarps == kManyWarps ? kWarps - 2 : kWarps);
  const bool places = warp == kWarps - 2;
  const bool weighs = warp == kWarps - 1;
  const bool is_early = kWarps == kManyWarps && early.first != nullptr;
  let_next_begin();
  if (!is_early) await_previous();
  // All of it comes from far away, so all of it is asked for at once.
  const bool there = inside && !is_early;
  float df = there ? at[0] : 2;
  float loc = there ? at[count] : 0;
  float scale = there ? at[2 * count] : 1;
  float p = there ? at[3 * count] : 0;
  const auto shift = static_cast<double>(*loc_at);
  const auto stretch = static_cast<double>(*scale_at);
  if (lane >= live->lanes) {
    if (is_early) await_previous();
    return;
  }
  const Block& asked = live->blocks[block_of_lane(*live, lane)];
  const std::int32_t level_count = asked.level_count;
  const double* const own_levels = levels.values + asked.level_first;
  if (step >= asked.horizon) {  // nobody waits for it
    if (is_early) await_previous();
    return;
  }
  if (places) {  // of the mixture nothing is needed for it
#pragma unroll 1
    for (int i = k; i < level_count; i += 32) {
      level[i] = level_of(own_levels[i]);
    }
  }
  if (is_early) {
    if (places && inside) {
      uint4 words[1];
      const float* const from =
          early.first + *early.set * early.set_words + std::int64_t{cell} * 4 * count;
      flag::wait_fours(words, [&](int) { return from + 4 * k; });
      reinterpret_cast<uint4*>(shared.raw)[k] = words[0];
    }
    __syncthreads();
    if (inside) {
      df = shared.raw[k];
      loc = shared.raw[count + k];
      scale = shared.raw[2 * count + k];
      p = shared.raw[3 * count + k];
    }
  }

  if (head != HeadOutput::parameters) {
    if (inside && (prepares || weighs)) df = degrees_of_freedom(df);
    if (inside && weighs) scale = positive(scale);
    const float raw = inside ? p : -INFINITY;
    if (head == HeadOutput::single) {
      p = inside ? 1 : 0;
    } else if (weighs) {
      p = probability(raw, inside);
    } else if (places) {  // shares are enough, of any sum
      p = __expf(raw - highest_of_lanes(raw));
    }
  }
  Moment moment{};
  if (weighs) {
    moment = weigh_components(df, loc, scale, p, inside, all + k, shared.valid);
    shared.df[k] = df;
    shared.scale[k] = scale;
    shared.probability[k] = p;
    shared.share[k] = rough::share(p);
  }
  if (places) {
    shared.below[k] = rough::weight_below(loc, rough::share(p), count);
  }
  if (prepares) {
    constexpr int kPreparing = kWarps == kManyWarps ? kWarps - 2 : kWarps;
    prepare_components(limited_df(df), shares, warp, kPreparing, count, all, room);
  }
  __syncthreads();
  if (shared.valid == 0 && part == 0) {
#pragma unroll 1
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < 2 + level_count;
         i += 32 * kWarps) {
      to[i] = nanf("");
    }
  }
  const auto keep_parameters = [&] {  // by whoever weighed them
    // What they are formed of may still be on its way to where they go.
    if (is_early) await_previous();
    if (weighs && part == 0 && inside && head != HeadOutput::parameters) {
      at[0] = shared.df[k];
      at[2 * count] = shared.scale[k];
      at[3 * count] = shared.probability[k];
    }
  };
  if (shared.valid == 0) {
    keep_parameters();
    return;
  }
  df = fminf(shared.df[k], 1e15F);
  scale = shared.scale[k];
  p = shared.probability[k];
  const rough::Component own{df,
                             loc,
                             scale,
                             shared.share[k],
                             __fdividef(1.0F, scale),
                             __fdividef(1.0F, df),
                             inside ? static_cast<float>(all[k].pdf0) : 0,
                             shared.below[k],
                             room + k * rough::kRoom};
#pragma unroll 1
  for (int i = warp; i < rough::kNodes; i += kWarps) {
    const rough::Node node = rough::node_of(own, i);
    if (k == 0) shared.nodes[i] = node;
  }
  __syncthreads();
  if (weighs && part == 0) {
    const double2 moments = moments_of(moment, p);
    if (k == 0) {
      to[0] = static_cast<float>(moments.x * stretch + shift);
      to[1] = static_cast<float>(moments.y * stretch);
    }
  }
#pragma unroll 1
  for (std::int32_t i = warp * parts + part; i < level_count; i += kWarps * parts) {
    const Level& wanted = level[i];
    const auto evaluate_at = [&](double x) {
      return evaluate(all, count, shared.sums[warp], wanted, x);
    };
    const mixture::Bracket ends = bracket(inside && p != 0, static_cast<double>(loc),
                                          static_cast<double>(scale), wanted.reach);
    auto start = static_cast<double>(rough::solve(own, shared.nodes, static_cast<float>(wanted.q),
                                                  static_cast<float>(ends.low),
                                                  static_cast<float>(ends.high)));
    if (!ends.holds(start)) start = 0.5 * ends.low + 0.5 * ends.high;
    const Expansion node = evaluate_at(start);
    // There is no better guess than where it starts: outside the bracket, so that it is halved.
    const double x =
        mixture::solve(wanted.q, ends, &node, 1, evaluate_at, [&](double) { return HUGE_VAL; });
    if (k != 0) continue;
    found[i] = x;
    if (parts > 1) to[2 + i] = static_cast<float>(x * stretch + shift);
  }
  if (parts > 1) {
    keep_parameters();
    return;
  }
  __syncthreads();
#pragma unroll 1
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < level_count; i += 32 * kWarps) {
    double last = found[0];
#pragma unroll 4
    for (std::int32_t j = 1; j <= i; ++j) {
      last = found[j] < last ? last : found[j];  // equal but for rounding
    }
    to[2 + i] = static_cast<float>(last * stretch + shift);
  }
  keep_parameters();
}

}  // namespace

void exact_statistics(const Extent& batch, const PatchShape& shape, HeadOutput head, float* params,
                      const float* loc, const float* scale, const Levels& levels, float* out,
                      const EarlyWords& early, const Stream& s) {
  const auto cells = std::int64_t{batch.lanes} * shape.steps;
  const auto run = [&](auto warps) {
    constexpr int kWarps = decltype(warps)::value;
    const std::size_t bytes =
        sizeof(CellShared<kWarps>) +
        static_cast<std::size_t>(shape.components) * sizeof(Component) +
        static_cast<std::size_t>(levels.max) * (sizeof(Level) + sizeof(double)) +
        static_cast<std::size_t>(shape.components) * rough::kRoom * sizeof(float);
    allow_shared_memory<exact_cells<kWarps>>(bytes);
    const bool is_early = head != HeadOutput::parameters && early.first != nullptr;
    const int parts = is_early && kParts * cells <= s.processors / 4 ? kParts : 1;
    launch(exact_cells<kWarps>, dim3(static_cast<unsigned>(cells * parts)), dim3(32 * kWarps),
           bytes, s, batch.live, shape, head, params, loc, scale, levels, out,
           is_early ? early : EarlyWords(), parts);
  };
  if (cells < kManyCells) {
    run(std::integral_constant<int, kManyWarps>{});
  } else {
    run(std::integral_constant<int, kFewWarps>{});
  }
}

}  // namespace toto::cuda
