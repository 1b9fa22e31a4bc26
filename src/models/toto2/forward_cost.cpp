// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/forward_cost.h"

namespace toto {

Cost forward_cost(const Toto2& net, const CallWork& all, const CallWork& wanted) {
  const Toto2Config& c = net.config();
  const double width = c.d_model;
  const double patch = c.patch_size;
  const HeadShape shape = net.heads();
  const double weight_size = net.backend().weight_size();
  Cost cost;
  const auto product = [&](double rows, double out, double in, double size) {
    cost.operations += 2 * rows * out * in;
    cost.weight_bytes += out * in * size;
  };
  const double end_size = net.ops().exact_ends(c.d_model) ? sizeof(float) : weight_size;
  const auto residual_mlp = [&](double rows, double out, double in) {
    product(rows, 4 * width, in, end_size);
    product(rows, out, 4 * width, end_size);
    product(rows, out, in, end_size);
  };
  residual_mlp(all.rows, width, 2 * patch);
  std::int32_t last_time_layer = -1;
  for (std::int32_t i = 0; i < c.num_layers; ++i) {
    if (!c.is_variate_layer(i)) last_time_layer = i;
  }
  const CallWork* call = net.trim() && last_time_layer < 0 ? &wanted : &all;
  for (std::int32_t i = 0; i < c.num_layers; ++i) {
    const bool skips = net.ops().skips_unread();
    if (skips && c.is_variate_layer(i) && call->variate_pairs == call->rows) {
      product(call->rows, shape.groups * shape.v, width, weight_size);
    } else if (skips && net.trim() && i == last_time_layer && 2 * wanted.rows <= all.rows) {
      product(all.rows, shape.row() - shape.heads * shape.qk, width, weight_size);
      product(wanted.rows, shape.heads * shape.qk, width, weight_size);
    } else {
      product(call->rows, shape.row(), width, weight_size);
    }
    if (net.trim() && i == last_time_layer) call = &wanted;
    const double pairs = c.is_variate_layer(i) ? call->variate_pairs : call->time_pairs;
    cost.operations += 2 * pairs * shape.heads * (shape.qk + shape.v);
    product(call->rows, width, shape.attended(), weight_size);
    product(call->rows, 2.0 * c.d_ff, width, weight_size);
    product(call->rows, width, c.d_ff, weight_size);
  }
  residual_mlp(wanted.rows, kQuantiles * patch, width);
  return cost;
}

}  // namespace toto
