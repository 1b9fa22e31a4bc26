// SPDX-License-Identifier: Apache-2.0
// Statistics on the device: exact ones of the mixture of each step, and order statistics of
// trajectories.
#include <type_traits>

#include "backend/cuda/exact_mixture.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/live.h"
#include "backend/cuda/warp.cuh"

namespace toto::cuda {
namespace {

// Warps for each step in exact statistics, which share out the levels: many where there are few
// steps and time is what counts (the usual nine levels and two warps that prepare), few where there
// are many and work is.
constexpr int kManyWarps = 11;
constexpr int kFewWarps = 3;
constexpr int kFewBlocks = 28 / kFewWarps;  // of a multiprocessor, which bounds the registers
constexpr std::int64_t kManyCells = 1024;
constexpr int kSortThreads = 256;

/// What the warps of a step have in shared memory; after it the components, a double for each
/// level, and what each warp needs for a rough solution.
template <int kWarps>
struct CellShared {
  double sums[kWarps][6];
  std::int64_t valid;
};

__device__ double limited_df(float df) {  // NaN stays NaN
  const auto wide = static_cast<double>(df);
  return wide > student_t::kMaxDf ? student_t::kMaxDf : wide;
}

/// Lane k of the warp makes the series of component k ready.
__device__ void prepare_component(float df, bool there, Component* own) {
  if (!there) return;
  own->df = limited_df(df);
  own->inverse_df = inverse(own->df);
  own->pdf0 = student_t::prepare(own->df, own->c);
}

/// Lane k of the warp takes the rest of component k; the warp finds what the mixture has in all,
/// and gives its mean and standard deviation.
__device__ double2 weigh_components(float df_of, float loc_of, float scale_of, float p_of,
                                    bool inside, Component* own, std::int64_t& all_valid) {
  bool valid = true;
  const auto p = static_cast<double>(p_of);
  double df = 2;
  double loc = 0;
  double scale = 1;
  if (p != 0) {
    df = limited_df(df_of);
    loc = static_cast<double>(loc_of);
    scale = static_cast<double>(scale_of);
    own->loc = loc;
    own->scale = scale;
    own->inverse_scale = inverse(scale);
    valid = p > 0 && df >= 2 && isfinite(loc) && scale > 0 && isfinite(scale) &&
            isfinite(own->inverse_scale);
  }
  const double total = sum_of_lanes(p);
  const double mean = sum_of_lanes(p == 0 ? 0 : p * loc);
  valid = __all_sync(~0U, valid) != 0 && total > 0 && isfinite(total);
  const double inverse_total = inverse(total);
  const double weight = p * inverse_total;
  const double center = mean * inverse_total;
  if (inside) own->weight = weight;
  double variance = 0;
  if (p != 0) {
    const double inner = df > 2 ? scale * scale * (df * inverse(df - 2)) : HUGE_VAL;
    const double off = loc - center;
    variance = weight * (inner + off * off);
  }
  variance = sum_of_lanes(variance);
  all_valid = valid ? 1 : 0;
  return {mean, sqrt(variance)};
}

/// A block of threads for each step of each lane. What a warp finds does not depend on how many
/// there are.
template <int kWarps>
__global__ void __launch_bounds__(32 * kWarps, kWarps == kFewWarps ? kFewBlocks : 1)
    exact_cells(const LiveBatch* live, PatchShape shape, const float* params, const float* locs,
                const float* scales, Levels levels, float* out) {
  extern __shared__ double dynamic[];
  auto& shared = *reinterpret_cast<CellShared<kWarps>*>(dynamic);
  auto* const all = reinterpret_cast<Component*>(&shared + 1);
  auto* const found = reinterpret_cast<double*>(all + shape.components);
  auto* const rooms = reinterpret_cast<float*>(found + levels.most);
  begin_kernel();
  const auto lane = static_cast<std::int32_t>(blockIdx.x) / shape.steps;
  const auto step = static_cast<std::int32_t>(blockIdx.x) % shape.steps;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int k = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t cell = blockIdx.x;
  const std::int32_t count = shape.components;
  // All of it comes from far away, so all of it is asked for at once.
  const float* const at = params + cell * 4 * count + k;
  const bool inside = k < count;
  const float df = inside ? at[0] : 2;
  const float loc = inside ? at[count] : 0;
  const float scale = inside ? at[2 * count] : 1;
  const float p = inside ? at[3 * count] : 0;
  const bool there = inside && p != 0;
  const auto shift = static_cast<double>(locs[std::int64_t{lane} * shape.patch + step]);
  const auto stretch = static_cast<double>(scales[std::int64_t{lane} * shape.patch + step]);
  double q = warp < levels.most ? levels.values[warp] : 0.5;
  float* const to = out + cell * (2 + levels.most);
  const std::int32_t level_count = *levels.count;
  if (lane >= live->lanes) return;

  if (warp == kWarps - 1) {
    const double2 moments = weigh_components(df, loc, scale, p, inside, all + k, shared.valid);
    if (k == 0) {
      to[0] = static_cast<float>(moments.x * stretch + shift);
      to[1] = static_cast<float>(moments.y * stretch);
    }
  }
  if (warp == kWarps - 2) prepare_component(df, there, all + k);
  rough::Component own;
  mixture::Bracket ends;
  double start = 0;
  const auto begin = [&] {
    ends = bracket(there, static_cast<double>(loc), static_cast<double>(scale), q);
    start = static_cast<double>(rough::solve(
        own, static_cast<float>(q), static_cast<float>(ends.low), static_cast<float>(ends.high)));
    if (!ends.holds(start)) start = 0.5 * ends.low + 0.5 * ends.high;
  };
  if (warp < level_count) {
    own = rough::component(df, loc, scale, p, count, rooms + warp * count * rough::kRoom);
    begin();
  }
  __syncthreads();
  if (shared.valid == 0) {
#pragma unroll 1
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < 2 + level_count;
         i += 32 * kWarps) {
      to[i] = nanf("");
    }
    return;
  }
  const auto evaluate_at = [&](double x) { return evaluate(all, count, shared.sums[warp], x); };
#pragma unroll 1
  for (std::int32_t i = warp; i < level_count; i += kWarps) {
    if (i != warp) {
      q = levels.values[i];
      begin();
    }
    const Expansion node = evaluate_at(start);
    // There is no better guess than where it starts: outside the bracket, so that it is halved.
    const double x =
        mixture::solve(q, ends, &node, 1, evaluate_at, [&](double) { return HUGE_VAL; });
    if (k == 0) found[i] = x;
  }
  __syncthreads();
#pragma unroll 1
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < level_count; i += 32 * kWarps) {
    double last = found[0];
#pragma unroll 1
    for (std::int32_t j = 1; j <= i; ++j) {
      last = found[j] < last ? last : found[j];  // equal but for rounding
    }
    to[2 + i] = static_cast<float>(last * stretch + shift);
  }
}

/// The sum over the block of threads, for all of them; in a fixed order.
__device__ double sum_of_block(double v, double* scratch) {
  v = sum_of_lanes(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < kSortThreads / 32; ++i) sum += scratch[i];
  return sum;
}

/// Ascending, by a bitonic network. `size` is a power of two.
__device__ void sort_block(float* v, int size) {
  for (int k = 2; k <= size; k *= 2) {
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < size / 2; i += kSortThreads) {
        const int low = 2 * i - (i & (j - 1));
        const int high = low + j;
        const float a = v[low];
        const float b = v[high];
        if ((a > b) == ((low & k) == 0)) {
          v[low] = b;
          v[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

/// torch.quantile: as interpolated_quantile() in forecast/statistics.h.
__device__ float interpolated(const float* sorted, std::int32_t count, float q) {
  const float rank = q * static_cast<float>(count - 1);
  const float below = floorf(rank);
  const float weight = rank - below;
  const float a = sorted[static_cast<std::int32_t>(below)];
  const float b = sorted[static_cast<std::int32_t>(ceilf(rank))];
  return weight < 0.5F ? a + weight * (b - a) : b - (b - a) * (1.0F - weight);
}

/// A block of threads for each step of each variate.
__global__ void __launch_bounds__(kSortThreads)
    sample_cells(const LiveBatch* source, const float* kept, std::int32_t horizon,
                 std::int32_t first, std::int32_t samples, int size, Levels levels, float* out) {
  extern __shared__ float4 shared[];
  __shared__ double scratch[kSortThreads / 32];
  auto* const v = reinterpret_cast<float*>(shared);
  begin_kernel();
  const std::int32_t left = horizon - first;
  const auto lane = static_cast<std::int32_t>(blockIdx.x) / left;
  const std::int32_t step = first + static_cast<std::int32_t>(blockIdx.x) % left;
  if (lane >= source->lanes) return;
  const float* const from = kept + (std::int64_t{lane} * horizon + step) * samples;
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  int nan = 0;
  for (int i = thread; i < size; i += kSortThreads) {
    v[i] = i < samples ? from[i] : INFINITY;
    if (i < samples) {
      sum += static_cast<double>(v[i]);
      nan |= isnan(v[i]) ? 1 : 0;
    }
  }
  const double mean = sum_of_block(sum, scratch) / samples;
  double squares = 0;
  for (int i = thread; i < samples; i += kSortThreads) {
    const double off = static_cast<double>(v[i]) - mean;
    squares += off * off;
  }
  squares = sum_of_block(squares, scratch);
  const bool any_nan = __syncthreads_or(nan) != 0;
  sort_block(v, size);
  float* const to = out + std::int64_t{blockIdx.x} * (2 + levels.most);
  if (thread == 0) {
    to[0] = static_cast<float>(mean);
    to[1] = static_cast<float>(sqrt(squares / (static_cast<double>(samples) - 1)));
  }
  for (std::int32_t i = thread; i < *levels.count; i += kSortThreads) {
    to[2 + i] = any_nan ? nanf("") : interpolated(v, samples, static_cast<float>(levels.values[i]));
  }
}

}  // namespace

void exact_statistics(const Extent& batch, const PatchShape& shape, const float* params,
                      const float* loc, const float* scale, const Levels& levels, float* out,
                      const Stream& s) {
  const auto cells = std::int64_t{batch.lanes} * shape.steps;
  const auto run = [&](auto warps) {
    constexpr int kWarps = decltype(warps)::value;
    const std::size_t bytes =
        sizeof(CellShared<kWarps>) +
        static_cast<std::size_t>(shape.components) * sizeof(Component) +
        static_cast<std::size_t>(levels.most) * sizeof(double) +
        static_cast<std::size_t>(kWarps) * shape.components * rough::kRoom * sizeof(float);
    allow_shared_memory<exact_cells<kWarps>>(bytes);
    launch(exact_cells<kWarps>, dim3(static_cast<unsigned>(cells)), dim3(32 * kWarps), bytes, s,
           batch.live, shape, params, loc, scale, levels, out);
  };
  if (cells < kManyCells) {
    run(std::integral_constant<int, kManyWarps>{});
  } else {
    run(std::integral_constant<int, kFewWarps>{});
  }
}

void sample_statistics(const Extent& source, const float* kept, std::int32_t horizon,
                       std::int32_t first, std::int32_t samples, const Levels& levels, float* out,
                       const Stream& s) {
  int size = 2;
  while (size < samples) size *= 2;
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(float);
  allow_shared_memory<sample_cells>(bytes);
  launch(sample_cells, dim3(static_cast<unsigned>(source.lanes * (horizon - first))),
         dim3(kSortThreads), bytes, s, source.live, kept, horizon, first, samples, size, levels,
         out);
}

}  // namespace toto::cuda
