// SPDX-License-Identifier: Apache-2.0
// Spec A4, A10, A11: scaler, distribution parameters, and the next patch.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/expected_views.h"
#include "backend/operation.h"
#include "backend/reference/reference_backend.h"
#include "backend/reference/scaler.h"
#include "core/draw.h"
#include "core/philox.h"

namespace toto::reference {
namespace {

constexpr float kEpsilon = std::numeric_limits<float>::epsilon();  // of the model's type, 2^-23
constexpr double kExtreme = static_cast<double>(std::numeric_limits<float>::max()) / 2;

template <typename T>
T softplus(T x) {
  return x > T{20} ? x : std::log1p(std::exp(x));
}

/// A10: values that are not finite or of extreme size become 0.
template <typename T>
T tame(T y) {
  return std::isfinite(y) && std::abs(static_cast<double>(y)) < kExtreme ? y : T{0};
}

template <typename T>
struct LaneParameters {
  const T* params;  // [steps][4][K]
  const T* loc;     // [P]
  const T* scale;   // [P]
};

/// Calls visit(block, trajectory, variate, parameters, y) for every lane.
template <typename T, typename Visit>
void for_each_lane(const Batch& batch, const Batch* shared, const PatchShape& shape,
                   const ConstView& params, const ConstView& loc, const ConstView& scale,
                   const View& y, Visit visit) {
  expected::predict(kTypeOf<T>, batch, shared, shape, params, loc, scale, y);
  const LaneParameters<T> all{typed<T>(params), typed<T>(loc), typed<T>(scale)};
  T* const patches = typed<T>(y);
  const std::int64_t stride = std::int64_t{shape.steps} * 4 * shape.components;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int32_t variate = lane % b.variates;
      const std::int64_t from =
          shared == nullptr ? b.lane + lane : shared->blocks[i].lane + variate;
      const LaneParameters<T> p{all.params + from * stride, all.loc + from * shape.patch,
                                all.scale + from * shape.patch};
      T* out = patches + std::int64_t{b.lane + lane} * shape.patch;
      std::fill(out + shape.steps, out + shape.patch, T{0});
      visit(b, lane / b.variates, variate, p, out);
    }
  }
}

}  // namespace

template <typename T>
void ReferenceBackend<T>::scale(const Batch& batch, const ScalerSpec& spec, const ConstView& x,
                                const std::uint8_t* mask, ScalerState* state,
                                const ScalerOutputs& to) const {
  const OperationSpan span(Operation::scale);
  expected::scale(*this, batch, spec, x, to);
  const T* const raw = typed<T>(x);
  T* const values = typed<T>(to.values);
  T* const loc = typed<T>(to.loc);
  T* const scale = typed<T>(to.scale);
  T* const last_loc = typed<T>(to.last_loc);
  T* const last_scale = typed<T>(to.last_scale);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int64_t at = std::int64_t{b.row + lane * b.tokens} * spec.patch;
      const scaler::Lane<T> view{raw + at,   mask + at, values + at, loc + at,
                                 scale + at, b.tokens,  b.labels,    b.context};
      scaler::run(view, spec, b.position == 0, state[b.lane + lane]);
      const std::int64_t last = std::int64_t{b.lane + lane} * spec.patch;
      scaler::copy_last(view, spec.patch, last_loc + last, last_scale + last);
    }
  }
}

template <typename T>
void ReferenceBackend<T>::repeat_state(const Batch& source, const Batch& batch,
                                       const ScalerState* from, ScalerState* to) const {
  const OperationSpan span(Operation::repeat_state);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      to[b.lane + lane] = from[source.blocks[i].lane + lane % b.variates];
    }
  }
}

template <typename T>
void ReferenceBackend<T>::distribution(const View& raw, bool mixture) const {
  const OperationSpan span(Operation::distribution);
  const std::int32_t components = expected::distribution(*this, raw);
  T* const rows = typed<T>(raw);
  const auto floor = static_cast<T>(kEpsilon);
  for (std::int64_t row = 0; row < raw.rows.count; ++row) {
    T* df = rows + row * 4 * components;
    T* scale = df + 2 * components;
    T* weight = df + 3 * components;
    for (std::int32_t k = 0; k < components; ++k) {
      df[k] = T{2} + std::max(softplus(df[k]), floor);
      scale[k] = std::max(softplus(scale[k]), floor);
    }
    if (!mixture) {
      std::fill_n(weight, components, T{1});
      continue;
    }
    const T highest = *std::max_element(weight, weight + components);
    T total = 0;
    for (std::int32_t k = 0; k < components; ++k) {
      weight[k] = std::exp(weight[k] - highest);
      total += weight[k];
    }
    T again = 0;
    for (std::int32_t k = 0; k < components; ++k) {
      weight[k] /= total;
      again += weight[k];
    }
    for (std::int32_t k = 0; k < components; ++k) weight[k] /= again;
  }
}

template <typename T>
void ReferenceBackend<T>::predict_mean(const Batch& batch, const Batch* shared,
                                       const PatchShape& shape, const ConstView& params,
                                       const ConstView& loc, const ConstView& scale,
                                       const View& y) const {
  const OperationSpan span(Operation::predict_mean);
  const std::int32_t k_count = shape.components;
  for_each_lane<T>(
      batch, shared, shape, params, loc, scale, y,
      [&](const Block&, std::int32_t, std::int32_t, const LaneParameters<T>& p, T* out) {
        for (std::int32_t step = 0; step < shape.steps; ++step) {
          const T* at = p.params + std::int64_t{step} * 4 * k_count;
          T mean = 0;
          for (std::int32_t k = 0; k < k_count; ++k) {
            mean += at[3 * k_count + k] * at[k_count + k];
          }
          out[step] = tame(mean * p.scale[step] + p.loc[step]);
        }
      });
}

template <typename T>
void ReferenceBackend<T>::predict_draw(const Batch& batch, const Batch* shared,
                                       const PatchShape& shape, const ConstView& params,
                                       const ConstView& loc, const ConstView& scale,
                                       const View& y) const {
  const OperationSpan span(Operation::predict_draw);
  const std::int32_t k_count = shape.components;
  for_each_lane<T>(
      batch, shared, shape, params, loc, scale, y,
      [&](const Block& b, std::int32_t trajectory, std::int32_t variate, const LaneParameters<T>& p,
          T* out) {
        for (std::int32_t step = 0; step < shape.steps; ++step) {
          const T* at = p.params + std::int64_t{step} * 4 * k_count;
          const DrawAddress address{b.key, static_cast<std::uint32_t>(variate),
                                    static_cast<std::uint32_t>(b.first_sample + trajectory),
                                    static_cast<std::uint32_t>(b.first_step + step)};
          const double draw = draw_mixture(at, at + k_count, at + 2 * k_count, at + 3 * k_count, 1,
                                           k_count, draw_words(b.seed, address));
          out[step] = tame(static_cast<T>(draw) * p.scale[step] + p.loc[step]);
        }
      });
}

template <typename T>
void ReferenceBackend<T>::inject(const Batch& batch, const PatchShape& shape,
                                 const float* covariates, const View& y) const {
  const OperationSpan span(Operation::inject);
  expected::predicted(*this, batch, shape, y);
  T* const patches = typed<T>(y);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int32_t e = lane % b.variates - (b.variates - b.exogenous);
      if (e < 0 || b.covariates < 0) continue;
      std::copy_n(covariates + b.covariates + e * shape.patch, shape.patch,
                  patches + std::int64_t{b.lane + lane} * shape.patch);
    }
  }
}

template class ReferenceBackend<float>;
template class ReferenceBackend<double>;

}  // namespace toto::reference
