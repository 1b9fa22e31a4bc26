// SPDX-License-Identifier: Apache-2.0
// The generation program of Toto 1 (spec A11): prefill, first patch, further patches, for all
// trajectories of a ragged micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "models/executor.h"
#include "models/network.h"
#include "models/toto1/toto1.h"
#include "models/toto1/workspace.h"

namespace toto {

class Toto1Program final : public Program {
 public:
  explicit Toto1Program(const Toto1& net);

  void check(const Item& item) const override;
  [[nodiscard]] std::int64_t prefill_rows(const Item& item, const MicroBatch& batch) const override;
  [[nodiscard]] std::int64_t tokens(const Item& item, const MicroBatch& batch) const override;
  [[nodiscard]] std::int32_t at_once(const MicroBatch& batch, const Limits& limits) const override;
  [[nodiscard]] std::int32_t min_at_once(const MicroBatch& batch) const override;
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
  void stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in, std::size_t offset,
             bool replay) override;
  void run(Executor& executor, const MicroBatch& batch, const ProgramKey& key,
           const Workspace& workspace) override;
  [[nodiscard]] Cost take_cost() override;

 private:
  /// Where inputs lie in the staging buffer, in bytes.
  struct Inputs {
    std::size_t x = 0, mask = 0, covariates = 0;
    std::size_t context = 0, last = 0, source = 0, further = 0;  // images of batches
    std::size_t further_bytes = 0;                               // of one of them
    std::int32_t further_images = 0;
    std::size_t end = 0;
  };
  [[nodiscard]] Inputs inputs(const ProgramKey& key, std::size_t at) const;

  /// prefill_rows() of one lane.
  [[nodiscard]] std::int64_t prefill_tokens(const Item& item, const MicroBatch& batch) const;

  // staging.cpp: describing calls, and what is sent to the backend
  void describe_context(const MicroBatch& batch, std::int32_t first_sample,
                        std::int32_t trajectories, std::int32_t generated);
  /// Whether that is within Batch::keys.
  [[nodiscard]] bool sees_at_most(std::int32_t keys) const;
  void describe_source(const MicroBatch& batch);
  void describe_further(const MicroBatch& batch, std::int32_t iteration, std::int32_t first_sample);
  void stage_values(const MicroBatch& batch, std::int32_t generated, const Staging& in,
                    const Inputs& at) const;
  void stage_covariates(const MicroBatch& batch, const Staging& in, const Inputs& at);
  void write(const Batch& batch, const Staging& in, std::size_t at, std::int64_t blocks,
             std::int64_t ids) const;

  // program.cpp: the operations
  struct Run;  // what every part of run() looks at
  void restage(Run& run, std::int32_t first_sample, std::int32_t generated);
  void prefill(Run& run, bool raw, bool observed, bool paths) const;
  void predict(Run& run, const Batch& further, bool from_context) const;
  void first_statistics(Run& run) const;
  Batch further_batch(Run& run, std::int32_t pass, std::int32_t patch);

  // probe.cpp: for those who look inside
  void show_parameters(Run& run, std::int32_t iteration, std::int32_t first_sample,
                       bool from_context) const;
  void show_values(Run& run, std::int32_t iteration, std::int32_t first_sample) const;
  void take_generated(Run& run, std::int32_t iteration);
  void force(Run& run, std::int32_t iteration, std::int32_t first_sample) const;

  const Toto1& net_;
  std::int32_t patch_;   // P
  std::int32_t labels_;  // 1: every variate starts with a label token
  bool share_;           // one prefill for all trajectories

  std::vector<Block> context_blocks_, last_blocks_, source_blocks_, further_blocks_;
  std::vector<std::int32_t> context_ids_, last_ids_;
  Batch context_, last_, source_, further_;
  std::vector<std::int64_t> covariates_;  // element offset of each series' covariates; -1: none
  std::vector<double> generated_;         // where the context is recomputed: [lane][R*P]
  std::int64_t sequences_ = 0;            // trajectories of all series in the call that decodes
  Cost cost_;
};

}  // namespace toto
