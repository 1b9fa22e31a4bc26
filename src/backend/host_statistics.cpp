// SPDX-License-Identifier: Apache-2.0
#include "backend/host_statistics.h"

#include <algorithm>
#include <cmath>

#include "backend/parallel.h"
#include "statistics/statistics.h"

namespace toto {
namespace {

/// Calls visit(block, lane) for lanes [begin, end) of all blocks; lane counts within its block.
template <typename Visit>
void for_lanes(const Batch& batch, std::int64_t begin, std::int64_t end, const Visit& visit) {
  if (begin >= end) return;
  const Block* const last = batch.blocks + batch.count;
  const Block* b = std::upper_bound(batch.blocks, last, begin,
                                    [](std::int64_t at, const Block& x) { return at < x.lane; }) -
                   1;
  for (std::int64_t lane = begin; lane < end; ++lane) {
    while (lane >= b->lane + b->lanes()) ++b;
    visit(static_cast<std::size_t>(b - batch.blocks), static_cast<std::int32_t>(lane) - b->lane);
  }
}

}  // namespace

void HostStatistics::reserve(int workers, std::int32_t components, std::int32_t levels,
                             std::int32_t samples) {
  components_ = std::max(components_, components);
  levels_ = std::max(levels_, levels);
  samples_ = std::max(samples_, samples);
  const auto count = std::max(workers_.size(), static_cast<std::size_t>(workers));
  workers_.resize(count);
  for (Worker& worker : workers_) {
    const auto k = static_cast<std::size_t>(components_);
    if (worker.wide.size() != 4 * k) {
      worker.mixture = Mixture(k);
      worker.wide.resize(4 * k);
    }
    worker.found.resize(static_cast<std::size_t>(levels_));
    worker.column.resize(static_cast<std::size_t>(samples_));
  }
}

template <typename T>
void HostStatistics::exact(const Backend& backend, const Batch& batch, const PatchShape& shape,
                           const T* params, const T* loc, const T* scale, const Levels& levels,
                           float* out) {
  const auto k = static_cast<std::size_t>(shape.components);
  const auto cell = [&](Worker& worker, const Block& b, std::int64_t lane, std::int32_t step) {
    const std::int64_t index = lane * shape.steps + step;
    const T* const from = params + index * 4 * shape.components;
    std::copy_n(from, 4 * k, worker.wide.begin());
    const std::span<const double> all(worker.wide);
    worker.mixture.assign(all.subspan(0, k), all.subspan(k, k), all.subspan(2 * k, k),
                          all.subspan(3 * k, k));
    const auto shift = static_cast<double>(loc[lane * shape.patch + step]);
    const auto stretch = static_cast<double>(scale[lane * shape.patch + step]);
    const auto count = static_cast<std::size_t>(b.level_count);
    const std::span<double> found = std::span(worker.found).first(count);
    worker.mixture.quantiles({levels.values + b.level_first, count}, found);
    float* to = out + index * (2 + levels.max);
    *to++ = static_cast<float>(worker.mixture.mean() * stretch + shift);
    *to++ = static_cast<float>(worker.mixture.standard_deviation() * stretch);
    for (const double q : found) *to++ = static_cast<float>(q * stretch + shift);
  };
  // One item for each step, so that a single series keeps all threads busy.
  const std::int64_t cells = std::int64_t{batch.lanes} * shape.steps;
  parallel(backend, cells, [&](std::int64_t begin, std::int64_t end, int thread) noexcept {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    for_lanes(batch, begin / shape.steps, (end + shape.steps - 1) / shape.steps,
              [&](std::size_t block, std::int32_t own) {
                const Block& b = batch.blocks[block];
                const std::int64_t lane = b.lane + own;
                for (std::int32_t step = 0; step < shape.steps; ++step) {
                  const std::int64_t index = lane * shape.steps + step;
                  if (index < begin || index >= end || step >= b.horizon) continue;
                  cell(worker, b, lane, step);
                }
              });
  });
}

void HostStatistics::sampled(const Backend& backend, const Batch& source, const float* kept,
                             const KeptShape& room, std::int32_t first, const Levels& levels,
                             float* out) {
  const std::int32_t left = room.horizon - first;
  const auto cell = [&](Worker& worker, const Block& b, std::int64_t lane, std::int32_t step) {
    const Samples all{kept + (lane * room.horizon + step) * room.samples,
                      static_cast<std::size_t>(b.samples), 1};
    float* to = out + (lane * left + step - first) * (2 + levels.max);
    *to++ = sample_mean(all);
    *to++ = sample_std(all);
    const std::span<const float> sorted =
        sort_samples(all, std::span(worker.column).first(all.count));
    for (std::int32_t i = 0; i < b.level_count; ++i) {
      *to++ = interpolated_quantile(sorted, static_cast<float>(levels.values[b.level_first + i]));
    }
  };
  parallel(backend, std::int64_t{source.lanes} * left,
           [&](std::int64_t begin, std::int64_t end, int thread) noexcept {
             Worker& worker = workers_[static_cast<std::size_t>(thread)];
             for_lanes(source, begin / left, (end + left - 1) / left,
                       [&](std::size_t block, std::int32_t own) {
                         const Block& b = source.blocks[block];
                         const std::int64_t lane = b.lane + own;
                         for (std::int32_t step = first; step < b.horizon; ++step) {
                           const std::int64_t index = lane * left + step - first;
                           if (index < begin || index >= end || b.samples == 0) continue;
                           cell(worker, b, lane, step);
                         }
                       });
           });
}

template <typename T>
void HostStatistics::keep(const Backend& backend, const Batch& batch, const Batch& source,
                          const PatchShape& shape, const T* y, float* kept, const KeptShape& room) {
  parallel(backend, batch.lanes, [&](std::int64_t begin, std::int64_t end, int) noexcept {
    for_lanes(batch, begin, end, [&](std::size_t block, std::int32_t own) {
      const Block& b = batch.blocks[block];
      const std::int64_t variate = source.blocks[block].lane + own % b.variates;
      const std::int32_t sample = b.first_sample + own / b.variates;
      const std::int32_t steps = std::min(shape.steps, room.horizon - b.first_step);
      const T* const from = y + std::int64_t{b.lane + own} * shape.patch;
      float* const to = kept + (variate * room.horizon + b.first_step) * room.samples + sample;
      for (std::int32_t t = 0; t < steps; ++t) {
        to[std::int64_t{t} * room.samples] = static_cast<float>(from[t]);
      }
    });
  });
}

template <typename T>
void HostStatistics::keep_parameters(const Batch& batch, const Batch& source,
                                     const PatchShape& shape, const T* params, const T* loc,
                                     const T* scale, float* out, std::int32_t horizon) {
  const std::int64_t each = std::int64_t{4} * shape.components;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    if (b.first_sample != 0) continue;
    const std::int32_t steps = std::min(shape.steps, horizon - b.first_step);
    for (std::int32_t v = 0; v < b.variates; ++v) {  // of trajectory 0
      const std::int64_t lane = b.lane + v;
      const std::int64_t row = (source.blocks[i].lane + v) * std::int64_t{horizon} + b.first_step;
      for (std::int32_t t = 0; t < steps; ++t) {
        const T* const from = params + (lane * shape.steps + t) * each;
        float* to = out + (row + t) * (each + 2);
        for (std::int64_t k = 0; k < each; ++k) *to++ = static_cast<float>(from[k]);
        *to++ = static_cast<float>(loc[lane * shape.patch + t]);
        *to = static_cast<float>(scale[lane * shape.patch + t]);
      }
    }
  }
}

#define TOTO_INSTANTIATE(T)                                                                       \
  template void HostStatistics::exact<T>(const Backend&, const Batch&, const PatchShape&,         \
                                         const T*, const T*, const T*, const Levels&, float*);    \
  template void HostStatistics::keep<T>(const Backend&, const Batch&, const Batch&,               \
                                        const PatchShape&, const T*, float*, const KeptShape&);   \
  template void HostStatistics::keep_parameters<T>(const Batch&, const Batch&, const PatchShape&, \
                                                   const T*, const T*, const T*, float*,          \
                                                   std::int32_t);
TOTO_INSTANTIATE(float)
TOTO_INSTANTIATE(double)
#undef TOTO_INSTANTIATE

}  // namespace toto
