// SPDX-License-Identifier: Apache-2.0
#include "engine/workspace.h"

namespace toto {
namespace {

constexpr std::size_t kAlignment = 64;

/// Hands out pieces of one block; with a null base it only counts.
class Pieces {
 public:
  explicit Pieces(void* base) : base_(static_cast<std::byte*>(base)) {}
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

}  // namespace

bool Capacity::holds(const Capacity& o) const {
  return rows >= o.rows && context_lanes >= o.context_lanes && lanes >= o.lanes &&
         kv_elements >= o.kv_elements && covariates >= o.covariates && positions >= o.positions &&
         (!one_patch || o.one_patch);
}

Workspace lay_out(const Toto1& net, const Capacity& c, void* base) {
  const auto element = static_cast<std::int64_t>(net.backend().element_size());
  const Toto1Config& config = net.config();
  const std::int64_t patch = config.patch_size;
  const std::int64_t width = config.embed_dim;
  const std::int64_t params = patch * 4 * config.components;
  Pieces pieces(base);
  const auto values = [&](std::int64_t count) { return pieces.take(count * element); };

  Workspace w;
  w.capacity = c;
  w.x = values(c.rows * patch);
  w.mask = static_cast<std::uint8_t*>(pieces.take(c.rows * patch));
  w.loc = values(c.rows * patch);
  w.scale = values(c.rows * patch);
  w.act.scaled = values(c.rows * patch);
  w.act.hidden = values(c.rows * width);
  w.act.normed = values(c.rows * (width + 1));
  w.act.qkv = values(c.rows * 3 * width);
  w.act.attended = values(c.rows * width);
  w.act.gated = values(c.rows * config.mlp_hidden_dim);
  w.act.last = values(c.lanes * width);
  if (!net.execution().fold_head) w.act.unembedded = values(c.lanes * patch * width);
  w.act.params = values(c.lanes * params);
  w.lane_loc = values(c.lanes * patch);
  w.lane_scale = values(c.lanes * patch);
  w.y = values(c.lanes * patch);
  w.context_params = values(c.context_lanes * params);
  w.context_loc = values(c.context_lanes * patch);
  w.context_scale = values(c.context_lanes * patch);
  w.covariates = values(c.covariates);
  const auto state_bytes = static_cast<std::int64_t>(sizeof(ScalerState));
  w.context_state = static_cast<ScalerState*>(pieces.take(c.context_lanes * state_bytes));
  w.state = static_cast<ScalerState*>(pieces.take(c.lanes * state_bytes));
  for (std::int32_t i = 0; i < net.time_layers(); ++i) {
    if (i > 0 && c.one_patch) {
      w.kv.push_back(w.kv.front());
      continue;
    }
    void* const keys = values(c.kv_elements);
    w.kv.push_back({keys, values(c.kv_elements)});
  }
  w.bytes = pieces.used();
  return w;
}

}  // namespace toto
