// SPDX-License-Identifier: Apache-2.0
// The generation program of Toto 2.0: one pass or blocks (generation.h), and what is made of the
// nine quantiles of every step (models/knot_results.h).
#pragma once

#include <vector>

#include "models/executor.h"
#include "models/knot_results.h"
#include "models/network.h"
#include "models/toto2/generation.h"

namespace toto {

class Toto2Program final : public Program, private toto2::Sink {
 public:
  explicit Toto2Program(const Toto2& net) : net_(net), generation_(net) {}

  void check(const Item& item) const override;
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

  [[nodiscard]] const char* uncapturable(const MicroBatch& batch) const override;
  void size(const MicroBatch& batch, ProgramKey& key) const override;
  [[nodiscard]] std::size_t input_bytes(const ProgramKey& key) const override;
  void stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in, std::size_t at,
             bool replay) override;
  void run(Executor& executor, const MicroBatch& batch, const ProgramKey& key,
           const Workspace& workspace) override;
  [[nodiscard]] Cost take_cost() override;

 private:
  /// What a request refers to that is not in the item.
  struct Held {
    std::vector<std::int32_t> groups;
    std::vector<float> known;
    std::vector<std::uint8_t> known_mask;
    std::vector<double> feedback;
  };
  void take(const Item& item, bool coherent, Held& held, toto2::Request& r) const;
  void take_covariates(const Item& item, Held& held, toto2::Request& r) const;

  /// Tokens that feed the head, in all lanes of an item.
  [[nodiscard]] std::int64_t wanted_of(const Item& item, const MicroBatch& batch) const;
  /// Calls of the network: the most blocks of an item.
  [[nodiscard]] std::int32_t calls_of(const MicroBatch& batch) const;
  [[nodiscard]] static toto2::BatchSizes room(const ProgramKey& key);

  [[nodiscard]] KnotOutputs outputs() const override { return results_.outputs(); }
  void predicted(std::int32_t index, const Call& wanted, const SeriesArrays& arrays,
                 const ConstView& quantiles, const KnotOutputs& to) override;
  [[nodiscard]] bool wants_blocks() const override { return probed_; }
  [[nodiscard]] bool wants_statistics() const override { return probed_; }
  void block(const toto2::Block& block) override;

  const Toto2& net_;
  toto2::Generation generation_;
  std::vector<Held> held_;  // only grows
  std::vector<toto2::Request> requests_;
  KnotResults results_;
  Cost cost_;
  const toto2::Toto2Workspace* memory_ = nullptr;  // of the run
  const MicroBatch* batch_ = nullptr;              // likewise
  bool probed_ = false;                            // likewise: somebody looks inside
};

}  // namespace toto
