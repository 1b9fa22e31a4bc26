// SPDX-License-Identifier: Apache-2.0
#include "models/toto1/workspace.h"

#include <algorithm>

namespace toto {
namespace {

/// Where the tables lie.
struct Tables {
  View cosine, sine, factor;  // [positions][d/2], the last of twice as many
  std::uint8_t* ones;
  std::size_t bytes;
  Tables(const Toto1& net, const Capacity& c, std::byte* base) {
    Offsets offsets;
    const auto place = [&](std::size_t size) {
      const std::size_t at = offsets.take(size);
      return base == nullptr ? nullptr : base + at;
    };
    const auto table = [&](std::int64_t rows) {
      View v{nullptr, net.backend().element_type(), net.config().head_dim() / 2,
             static_cast<std::int32_t>(rows)};
      v.data = place(static_cast<std::size_t>(v.bytes()));
      return v;
    };
    cosine = table(c.of[kPositions]);
    sine = table(c.of[kPositions]);
    factor = table(2 * c.of[kPositions]);
    const auto masks = static_cast<std::size_t>(c.of[kLanes] * net.patch());
    ones = reinterpret_cast<std::uint8_t*>(place(masks));
    bytes = offsets.used();
  }
};

}  // namespace

std::unique_ptr<Toto1Workspace> lay_out(const Toto1& net, const Capacity& c, std::byte* base) {
  const ElementType type = net.backend().element_type();
  const Toto1Config& config = net.config();
  const std::int64_t patch = config.patch_size;
  const std::int64_t width = config.embed_dim;
  const std::int64_t params = patch * 4 * config.components;
  const std::int64_t rows = c.of[kRows];
  const std::int64_t lanes = c.of[kLanes];
  const std::int64_t context_lanes = c.of[kContextLanes];
  Pieces pieces(base);
  const auto values = [&](std::int64_t count, std::int64_t columns) {
    return pieces.take(type, count, columns);
  };

  auto w = std::make_unique<Toto1Workspace>();
  w->capacity = c;
  w->x = values(type == ElementType::f32 ? 0 : rows, patch);
  w->loc = values(rows, patch);
  w->scale = values(rows, patch);
  w->act.scaled = values(rows, patch);
  w->act.hidden = values(rows, width);
  w->act.normed = values(rows, width + 1);
  w->act.qkv = values(rows, 3 * width);
  w->act.attended = values(rows, width);
  w->act.gated = values(rows, config.mlp_hidden_dim);
  w->act.last = values(lanes, width);
  if (!net.execution().fold_head) w->act.unembedded = values(lanes, patch * width);
  w->act.params = values(lanes, params);
  w->lane_loc = values(lanes, patch);
  w->lane_scale = values(lanes, patch);
  w->y = values(lanes, patch);
  w->context_params = values(context_lanes, params);
  w->context_loc = values(context_lanes, patch);
  w->context_scale = values(context_lanes, patch);
  const auto state_bytes = static_cast<std::int64_t>(sizeof(ScalerState));
  w->context_state = reinterpret_cast<ScalerState*>(pieces.take(context_lanes * state_bytes));
  w->state = reinterpret_cast<ScalerState*>(pieces.take(lanes * state_bytes));
  const std::int64_t kv_rows = (c.of[kKvElements] + config.head_dim() - 1) / config.head_dim();
  for (std::int32_t i = 0; i < net.time_layers(); ++i) {
    if (i > 0 && c.of[kDecodes] == 0) {
      w->kv.push_back(w->kv.front());
      continue;
    }
    const View keys = values(kv_rows, config.head_dim());
    w->kv.push_back({keys, values(kv_rows, config.head_dim())});
  }
  const std::int64_t paths = c.of[kPathRows];
  w->path_params = values(paths, params);
  if (!net.execution().fold_head) w->path_unembedded = values(paths > 0 ? 1 : 0, patch * width);
  w->path_scores = reinterpret_cast<double*>(
      pieces.take(paths * patch * static_cast<std::int64_t>(sizeof(double))));
  w->rho = reinterpret_cast<float*>(pieces.take(
      paths > 0 ? context_lanes * patch * static_cast<std::int64_t>(sizeof(float)) : 0));
  w->bytes = pieces.used();
  return w;
}

Capacity toto1_tables_of(const Capacity& capacity) {
  Capacity tables;
  tables.of[kPositions] = capacity.of[kPositions];
  tables.of[kLanes] = capacity.of[kLanes];
  return tables;
}

std::size_t toto1_table_bytes(const Toto1& net, const Capacity& tables_for) {
  return Tables(net, tables_for, nullptr).bytes;
}

void fill_toto1_tables(const Toto1& net, const Capacity& tables_for, std::byte* tables) {
  const Tables at(net, tables_for, tables);
  const Backend& be = net.backend();
  const RotaryTables rotary =
      rotary_tables(static_cast<std::int32_t>(tables_for.of[kPositions]), net.config().head_dim());
  be.upload(std::span<const double>(rotary.cosine), at.cosine);
  be.upload(std::span<const double>(rotary.sine), at.sine);
  be.upload(std::span<const double>(rotary.factor), at.factor);
  const std::vector<std::uint8_t> ones(
      static_cast<std::size_t>(tables_for.of[kLanes] * net.patch()), 1);
  be.upload_bytes(ones, at.ones);
}

void place_toto1_tables(const Toto1& net, const Capacity& tables_for, std::byte* tables,
                        Toto1Workspace& workspace) {
  if (tables == nullptr) return;
  const Tables at(net, tables_for, tables);
  workspace.rotary = {at.cosine, at.sine, at.factor,
                      static_cast<std::int32_t>(tables_for.of[kPositions])};
  workspace.ones = at.ones;
}

}  // namespace toto
