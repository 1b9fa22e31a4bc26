// SPDX-License-Identifier: Apache-2.0
// Spec A4, A10, A11 on the CPU backend: scaler, distribution parameters, and the next patch.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/split.h"
#include "backend/expected_views.h"
#include "backend/operation.h"
#include "backend/reference/scaler.h"
#include "core/draw.h"
#include "core/philox.h"

namespace toto::cpu {
namespace {

constexpr float kExtreme = std::numeric_limits<float>::max() / 2;
constexpr std::int64_t kCyclesOfDraw = 500;

/// A10: values that are not finite or of extreme size become 0.
float tame(float y) { return std::isfinite(y) && std::abs(y) < kExtreme ? y : 0.0F; }

std::int64_t lanes_of(const Block& b) { return b.lanes(); }

struct Parameters {
  const float* params;  // [steps][4][K]
  const float* loc;     // [P]
  const float* scale;   // [P]
};

/// Where the parameters of all lanes lie.
struct Source {
  const Batch* shared;
  const PatchShape* shape;
  const float* params;
  const float* loc;
  const float* scale;
  float* y;

  [[nodiscard]] Parameters of(std::int32_t block, const Block& b, std::int32_t lane) const {
    const std::int64_t from =
        shared == nullptr ? b.lane + lane : shared->blocks[block].lane + lane % b.variates;
    return {params + from * shape->steps * 4 * shape->components, loc + from * shape->patch,
            scale + from * shape->patch};
  }
};

/// Fills y [lanes][P] with value(block, lane, parameters, step), scaled back to data units.
template <typename Value>
void predict(ThreadTeam& team, const Batch& batch, const Source& source, std::int64_t cost,
             const Value& value) {
  const PatchShape& shape = *source.shape;
  const auto fill_lane = [&](std::int32_t block, const Block& b, std::int32_t lane) {
    const Parameters p = source.of(block, b, lane);
    float* out = source.y + std::int64_t{b.lane + lane} * shape.patch;
    for (std::int32_t step = 0; step < shape.steps; ++step) {
      const float scaled =
          value(b, lane, p.params + std::int64_t{step} * 4 * shape.components, step);
      out[step] = tame(scaled * p.scale[step] + p.loc[step]);
    }
    std::fill(out + shape.steps, out + shape.patch, 0.0F);
  };
  split(team, batch.lanes, cost * shape.steps, [&](std::int64_t first, std::int64_t end, int) {
    for_each_item(batch, first, end, lanes_of, fill_lane);
  });
}

}  // namespace

void CpuBackend::scale(const Batch& batch, const ScalerSpec& spec, const ConstView& x,
                       const std::uint8_t* mask, ScalerState* state,
                       const ScalerOutputs& to) const {
  const OperationSpan span(Operation::scale);
  expected::scale(*this, batch, spec, x, to);
  const float* const raw = typed<float>(x);
  float* const values = typed<float>(to.values);
  float* const loc = typed<float>(to.loc);
  float* const scale = typed<float>(to.scale);
  float* const last_loc = typed<float>(to.last_loc);
  float* const last_scale = typed<float>(to.last_scale);
  constexpr std::int64_t kCyclesOfStep = 30;
  const std::int64_t steps = std::int64_t{batch.rows} * spec.patch / std::max(batch.lanes, 1);
  const auto run_lane = [&](std::int32_t, const Block& b, std::int32_t lane) {
    const std::int64_t at = std::int64_t{b.row + lane * b.tokens} * spec.patch;
    const scaler::Lane<float> view{raw + at,   mask + at, values + at, loc + at,
                                   scale + at, b.tokens,  b.labels,    b.context};
    scaler::run(view, spec, b.position == 0, state[b.lane + lane]);
    const std::int64_t last = std::int64_t{b.lane + lane} * spec.patch;
    scaler::copy_last(view, spec.patch, last_loc + last, last_scale + last);
  };
  split(team_, batch.lanes, steps * kCyclesOfStep, [&](std::int64_t first, std::int64_t end, int) {
    for_each_item(batch, first, end, lanes_of, run_lane);
  });
}

void CpuBackend::repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                              ScalerState* to) const {
  const OperationSpan span(Operation::repeat_state);
  for_each_item(batch, 0, batch.lanes, lanes_of,
                [&](std::int32_t block, const Block& b, std::int32_t lane) {
                  to[b.lane + lane] = from[source.blocks[block].lane + lane % b.variates];
                });
}

void CpuBackend::distribution(const View& raw, bool mixture) const {
  const OperationSpan span(Operation::distribution);
  const std::int32_t components = expected::distribution(*this, raw);
  float* const rows = typed<float>(raw);
  split(team_, raw.rows.count, 10 * components, [&](std::int64_t first, std::int64_t end, int) {
    for (std::int64_t row = first; row < end; ++row) {
      rows_.distribution(rows + row * 4 * components, static_cast<std::size_t>(components),
                         mixture);
    }
  });
}

void CpuBackend::predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                              const ConstView& params, const ConstView& loc, const ConstView& scale,
                              const View& y) const {
  const OperationSpan span(Operation::predict_mean);
  expected::predict(ElementType::f32, batch, shared, shape, params, loc, scale, y);
  const Source source{
      shared,         &shape, typed<float>(params), typed<float>(loc), typed<float>(scale),
      typed<float>(y)};
  const std::int32_t k = shape.components;
  predict(team_, batch, source, 30, [&](const Block&, std::int32_t, const float* at, std::int32_t) {
    return rows_.dot(at + 3 * k, at + k, static_cast<std::size_t>(k));
  });
}

void CpuBackend::predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                              const ConstView& params, const ConstView& loc, const ConstView& scale,
                              const View& y) const {
  const OperationSpan span(Operation::predict_draw);
  expected::predict(ElementType::f32, batch, shared, shape, params, loc, scale, y);
  const Source source{
      shared,         &shape, typed<float>(params), typed<float>(loc), typed<float>(scale),
      typed<float>(y)};
  const std::int32_t k = shape.components;
  predict(
      team_, batch, source, kCyclesOfDraw,
      [&](const Block& b, std::int32_t lane, const float* at, std::int32_t step) {
        const DrawAddress address{b.key, static_cast<std::uint32_t>(lane % b.variates),
                                  static_cast<std::uint32_t>(b.first_sample + lane / b.variates),
                                  static_cast<std::uint32_t>(b.first_step + step)};
        return static_cast<float>(
            draw_mixture(at, at + k, at + 2 * k, at + 3 * k, 1, k, draw_words(b.seed, address)));
      });
}

void CpuBackend::inject(const Batch& batch, const PatchShape& shape, const float* covariates,
                        const View& y) const {
  const OperationSpan span(Operation::inject);
  expected::predicted(*this, batch, shape, y);
  float* const patches = typed<float>(y);
  for_each_item(batch, 0, batch.lanes, lanes_of,
                [&](std::int32_t, const Block& b, std::int32_t lane) {
                  const std::int32_t e = lane % b.variates - (b.variates - b.exogenous);
                  if (e < 0 || b.covariates < 0) return;
                  std::copy_n(covariates + b.covariates + e * shape.patch, shape.patch,
                              patches + std::int64_t{b.lane + lane} * shape.patch);
                });
}

}  // namespace toto::cpu
