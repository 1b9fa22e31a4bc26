// SPDX-License-Identifier: Apache-2.0
#include "forecast/workspace.h"

#include <algorithm>
#include <cstring>

namespace toto {
namespace {

constexpr std::size_t kAlignment = 64;

/// Hands out offsets from one block; with a null base it only counts.
class Table {
 public:
  explicit Table(void* base) : base_(static_cast<std::byte*>(base)) {}
  void* take(std::int64_t bytes) {
    const std::size_t at = used_;
    used_ += (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    return base_ == nullptr ? nullptr : base_ + at;
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

std::size_t lay_out(const Toto1& net, const Capacity& c, void* base, Workspace* w) {
  const auto element = static_cast<std::int64_t>(net.backend().element_size());
  const Toto1Config& config = net.config();
  const std::int64_t patch = config.patch_size;
  const std::int64_t width = config.embed_dim;
  const std::int64_t params = patch * 4 * config.components;
  const std::int64_t half = config.head_dim() / 2;
  Table table(base);
  const auto values = [&](std::int64_t count) { return table.take(count * element); };

  void* const x = values(c.rows * patch);
  void* const mask = table.take(c.rows * patch);
  void* const ones = table.take(c.lanes * patch);
  void* const loc = values(c.rows * patch);
  void* const scale = values(c.rows * patch);
  Activations a;
  a.scaled = values(c.rows * patch);
  a.hidden = values(c.rows * width);
  a.normed = values(c.rows * width);
  a.qkv = values(c.rows * 3 * width);
  a.attended = values(c.rows * width);
  a.gated = values(c.rows * config.mlp_hidden_dim);
  a.last = values(c.lanes * width);
  if (!net.execution().fold_head) a.unembedded = values(c.lanes * patch * width);
  a.params = values(c.lanes * params);
  void* const lane_loc = values(c.lanes * patch);
  void* const lane_scale = values(c.lanes * patch);
  void* const y = values(c.lanes * patch);
  void* const context_params = values(c.context_lanes * params);
  void* const context_loc = values(c.context_lanes * patch);
  void* const context_scale = values(c.context_lanes * patch);
  void* const covariates = values(c.covariates);
  const auto state_bytes = static_cast<std::int64_t>(sizeof(ScalerState));
  void* const context_state = table.take(c.context_lanes * state_bytes);
  void* const state = table.take(c.lanes * state_bytes);
  std::vector<KvLayer> kv;
  for (std::int32_t i = 0; i < net.time_layers(); ++i) {
    if (i > 0 && c.one_patch) {
      kv.push_back(kv.front());
      continue;
    }
    void* const keys = values(c.kv_elements);
    kv.push_back({keys, values(c.kv_elements)});
  }
  void* const cosine = values(c.positions * half);
  void* const sine = values(c.positions * half);
  void* const factor = values(2 * c.positions * half);

  if (w != nullptr) {
    w->x = x;
    w->mask = static_cast<std::uint8_t*>(mask);
    w->ones = static_cast<std::uint8_t*>(ones);
    w->loc = loc;
    w->scale = scale;
    w->act = a;
    w->lane_loc = lane_loc;
    w->lane_scale = lane_scale;
    w->y = y;
    w->context_params = context_params;
    w->context_loc = context_loc;
    w->context_scale = context_scale;
    w->covariates = covariates;
    w->context_state = static_cast<ScalerState*>(context_state);
    w->state = static_cast<ScalerState*>(state);
    w->kv = std::move(kv);
    w->rotary = {cosine, sine, factor, c.positions};
  }
  return table.used();
}

}  // namespace

bool Capacity::holds(const Capacity& o) const {
  return rows >= o.rows && context_lanes >= o.context_lanes && lanes >= o.lanes &&
         kv_elements >= o.kv_elements && covariates >= o.covariates && positions >= o.positions &&
         (!one_patch || o.one_patch);
}

std::size_t Workspace::bytes_for(const Toto1& net, const Capacity& capacity) {
  return lay_out(net, capacity, nullptr, nullptr);
}

Workspace::Workspace(const Toto1& net, const Capacity& capacity) : net_(net), capacity_(capacity) {
  bytes_ = bytes_for(net, capacity);
  arena_ = net.backend().allocate(bytes_);
  lay_out(net, capacity, arena_, this);
  std::memset(ones, 1, static_cast<std::size_t>(capacity.lanes * net.config().patch_size));
  const RotaryTables tables = rotary_tables(capacity.positions, net.config().head_dim());
  net.backend().upload(tables.cosine, const_cast<void*>(rotary.cosine));
  net.backend().upload(tables.sine, const_cast<void*>(rotary.sine));
  net.backend().upload(tables.factor, const_cast<void*>(rotary.factor));
}

Workspace::~Workspace() { net_.backend().release(arena_); }

}  // namespace toto
