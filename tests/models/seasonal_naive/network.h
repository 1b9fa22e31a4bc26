// SPDX-License-Identifier: Apache-2.0
// The least network there can be: every step is the value one season before it, with nine quantiles
// around it.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "models/checkpoint/weights.h"
#include "models/knot_results.h"
#include "models/network.h"

namespace toto::test {

struct SeasonalNaive final : Network {
  SeasonalNaive(std::int32_t patch, std::int32_t season, const WeightTable& weights,
                std::shared_ptr<Backend> backend)
      : patch_(patch), season_(season), backend_(std::move(backend)) {
    weights.read("spread", {&spread_, 1});
  }
  [[nodiscard]] Backend& backend() const override { return *backend_; }
  [[nodiscard]] std::int32_t patch() const override { return patch_; }
  [[nodiscard]] std::int32_t exact_steps(std::int32_t horizon) const override { return horizon; }
  [[nodiscard]] std::unique_ptr<Program> program() const override;

  /// Step `step` after the context of a variate: the last observed value at its place in a season.
  [[nodiscard]] double value(const Prepared& s, std::int32_t variate, std::int32_t step) const {
    const std::int32_t steps = s.tokens * patch_;
    for (std::int32_t t = steps - season_ + step % season_; t >= 0; t -= season_) {
      const auto at = static_cast<std::size_t>(variate * steps + t);
      if (s.mask[at] != 0) return s.values[at];
    }
    return 0;
  }

  std::int32_t patch_, season_;
  float spread_ = 0;  // from quantile to quantile
  std::shared_ptr<Backend> backend_;
};

struct SeasonalNaiveProgram final : Program {
  explicit SeasonalNaiveProgram(const SeasonalNaive& net) : net_(net) {}
  [[nodiscard]] std::int64_t prefill_rows(const Item& item, const MicroBatch&) const override {
    return std::int64_t{item.variates} * item.tokens;
  }
  [[nodiscard]] std::int32_t at_once(const MicroBatch& b, const Limits&) const override {
    return std::max(b.trajectories, 1);
  }
  void size(const MicroBatch& batch, ProgramKey& key) const override {
    KnotResults::size(batch, net_.patch(), key);
  }
  [[nodiscard]] std::size_t input_bytes(const ProgramKey& key) const override {
    return KnotResults::input_bytes(key);
  }
  void stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in, std::size_t at,
             bool /*replay*/) override {
    results_.stage(batch, key, in, at);
  }
  void run(Executor& executor, const MicroBatch& batch, const ProgramKey& key,
           const Workspace& /*workspace*/) override {
    results_.begin(executor, batch, key, net_.patch(), executor.in_at);
    for (std::size_t i = 0; i < batch.items.size(); ++i) {
      const Item& item = batch.items[i];
      for (std::int32_t v = 0; v < item.variates; ++v) {
        for (std::int32_t t = 0; t < item.horizon; ++t) {
          std::array<double, 9> knots = {};
          knots.fill(net_.value(*item.prepared, v, t));
          for (int q = 0; q < 9; ++q) knots[q] += (q - 4) * net_.spread_;
          results_.put(i, v, t, knots, knots[4], net_.spread_);
        }
      }
    }
    results_.finish(executor);
  }

  const SeasonalNaive& net_;
  KnotResults results_;
};

inline std::unique_ptr<Program> SeasonalNaive::program() const {
  return std::make_unique<SeasonalNaiveProgram>(*this);
}

}  // namespace toto::test
