// SPDX-License-Identifier: Apache-2.0
// Statistics on the device: exact ones of the mixture of each step, and order statistics of
// trajectories.
#include <cfloat>
#include <type_traits>

#include "backend/cuda/kernels.h"
#include "backend/cuda/live.h"
#include "core/mixture_solver.h"
#include "core/student_t.h"

namespace toto::cuda {
namespace {

using mixture::Bracket;
using mixture::Point;

// Warps for each step in exact statistics, which share out the levels: many where there are few
// steps and time is what counts, few where there are many and work is.
constexpr int kManyWarps = 10;
constexpr int kFewWarps = 1;
constexpr std::int64_t kManyCells = 1024;
constexpr int kNodes = 3;
constexpr int kTermPitch = 25;  // doubles: coefficients of 32 lanes lie in different banks
static_assert(kTermPitch > student_t::kTerms);
constexpr int kSortThreads = 256;

__device__ double sum_of_warp(double v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(~0U, v, offset);
  return v;
}
__device__ double lowest_of_warp(double v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v = fmin(v, __shfl_xor_sync(~0U, v, offset));
  return v;
}
__device__ double highest_of_warp(double v) { return -lowest_of_warp(-v); }

/// A mixture of up to 32 components, one for each lane of a warp (Mixture in forecast/mixture.h).
struct Component {
  double df, pdf0, loc, scale, inverse_scale, weight;
  double* c;  // [student_t::kTerms]
};

/// What the warps of a step have in shared memory, and after it a double for each level.
template <int kWarps>
struct CellShared {
  double terms[32][kTermPitch];
  double pdf0[32];
  Point nodes[kWarps][kNodes];
};

__device__ Point evaluate(const Component& own, double x) {
  double lower = 0;
  double upper = 0;
  double f[4] = {};
  float radius2 = INFINITY;
  if (own.weight > 0) {
    const double s = own.inverse_scale;
    double z = (x - own.loc) * s;
    z = fmin(fmax(z, -student_t::kMaxT), student_t::kMaxT);
    const student_t::Value v = student_t::evaluate(own.df, own.pdf0, own.c, fabs(z));
    const double small = own.weight * v.upper;
    const double large = own.weight - small;
    lower = z < 0 ? small : large;
    upper = z < 0 ? large : small;
    // (df + z^2) p' = -(df + 1) z p, differentiated n times.
    const double nu = own.df;
    const double r = 1 / (nu + z * z);
    const double p0 = own.weight * s * v.pdf;
    const double p1 = -(nu + 1) * z * p0 * r;
    const double p2 = -((nu + 3) * z * p1 + (nu + 1) * p0) * r;
    const double p3 = -((nu + 5) * z * p2 + 2 * (nu + 2) * p1) * r;
    f[0] = p0;
    f[1] = p1 * s;
    f[2] = p2 * s * s;
    f[3] = p3 * s * s * s;
    radius2 = static_cast<float>((1 + z * z) / (s * s));
  }
  Point point;
  point.x = x;
  point.lower = sum_of_warp(lower);
  point.upper = sum_of_warp(upper);
  for (int i = 0; i < 4; ++i) point.f[i] = sum_of_warp(f[i]);
  point.logit = log(point.lower / point.upper);
  // Not negative, so in the order of its bits.
  point.radius = sqrt(__uint_as_float(__reduce_min_sync(~0U, __float_as_uint(radius2))));
  return point;
}

__device__ Bracket bracket(const Component& own, double q) {
  const double far = own.loc + mixture::reach_of_bracket(q) * own.scale;
  const double clamped = fmin(fmax(far, -DBL_MAX), DBL_MAX);
  const bool counts = own.weight > 0;
  return {lowest_of_warp(counts ? fmin(own.loc, clamped) : DBL_MAX),
          highest_of_warp(counts ? fmax(own.loc, clamped) : -DBL_MAX)};
}

/// The component in which the cumulative weight passes q, by location, and the place inside it.
__device__ double guess(const Component& own, double q) {
  constexpr double kEdge = 1e-6;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double below = 0;
  int before = 0;
  for (int j = 0; j < 32; ++j) {
    const double loc = __shfl_sync(~0U, own.loc, j);
    const double weight = __shfl_sync(~0U, own.weight, j);
    if (weight > 0 && (loc < own.loc || (loc == own.loc && j < lane))) {
      below += weight;
      ++before;
    }
  }
  const bool counts = own.weight > 0;
  // The first in order that reaches q; the last one if rounding leaves none.
  int rank = counts && below + own.weight >= q ? before : 64 - before;
  if (!counts) rank = 128;
  int best = rank;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    best = min(best, __shfl_xor_sync(~0U, best, offset));
  }
  const int owner = __ffs(static_cast<int>(__ballot_sync(~0U, rank == best))) - 1;
  const double inside = fmin(fmax((q - below) / own.weight, kEdge), 1 - kEdge);
  const double x =
      counts ? own.loc + mixture::rough_student_t_quantile(own.df, inside) * own.scale : 0;
  return __shfl_sync(~0U, x, owner);
}

/// A block of threads for each step of each lane; every warp holds the whole mixture.
template <int kWarps>
__global__ void __launch_bounds__(32 * kWarps, kWarps == kFewWarps ? 28 : 1)
    exact_cells(const LiveBatch* live, PatchShape shape, const float* params, const float* locs,
                const float* scales, Levels levels, float* out) {
  extern __shared__ double dynamic[];
  auto& shared = *reinterpret_cast<CellShared<kWarps>*>(dynamic);
  double* const found = dynamic + sizeof(CellShared<kWarps>) / sizeof(double);
  begin_kernel();
  const auto lane = static_cast<std::int32_t>(blockIdx.x) / shape.steps;
  const auto step = static_cast<std::int32_t>(blockIdx.x) % shape.steps;
  if (lane >= live->lanes) return;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int k = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t cell = blockIdx.x;
  const float* const at = params + cell * 4 * shape.components;
  const std::int32_t count = shape.components;

  Component own{2, 0, 0, 1, 1, 0, shared.terms[k]};
  bool valid = true;
  double p = 0;
  if (k < count) {
    p = static_cast<double>(at[3 * count + k]);
    if (p != 0) {
      own.df = static_cast<double>(at[k]);
      own.loc = static_cast<double>(at[count + k]);
      own.scale = static_cast<double>(at[2 * count + k]);
      own.inverse_scale = 1 / own.scale;
      valid = p > 0 && own.df >= 2 && isfinite(own.loc) && own.scale > 0 && isfinite(own.scale) &&
              isfinite(own.inverse_scale);
      own.df = own.df > student_t::kMaxDf ? student_t::kMaxDf : own.df;
    }
  }
  const double total = sum_of_warp(p);
  valid = __all_sync(~0U, valid) != 0 && total > 0 && isfinite(total);
  const double mean = sum_of_warp(p == 0 ? 0 : p * own.loc);
  const double loc = static_cast<double>(locs[std::int64_t{lane} * shape.patch + step]);
  const double scale = static_cast<double>(scales[std::int64_t{lane} * shape.patch + step]);
  float* const to = out + cell * (2 + levels.most);
  const std::int32_t level_count = *levels.count;
  if (!valid) {
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < 2 + level_count;
         i += 32 * kWarps) {
      to[i] = nanf("");
    }
    return;
  }
  own.weight = p / total;
  if (warp == 0 && p != 0) shared.pdf0[k] = student_t::prepare(own.df, own.c);
  __syncthreads();
  if (p != 0) own.pdf0 = shared.pdf0[k];
  const double center = mean / total;
  double variance = 0;
  if (p != 0) {
    const double inner = own.df > 2 ? own.scale * own.scale * (own.df / (own.df - 2)) : HUGE_VAL;
    const double off = own.loc - center;
    variance = own.weight * (inner + off * off);
  }
  variance = sum_of_warp(variance);

  Point* const nodes = shared.nodes[warp];
  int node_count = 0;
#pragma unroll 1
  for (int i = 0; i < kNodes; ++i) {
    const double x =
        i == 0 ? center : center + mixture::step_to(nodes[0], i == 1 ? -1.2 : 1.2).length;
    if (i > 0 && !isfinite(x)) continue;
    const Point at_x = evaluate(own, x);
    if (k == 0) nodes[node_count] = at_x;
    ++node_count;
    __syncwarp();
  }
  for (std::int32_t i = warp; i < level_count; i += kWarps) {
    const double q = levels.values[i];
    const double x = mixture::solve(
        q, bracket(own, q), nodes, node_count, [&](double at_x) { return evaluate(own, at_x); },
        [&](double level) { return guess(own, level); });
    if (k == 0) found[i] = x;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  to[0] = static_cast<float>(mean * scale + loc);
  to[1] = static_cast<float>(sqrt(variance) * scale);
  double last = -HUGE_VAL;
  for (std::int32_t i = 0; i < level_count; ++i) {
    last = found[i] < last ? last : found[i];  // equal but for rounding
    to[2 + i] = static_cast<float>(last * scale + loc);
  }
}

/// The sum over the block of threads, for all of them; in a fixed order.
__device__ double sum_of_block(double v, double* scratch) {
  v = sum_of_warp(v);
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
        sizeof(CellShared<kWarps>) + static_cast<std::size_t>(levels.most) * sizeof(double);
    check(cudaFuncSetAttribute(exact_cells<kWarps>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)),
          "shared memory");
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
  const int bytes = size * static_cast<int>(sizeof(float));
  check(cudaFuncSetAttribute(sample_cells, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kMostSamples * static_cast<int>(sizeof(float))),
        "shared memory");
  launch(sample_cells, dim3(static_cast<unsigned>(source.lanes * (horizon - first))),
         dim3(kSortThreads), static_cast<std::size_t>(bytes), s, source.live, kept, horizon, first,
         samples, size, levels, out);
}

}  // namespace toto::cuda
