// SPDX-License-Identifier: Apache-2.0
#include "backend/reference/paths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "backend/expected_views.h"
#include "backend/operation.h"
#include "backend/path_scores.h"
#include "statistics/mixture.h"

namespace toto::reference {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The mixture of one step: params [4][K].
template <typename T>
Mixture mixture_of(const T* params, std::int32_t components) {
  const auto k = static_cast<std::size_t>(components);
  const std::vector<double> own(params, params + 4 * k);
  const std::span<const double> all(own);
  Mixture mixture(k);
  mixture.assign(all.first(k), all.subspan(k, k), all.subspan(2 * k, k), all.subspan(3 * k, k));
  return mixture;
}

}  // namespace

template <typename T>
void ReferencePaths<T>::reserve(std::int32_t /*components*/) {}

template <typename T>
void ReferencePaths<T>::neighbours(const Batch& context, const PatchShape& shape,
                                   const ConstView& params, const ConstView& loc,
                                   const ConstView& scale, const float* x, const std::uint8_t* mask,
                                   double* scores, float* rho) const {
  const OperationSpan span(Operation::neighbours);
  expected::neighbours(kTypeOf<T>, context, shape, params, loc, scale);
  const T* const all = typed<T>(params);
  const T* const locs = typed<T>(loc);
  const T* const scales = typed<T>(scale);
  const std::int32_t patch = shape.patch;
  const auto score = [&](std::int64_t at) {
    if (mask[at + patch] == 0) return kNaN;
    const Mixture mixture = mixture_of(all + at * 4 * shape.components, shape.components);
    const double value =
        (x[at + patch] - static_cast<double>(locs[at])) / static_cast<double>(scales[at]);
    return std::clamp(mixture.normal_score(value), -paths::kMaxScore, paths::kMaxScore);
  };
  for (std::int32_t i = 0; i < context.count; ++i) {
    const Block& b = context.blocks[i];
    const auto [used, first] = paths::looked_at(b);
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int64_t begin = (b.row + std::int64_t{lane} * b.tokens + first) * patch;
      for (std::int64_t at = begin; at < begin + std::int64_t{used} * patch; ++at) {
        scores[at] = score(at);
      }
      paths::correlate(scores + begin, used, patch, rho + std::int64_t{b.lane + lane} * patch);
    }
  }
}

template <typename T>
void ReferencePaths<T>::draw(const Batch& batch, const Batch* shared, const Batch& source,
                             const PatchShape& shape, const ConstView& params, const ConstView& loc,
                             const ConstView& scale, const float* rho, const View& y) const {
  const OperationSpan span(Operation::draw);
  expected::predict(kTypeOf<T>, batch, shared, shape, params, loc, scale, y);
  const T* const all = typed<T>(params);
  const T* const locs = typed<T>(loc);
  const T* const scales = typed<T>(scale);
  T* const patches = typed<T>(y);
  const auto draw_lane = [&](std::int32_t index, const Block& b, std::int32_t lane) {
    const std::int32_t variate = lane % b.variates;
    const std::int64_t from =
        shared == nullptr ? b.lane + lane : shared->blocks[index].lane + variate;
    const float* const own_rho =
        rho + std::int64_t{source.blocks[index].lane + variate} * shape.patch;
    T* const out = patches + std::int64_t{b.lane + lane} * shape.patch;
    double z = 0;
    for (std::int32_t s = 0; s < shape.steps; ++s) {
      const double bound = s == 0 ? 0.0 : static_cast<double>(own_rho[s - 1]);
      const double fresh =
          paths::normal_at(b, variate, b.first_sample + lane / b.variates, b.first_step + s);
      z = bound * z + std::sqrt(1 - bound * bound) * fresh;
      const Mixture mixture =
          mixture_of(all + (from * shape.steps + s) * 4 * shape.components, shape.components);
      const double value = mixture.at_normal_score(z);
      const std::int64_t at = from * shape.patch + s;
      out[s] = paths::tame(static_cast<T>(value) * scales[at] + locs[at]);
    }
    std::fill(out + shape.steps, out + shape.patch, T{0});
  };
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) draw_lane(i, b, lane);
  }
}

template class ReferencePaths<float>;
template class ReferencePaths<double>;

}  // namespace toto::reference
