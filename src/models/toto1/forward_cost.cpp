// SPDX-License-Identifier: Apache-2.0
#include "models/toto1/forward_cost.h"

namespace toto {
namespace {

/// Query-key and value products of time attention: what each new token sees.
double time_attention(const Batch& batch, double width, bool last_only) {
  double pairs = 0;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    const double before = b.prefix + b.suffix;
    const double tokens = b.tokens;
    const double seen = last_only ? before + tokens : tokens * before + tokens * (tokens + 1) / 2;
    pairs += static_cast<double>(b.lanes()) * seen;
  }
  return 4 * pairs * width;
}

double variate_attention(const Batch& batch, double width, bool last_only) {
  double pairs = 0;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    pairs += static_cast<double>(b.lanes()) * b.variates * (last_only ? 1 : b.tokens);
  }
  return 4 * pairs * width;
}

}  // namespace

Cost forward_cost(const Toto1Config& config, const Execution& execution, const Batch& all,
                  std::int32_t steps, double weight_size) {
  const double width = config.embed_dim;
  const double hidden = config.mlp_hidden_dim;
  const double patch = config.patch_size;
  const double out = 4.0 * config.components;
  Cost cost;
  const auto product = [&](double rows, double n, double k) {
    cost.operations += 2 * rows * n * k;
    cost.weight_bytes += n * k * weight_size;
  };
  std::int32_t last_time_layer = -1;
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    if (!config.is_space_layer(i)) last_time_layer = i;
  }
  const double of_variates[] = {variate_attention(all, width, false),
                                variate_attention(all, width, true)};
  const double of_time[] = {time_attention(all, width, false), time_attention(all, width, true)};
  product(all.rows, width, patch);
  double rows = all.rows;
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    product(rows, 3 * width, width);
    const bool trimmed = rows != all.rows;
    if (config.is_space_layer(i)) {
      cost.operations += of_variates[trimmed ? 1 : 0];
    } else {
      const bool trim = execution.trim && i == last_time_layer;
      cost.operations += of_time[trim ? 1 : 0];
      if (trim) rows = all.lanes;
    }
    product(rows, width, width);
    product(rows, 2 * hidden, width);
    product(rows, width, hidden);
  }
  if (execution.fold_head) {
    product(all.lanes, steps * out, width);
  } else {
    product(all.lanes, steps * width, width);
    product(static_cast<double>(all.lanes) * steps, out, width);
  }
  return cost;
}

}  // namespace toto
