// SPDX-License-Identifier: Apache-2.0
// The generation loop (spec A11) over ragged batches: context, first patch, further patches, for
// all trajectories. What comes out goes to a Sink, which makes statistics, files or comparisons of
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "forecast/prepare.h"
#include "forecast/workspace.h"
#include "model/toto1.h"

namespace toto {

/// Trajectories `first_sample` .. of one series at one iteration.
struct PatchView {
  std::size_t series = 0;      // index in the request
  std::int32_t iteration = 0;  // patch number, from 0
  std::int32_t first_sample = 0;
  std::int32_t trajectories = 0;  // N; 1 for parameters that all trajectories share
  std::int32_t variates = 0;      // V
  std::int32_t patch = 0;         // P
  std::int32_t steps = 0;         // steps of the patch that were asked for
  std::int32_t components = 0;    // K
};

class Sink {
 public:
  virtual ~Sink() = default;
  [[nodiscard]] virtual bool wants_parameters(std::int32_t iteration) const = 0;
  /// params [N][V][steps][4][K] (df, loc, scale, probability); loc, scale [N][V][P].
  virtual void parameters(const PatchView& at, std::span<const double> params,
                          std::span<const double> loc, std::span<const double> scale) = 0;
  /// y [N][V][P] in data units.
  virtual void values(const PatchView& at, std::span<const double> y) = 0;
  /// Everything about this series has been said.
  virtual void finished(std::size_t /*series*/) {}
  /// Called between units of work; throws to stop.
  virtual void progress(std::size_t /*done*/, std::size_t /*total*/) {}
};

struct Generation {
  std::size_t horizon = 0;
  std::int32_t trajectories = 0;  // 0: only the parameters of the first patch, horizon <= P
  bool mean = false;              // feed the mixture mean back instead of draws
  bool cached = true;             // spec A9
  std::uint64_t seed = 0;
  Align align = Align::pad;
  /// Teacher forcing: for each series [trajectories][V][R*P] values that take the place of draws.
  /// Empty: none.
  std::vector<std::span<const float>> forced;
  /// Sees the network's rows of the context call.
  LayerObserver observer;
  /// Sees scaled statistics of the context call: loc, scale [rows][P].
  std::function<void(std::span<const double> loc, std::span<const double> scale)> statistics;
};

/// How much is done at once. None of these changes a result.
struct Limits {
  std::int64_t rows = 4096;           // tokens of one call
  std::int64_t kv_bytes = 1LL << 30;  // of all caches
};

class Engine {
 public:
  explicit Engine(const Toto1& net) : net_(net) {}

  void run(std::span<const Series> series, const Generation& generation, const Limits& limits,
           Sink& sink);

 private:
  struct Chunk;  // the series that go through the network together
  void run_chunk(Chunk& chunk, const Generation& g, const Limits& limits, Sink& sink);
  void reserve(const Chunk& chunk, std::int32_t batch);
  void stage_context(const Chunk& chunk, std::int32_t trajectories, std::int32_t generated);
  void describe_next(const Chunk& chunk, const Generation& g, std::int32_t iteration,
                     std::int32_t first_sample, std::int32_t trajectories);
  void run_context(const Chunk& chunk, const Generation& g, std::int32_t trajectories,
                   std::int32_t iteration);
  void run_next();
  void predict(const Chunk& chunk, const Generation& g, std::int32_t iteration,
               std::int32_t first_sample, std::int32_t trajectories, bool from_context);
  void emit_parameters(const Chunk& chunk, std::int32_t iteration, std::int32_t first_sample,
                       std::int32_t trajectories, bool from_context, Sink& sink);
  void emit_values(const Chunk& chunk, std::int32_t iteration, std::int32_t first_sample,
                   std::int32_t trajectories, Sink& sink);

  const Toto1& net_;
  std::unique_ptr<Workspace> memory_;
  std::int32_t steps_ = 0;  // steps of the patch being predicted

  // The context call, its last tokens, and the call of one further patch.
  std::vector<Block> context_blocks_, context_last_blocks_, next_blocks_, next_last_blocks_;
  std::vector<std::int32_t> context_ids_, last_ids_;
  Batch context_, context_last_, next_;

  std::vector<double> staging_;
  std::vector<std::uint8_t> mask_staging_;
  std::vector<double> generated_;  // eager, uncached: [lane][R*P] of the chunk
  std::vector<double> params_, loc_, scale_, y_;
  std::size_t done_ = 0, total_ = 0;
};

}  // namespace toto
