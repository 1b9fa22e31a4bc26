// SPDX-License-Identifier: Apache-2.0
// The generation program of Toto 2.0: one pass or blocks (generation.h), and what is made of the
// nine quantiles of every step.
//
// The distribution of a step is linear between its quantiles and constant beyond them
// (statistics/knots.h). Mean, deviation and levels follow from it without sampling. Trajectories
// draw every step on its own: the model says nothing about how steps depend on each other.
#pragma once

#include <vector>

#include "models/executor.h"
#include "models/network.h"
#include "models/toto2/generation.h"

namespace toto {

class Toto2Program final : public Program, private toto2::Sink {
 public:
  explicit Toto2Program(const Toto2& net) : net_(net), generation_(net) {}

  [[nodiscard]] std::int64_t prefill_rows(const Item& item, const MicroBatch& batch) const override;
  [[nodiscard]] std::int64_t tokens(const Item& item, const MicroBatch& batch) const override;
  [[nodiscard]] std::int32_t at_once(const MicroBatch& batch, const Limits& limits) const override;
  [[nodiscard]] Capacity need(const MicroBatch& batch) const override;
  [[nodiscard]] std::span<const char* const> dimensions() const override;
  [[nodiscard]] std::unique_ptr<Workspace> lay_out(const Capacity& capacity, std::byte* base,
                                                   const Capacity& tables_for,
                                                   std::byte* tables) const override;
  [[nodiscard]] Capacity tables_of(const Capacity& capacity) const override;
  [[nodiscard]] std::size_t table_bytes(const Capacity& tables_for) const override;
  void fill_tables(const Capacity& tables_for, std::byte* tables) const override;

  void size(const MicroBatch& batch, ProgramKey& key) const override;
  void stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in, std::size_t at,
             bool replay) override;
  void run(Executor& executor, const MicroBatch& batch, const ProgramKey& key,
           const Workspace& workspace) override;
  [[nodiscard]] Cost take_cost() override;

 private:
  /// A request, and what it refers to that is not in the item.
  struct Held {
    toto2::Request request;
    std::vector<std::int32_t> groups;
    std::vector<float> known;
    std::vector<std::uint8_t> known_mask;
  };
  void take(const Item& item, Held& held) const;
  void take_covariates(const Item& item, Held& held) const;

  void block(const toto2::Block& block) override;
  [[nodiscard]] bool wants_statistics() const override { return key_->parameter_floats > 0; }
  void put_step(const Item& item, std::int64_t lane, std::int32_t variate, std::int32_t step,
                std::span<const double> knots);
  void sample_statistics(const Executor& executor, const MicroBatch& batch);

  const Toto2& net_;
  toto2::Generation generation_;
  std::vector<Held> held_;  // only grows
  std::vector<toto2::Request> requests_;
  std::vector<std::int64_t> lanes_;  // first of each item
  std::vector<Block> sources_;
  Cost cost_;
  // Of the run.
  const MicroBatch* batch_ = nullptr;
  const ProgramKey* key_ = nullptr;
  ResultPointers out_;
};

}  // namespace toto
