// SPDX-License-Identifier: Apache-2.0
// The generation loop (spec A11) over ragged batches: context, first patch, further patches, for
// all trajectories. What comes out goes to a Sink, which makes statistics, files or comparisons of
// it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/plan_table.h"
#include "engine/prepare.h"
#include "engine/recordings.h"
#include "models/toto1/cost.h"
#include "models/toto1/toto1.h"

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

/// What a sink wants of whole series, for a backend that can form it itself.
struct WantedStatistics {
  std::span<const double> levels;  // ascending
  std::size_t exact_steps = 0;     // the first so many from mixtures
  bool sampled = false;            // the steps after them from trajectories
  bool samples = false;            // the trajectories themselves
  bool parameters = false;         // of every step
};

/// Statistics of one series: mean, standard deviation, a quantile for each level.
struct SeriesResults {
  std::size_t series = 0;          // index in the request
  std::size_t stride = 0;          // from step to step of `exact` and `sampled`
  std::size_t exact_steps = 0;     // E: the first so many steps, or more than were asked for
  std::size_t horizon = 0;         // H: steps, or more than were asked for
  std::size_t trajectories = 0;    // N
  std::span<const float> exact;    // [V][E][stride]; empty: not wanted
  std::span<const float> sampled;  // [V][H - E][stride]; empty: not wanted
  std::span<const float> samples;  // [V][H][N]; empty: not wanted
};

class Sink {
 public:
  virtual ~Sink() = default;
  /// What would do instead of parameters() and values(); nullptr: nothing.
  [[nodiscard]] virtual const WantedStatistics* wanted() const { return nullptr; }
  /// Called, for what was wanted, instead of parameters() and values().
  virtual void results(const SeriesResults& /*results*/) {}
  /// Series `first` .. `first + count - 1` go through the network together, from here to finish().
  virtual void begin(std::size_t /*first*/, std::size_t /*count*/) {}
  [[nodiscard]] virtual bool wants_parameters(std::int32_t iteration) const = 0;
  /// params [N][V][steps][4][K] (df, loc, scale, probability); loc, scale [N][V][P].
  virtual void parameters(const PatchView& at, std::span<const double> params,
                          std::span<const double> loc, std::span<const double> scale) = 0;
  /// y [N][V][P] in data units.
  virtual void values(const PatchView& at, std::span<const double> y) = 0;
  /// Everything about the series named by begin() has been said.
  virtual void finish() {}
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
  bool time_device = false;
  /// Teacher forcing: for each series [trajectories][V][R*P] values that take the place of draws.
  /// Empty: none.
  std::vector<std::span<const float>> forced;
  /// Sees the network's rows of the context call.
  LayerObserver observer;
  /// Sees the statistics of the context call: loc, scale [rows][P].
  std::function<void(std::span<const double> loc, std::span<const double> scale)> statistics;
};

/// How much is done at once, where memory allows it. None of these changes a result.
struct Limits {
  std::int64_t rows = 4096;           // tokens of one call
  std::int64_t kv_bytes = 1LL << 30;  // of all caches
};

class Engine {
 public:
  /// `plans` may be shared with nothing else while a forecast runs.
  Engine(const Toto1& net, PlanTable& plans)
      : net_(net), plans_(plans), recordings_(net.backend(), plans.most_plans()) {}
  /// Whether forecasts are recorded where the backend can do that.
  void set_recording(bool recording) { recording_ = recording; }

  /// Throws what check_series throws for any series, before anything is computed; and Error:
  /// memory_limit (2), out_of_memory (70).
  void run(std::span<const Series> series, const Generation& generation, const Limits& limits,
           Sink& sink);

  void count(Counters& counters) const;
  [[nodiscard]] std::uint64_t graph_captures() const { return graph_captures_; }
  [[nodiscard]] std::uint64_t graph_fallbacks() const { return graph_fallbacks_; }

 private:
  /// The series that go through the network together.
  struct Chunk {
    std::size_t first = 0;  // index of the first series in the request
    std::size_t count = 0;
    std::int64_t variates = 0;
    std::int64_t context_rows = 0;  // of one trajectory's longest call on the context
    std::int32_t longest = 0;       // tokens of the longest context
  };
  enum class Kind { context, further };  // which call

  // engine.cpp: the loop
  void take(const Generation& g);
  [[nodiscard]] std::size_t chunk_size(std::span<const Series> series, const Generation& g,
                                       std::size_t first, const Limits& limits) const;
  void run_range(std::span<const Series> series, const Generation& g, const Limits& limits,
                 std::size_t first, std::size_t count, Sink& sink);
  bool run_chunk(std::span<const Series> series, const Generation& g, const Chunk& chunk,
                 std::int32_t batch, Sink& sink);
  [[nodiscard]] Chunk measure(std::span<const Series> series, std::size_t first,
                              std::size_t count) const;
  void add(const Series& s, Chunk& chunk) const;
  [[nodiscard]] Capacity need(std::span<const Series> series, const Chunk& chunk,
                              std::int32_t batch) const;
  [[nodiscard]] std::int32_t first_batch(const Chunk& chunk, const Generation& g,
                                         const Limits& limits) const;
  bool acquire(std::span<const Series> series, const Chunk& chunk, const Generation& g,
               std::int32_t& batch);
  [[noreturn]] void refuse(std::span<const Series> series, const Chunk& chunk) const;
  void generate(const Generation& g, const Chunk& chunk, std::int32_t batch, Sink& sink);
  void run_context(const Generation& g, std::int32_t trajectories, std::int32_t iteration);
  void run_further();
  void predict(const Generation& g, const Chunk& chunk, std::int32_t iteration,
               std::int32_t first_sample, std::int32_t trajectories, Kind from);

  // engine_recorded.cpp: the loop as a recording
  enum class Played { yes, impossible, no_memory };
  Played run_recorded(const Generation& g, const Chunk& chunk, std::int32_t batch, Sink& sink);
  [[nodiscard]] std::int32_t fewest_recorded(const Generation& g) const;
  [[nodiscard]] const char* unrecordable(const Generation& g, const WantedStatistics& wanted,
                                         std::int32_t passes);
  [[nodiscard]] RecordingKey key_of(const Generation& g, const Chunk& chunk, std::int32_t batch,
                                    const WantedStatistics& wanted) const;
  [[nodiscard]] Recorded* record(const Generation& g, const RecordingKey& key);
  void record_operations(const Generation& g, Recorded& r);
  [[nodiscard]] std::array<Awaited, 2> results_of(const Recorded& r, const Chunk& chunk,
                                                  const WantedStatistics& wanted) const;
  void write_inputs(const Generation& g, std::int32_t batch, const WantedStatistics& wanted,
                    const Recorded& r);
  void read_results(const Chunk& chunk, const WantedStatistics& wanted, const Recorded& r,
                    Sink& sink);

  // engine_batch.cpp: describing calls
  void describe_context(std::int32_t trajectories, std::int32_t generated);
  void stage_context(std::int32_t trajectories, std::int32_t generated);
  void stage_values(const Prepared& s, std::int32_t lane, std::int32_t trajectories,
                    std::int32_t generated);
  void describe_further(const Generation& g, std::int32_t iteration, std::int32_t first_sample,
                        std::int32_t trajectories);
  void stage_covariates();
  void upload_forced(const Generation& g, const Chunk& chunk, std::int32_t iteration,
                     std::int32_t first_sample, std::int32_t trajectories);

  // engine_emit.cpp: handing results out
  void emit_parameters(const Chunk& chunk, std::int32_t iteration, std::int32_t first_sample,
                       std::int32_t trajectories, Kind from, Sink& sink);
  void emit_values(const Chunk& chunk, std::int32_t iteration, std::int32_t first_sample,
                   std::int32_t trajectories, Sink& sink);

  const Toto1& net_;
  PlanTable& plans_;
  const Workspace* memory_ = nullptr;

  // Of the request.
  std::int32_t patch_ = 0;    // P
  std::int32_t patches_ = 0;  // R
  std::int32_t labels_ = 0;   // 1: every variate starts with a label token
  std::size_t horizon_ = 0;
  Align align_ = Align::pad;
  bool share_ = true;       // one context for all trajectories
  bool again_ = false;      // eager and uncached: the context call is repeated for every patch
  std::int32_t steps_ = 0;  // steps of the patch being predicted

  // Of the chunk. Vectors only ever grow, so that warmed-up forecasts allocate nothing.
  std::vector<Prepared> pool_;
  std::span<const Prepared> prepared_;
  std::vector<Block> context_blocks_, context_last_blocks_, further_blocks_;
  std::vector<std::int32_t> context_ids_, last_ids_;
  Batch context_, context_last_, further_;
  std::vector<double> staging_, generated_;  // generated_: eager, uncached: [lane][R*P]
  std::vector<std::uint8_t> mask_staging_;
  std::vector<double> params_, loc_, scale_, y_;
  std::vector<std::int64_t> covariates_;  // element offset of each series' covariates; -1: none

  std::size_t done_ = 0, total_ = 0;
  std::uint64_t splits_ = 0;
  bool recording_ = false;
  Recordings recordings_;
  std::uint64_t graph_captures_ = 0, graph_replays_ = 0, graph_fallbacks_ = 0, launches_ = 0;
  std::uint64_t host_reads_ = 0;
  double device_seconds_ = 0;
  Cost cost_;
  double prepare_seconds_ = 0, context_seconds_ = 0, decode_seconds_ = 0, emit_seconds_ = 0;
};

}  // namespace toto
