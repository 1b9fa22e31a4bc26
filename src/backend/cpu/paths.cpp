// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/paths.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/split.h"
#include "backend/expected_views.h"
#include "backend/operation.h"
#include "backend/path_scores.h"
#include "statistics/normal.h"

namespace toto::cpu {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int32_t kTogether = 64;  // trajectories that share the parameters of a step
constexpr std::int64_t kCycles = 600;   // of one step

}  // namespace

void CpuPaths::reserve(std::int32_t components) {
  scratch_.reserve(kernels_.room(static_cast<std::size_t>(components)) * sizeof(float));
}

void CpuPaths::neighbours(const Batch& context, const PatchShape& shape, const ConstView& params,
                          const ConstView& loc, const ConstView& scale, const float* x,
                          const std::uint8_t* mask, double* scores, float* rho) const {
  const OperationSpan span(Operation::neighbours);
  expected::neighbours(ElementType::f32, context, shape, params, loc, scale);
  const std::int32_t patch = shape.patch;
  const auto lanes = static_cast<std::int32_t>(kernels_.lanes);
  const auto components = static_cast<std::size_t>(shape.components);
  const float* const all = typed<float>(params);
  const float* const locs = typed<float>(loc);
  const float* const scales = typed<float>(scale);
  /// The steps of one group, the first of which is cell `at` of what [rows][P] has.
  const auto score = [&](std::int64_t at, std::int32_t count, float* room) {
    float value[kMaxMixtures] = {}, lower[kMaxMixtures], upper[kMaxMixtures];
    for (std::int32_t i = 0; i < count; ++i) {
      value[i] = (x[at + i + patch] - locs[at + i]) / scales[at + i];
    }
    const std::size_t stride = 4 * components;
    const std::size_t used = kernels_.take(all + at * static_cast<std::int64_t>(stride), stride,
                                           static_cast<std::size_t>(count), components, room);
    kernels_.tails(room, used, value, lower, upper);
    for (std::int32_t i = 0; i < count; ++i) {
      const double z = normal_score(static_cast<double>(lower[i]), static_cast<double>(upper[i]));
      scores[at + i] =
          mask[at + i + patch] == 0 ? kNaN : std::clamp(z, -paths::kMaxScore, paths::kMaxScore);
    }
  };
  for (std::int32_t i = 0; i < context.count; ++i) {
    const Block& b = context.blocks[i];
    const auto looked = paths::looked_at(b);
    const std::int32_t used = looked.used, first = looked.first;
    const std::int64_t items = std::int64_t{b.lanes()} * used;
    split(team_, items, kCycles * patch, [&](std::int64_t begin, std::int64_t end, int thread) {
      auto* const room = reinterpret_cast<float*>(scratch_.of(thread));
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t row = b.row + item / used * b.tokens + first + item % used;
        for (std::int32_t s = 0; s < patch; s += lanes) {
          score(row * patch + s, std::min(lanes, patch - s), room);
        }
      }
    });
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int64_t row = b.row + std::int64_t{lane} * b.tokens + first;
      paths::correlate(scores + row * patch, used, patch,
                       rho + std::int64_t{b.lane + lane} * patch);
    }
  }
}

struct CpuPaths::Draw {
  const PatchShape& shape;
  const float *params, *loc, *scale;
  float* y;
};

/// Trajectories first, first + 1, ... of a variate, whose parameters are those of lane `from`.
struct CpuPaths::Group {
  const Block& b;
  std::int32_t variate, first, count;
  std::int64_t from;
  const float* rho;
};

void CpuPaths::draw_group(const Draw& d, const Group& group, float* room) const {
  const PatchShape& shape = d.shape;
  const auto lanes = static_cast<std::int32_t>(kernels_.lanes);
  const auto components = static_cast<std::size_t>(shape.components);
  const std::size_t stride = 4 * components;
  const float* const own = d.params + group.from * shape.steps * static_cast<std::int64_t>(stride);
  const float* const loc = d.loc + group.from * shape.patch;
  const float* const scale = d.scale + group.from * shape.patch;
  double last[kTogether] = {};
  for (std::int32_t s = 0; s < shape.steps; s += lanes) {
    const std::int32_t count = std::min(lanes, shape.steps - s);
    const std::size_t used = kernels_.take(own + s * static_cast<std::int64_t>(stride), stride,
                                           static_cast<std::size_t>(count), components, room);
    double bound[kMaxMixtures], free[kMaxMixtures];
    for (std::int32_t i = 0; i < count; ++i) {
      bound[i] = s + i == 0 ? 0.0 : static_cast<double>(group.rho[s + i - 1]);
      free[i] = std::sqrt(1 - bound[i] * bound[i]);
    }
    for (std::int32_t n = 0; n < group.count; ++n) {
      const Block& b = group.b;
      const std::int32_t trajectory = group.first + n;
      float z[kMaxMixtures] = {}, x[kMaxMixtures];
      for (std::int32_t i = 0; i < count; ++i) {
        const double fresh =
            paths::normal_at(b, group.variate, b.first_sample + trajectory, b.first_step + s + i);
        last[n] = bound[i] * last[n] + free[i] * fresh;
        z[i] = static_cast<float>(last[n]);
      }
      kernels_.at_scores(room, used, z, x);
      const std::int64_t lane =
          std::int64_t{b.lane} + std::int64_t{trajectory} * b.variates + group.variate;
      float* const out = d.y + lane * shape.patch + s;
      for (std::int32_t i = 0; i < count; ++i) {
        out[i] = paths::tame(x[i] * scale[s + i] + loc[s + i]);
      }
      if (s + count == shape.steps) std::fill(out + count, out + shape.patch - s, 0.0F);
    }
  }
}

void CpuPaths::draw(const Batch& batch, const Batch* shared, const Batch& source,
                    const PatchShape& shape, const ConstView& params, const ConstView& loc,
                    const ConstView& scale, const float* rho, const View& y) const {
  const OperationSpan span(Operation::draw);
  expected::predict(ElementType::f32, batch, shared, shape, params, loc, scale, y);
  const Draw d{shape, typed<float>(params), typed<float>(loc), typed<float>(scale),
               typed<float>(y)};
  const auto draw_lanes = [&](std::int64_t begin, std::int64_t end, float* room) {
    for (const Block* b = paths::block_at(batch, begin); begin < end; ++b) {
      const auto index = b - batch.blocks;
      const std::int64_t low = begin - b->lane;
      const std::int64_t high = std::min(end - b->lane, std::int64_t{b->lanes()});
      begin = b->lane + high;
      for (std::int32_t v = 0; v < b->variates; ++v) {
        const float* const own = rho + (std::int64_t{source.blocks[index].lane} + v) * shape.patch;
        auto first = static_cast<std::int32_t>((low - v + b->variates - 1) / b->variates);
        const auto last = static_cast<std::int32_t>((high - v + b->variates - 1) / b->variates);
        while (first < last) {
          const std::int32_t count = shared == nullptr ? 1 : std::min(last - first, kTogether);
          const std::int64_t from = shared == nullptr
                                        ? std::int64_t{b->lane} + first * b->variates + v
                                        : std::int64_t{shared->blocks[index].lane} + v;
          draw_group(d, {*b, v, first, count, from, own}, room);
          first += count;
        }
      }
    }
  };
  split(team_, batch.lanes, kCycles * shape.steps,
        [&](std::int64_t first, std::int64_t end, int thread) {
          draw_lanes(first, end, reinterpret_cast<float*>(scratch_.of(thread)));
        });
}

}  // namespace toto::cpu
