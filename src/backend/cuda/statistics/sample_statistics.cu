// SPDX-License-Identifier: Apache-2.0
// Order statistics of trajectories.
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/runtime/warp.cuh"
#include "backend/cuda/statistics/statistics.h"

namespace toto::cuda {
namespace {

constexpr int kSortThreads = 256;

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

/// torch.quantile: as interpolated_quantile() in statistics/statistics.h.
__device__ float interpolated(const float* sorted, std::int32_t count, float q) {
  const float rank = q * static_cast<float>(count - 1);
  const float below = floorf(rank);
  const float weight = rank - below;
  const float a = sorted[static_cast<std::int32_t>(below)];
  const float b = sorted[static_cast<std::int32_t>(ceilf(rank))];
  return weight < 0.5F ? a + weight * (b - a) : b - (b - a) * (1.0F - weight);
}

/// A block of threads for each step of each variate. It looks up its own before it waits, if the
/// batch is `known` (Stream::calls_known).
__global__ void __launch_bounds__(kSortThreads)
    sample_cells(const LiveBatch* source, bool known, const float* kept, KeptShape room,
                 std::int32_t first, int size, Levels levels, float* out) {
  extern __shared__ float4 shared[];
  __shared__ double scratch[kSortThreads / 32];
  auto* const v = reinterpret_cast<float*>(shared);
  begin_lookups(known);
  const std::int32_t left = room.horizon - first;
  const auto lane = static_cast<std::int32_t>(blockIdx.x) / left;
  const std::int32_t step = first + static_cast<std::int32_t>(blockIdx.x) % left;
  if (lane >= source->lanes) return end_lookups(known);
  const Block& asked = source->blocks[block_of_lane(*source, lane)];
  const std::int32_t samples = asked.samples;
  if (step >= asked.horizon || samples == 0) return end_lookups(known);
  end_lookups(known);
  const float* const from = kept + (std::int64_t{lane} * room.horizon + step) * room.samples;
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
  float* const to = out + std::int64_t{blockIdx.x} * (2 + levels.max);
  if (thread == 0) {
    to[0] = static_cast<float>(mean);
    to[1] = static_cast<float>(sqrt(squares / (static_cast<double>(samples) - 1)));
  }
  const double* const own_levels = levels.values + asked.level_first;
  for (std::int32_t i = thread; i < asked.level_count; i += kSortThreads) {
    to[2 + i] = any_nan ? nanf("") : interpolated(v, samples, static_cast<float>(own_levels[i]));
  }
}

}  // namespace

void sample_statistics(const Extent& source, const float* kept, const KeptShape& room,
                       std::int32_t first, const Levels& levels, float* out, const Stream& s) {
  int size = 2;
  while (size < room.samples) size *= 2;
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(float);
  allow_shared_memory<sample_cells>(bytes);
  launch(sample_cells, dim3(static_cast<unsigned>(source.lanes * (room.horizon - first))),
         dim3(kSortThreads), bytes, s, source.live, s.calls_known(), kept, room, first, size,
         levels, out);
}

}  // namespace toto::cuda
