// SPDX-License-Identifier: Apache-2.0
#include "engine/service/request_cost.h"

#include <algorithm>
#include <cmath>

namespace toto {
namespace {

/// Sizes as doubles: a request that has not been refused yet may ask for anything.
struct Shape {
  double variates, tokens, patches, trajectories, horizon;
};

Shape shape_of(const Request& request, const ModelInfo& model) {
  const ForecastOptions& o = request.options;
  const auto patch = static_cast<double>(model.patch_size);
  Shape s{};
  s.variates = static_cast<double>(request.series.variates);
  s.tokens =
      std::ceil(static_cast<double>(request.series.steps) / patch) + (model.variate_labels ? 1 : 0);
  s.horizon = static_cast<double>(o.horizon);
  s.patches = std::max(std::ceil(s.horizon / patch), 1.0);
  s.trajectories = o.mean_only ? 1 : static_cast<double>(o.num_samples);
  return s;
}

/// Keys, values and activations of the layers. Written after the plan of an engine (workspace.h):
/// sums of row sizes, and one alignment for each array.
double working_bytes(const Shape& s, const ModelInfo& m, double element, bool eager) {
  const auto patch = static_cast<double>(m.patch_size);
  const auto width = static_cast<double>(m.embed_dim);
  const double parameters = patch * 4 * std::max(m.components, 1);
  const double rows = s.variates * s.tokens;
  const double of_row = 4 * patch + 6 * width + 1 + m.mlp_hidden_dim + patch / element;
  const double of_variate = width + 2 * parameters + 5 * patch + (eager ? patch * width : 0);
  const double cached = (rows + s.variates * (s.patches - 1)) * width * 2 * m.num_layers;
  const double covariates = s.variates * s.patches * patch;
  constexpr double kStates = 1024, kArrays = 4096;  // of a variate's scaler; of alignment
  return element * (rows * of_row + s.variates * of_variate + cached + covariates) +
         s.variates * kStates + kArrays + 128.0 * m.num_layers;
}

double result_bytes(const Shape& s, const ForecastOptions& o, const ModelInfo& m) {
  const double cells = s.variates * s.horizon;
  double bytes = cells * 4 * (4 + static_cast<double>(o.levels.size()));
  const bool drawn = o.keep_samples || s.patches > 1 || o.quantiles_from == QuantilesFrom::samples;
  if (drawn) bytes += cells * 4 * s.trajectories;
  if (o.keep_parameters) bytes += cells * 8 * (4 * std::max(m.components, 1) + 2);
  return bytes;
}

}  // namespace

double tokens_of(const Request& request, const ModelInfo& model, bool eager) {
  const Shape s = shape_of(request, model);
  const bool drawn = s.patches > 1 || request.options.quantiles_from == QuantilesFrom::samples;
  const double contexts = eager && drawn ? s.trajectories : 1;
  return s.variates * (contexts * s.tokens + (s.patches - 1) * s.trajectories);
}

std::uint64_t least_bytes(const Request& request, const ModelInfo& model, std::size_t element,
                          bool eager) {
  const Shape s = shape_of(request, model);
  const double bytes = working_bytes(s, model, static_cast<double>(element), eager) +
                       result_bytes(s, request.options, model);
  constexpr double kMost = 9e18;
  return static_cast<std::uint64_t>(std::min(bytes, kMost));
}

}  // namespace toto
