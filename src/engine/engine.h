// SPDX-License-Identifier: Apache-2.0
// Carries out requests that may differ in everything: forms micro-batches, finds memory for them,
// executes or replays the network's program, and hands the results on. It names no model.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/graph_capture.h"
#include "engine/device_work.h"
#include "engine/plan_table.h"
#include "engine/prepare.h"
#include "models/executor.h"
#include "models/network.h"

namespace toto {

/// One series and what is asked of it.
struct SeriesRequest {
  const Series* series = nullptr;
  std::size_t horizon = 0;
  std::int32_t trajectories = 0;  // 0: none are drawn
  std::uint64_t seed = 0;
  std::span<const double> levels;  // ascending; requests with the same span share them
  std::span<const float>
      forced;  // teacher forcing: [trajectories][V][R*P] takes the place of draws
  BlockDecoding decoding;
  Tails tails = Tails::clamp;
  Align align = Align::pad;
  bool samples = false;  // the trajectories themselves are wanted
  bool parameters = false;
};

/// What requests of one call have in common: it decides which operations there are.
struct Generation {
  bool mean = false;      // one trajectory of means fed back instead of draws
  bool cached = true;     // spec A9
  bool coherent = false;  // draws of the steps of a patch go together
  bool exact = false;     // statistics of the steps that need no trajectories
  bool time_device = false;
  Probe* probe = nullptr;  // looks inside; then nothing is captured
};

/// Throws Error (2) unsupported_paths where coherent paths are asked for and cannot be drawn.
void check_paths(const Network& net, const Generation& generation);

/// What a program must know of a request, values and levels excepted. `patch`: P.
Item item_of(const SeriesRequest& request, std::size_t index, std::int32_t patch);
/// Adds an item, with its levels, to what a micro-batch says of all its items.
void take_into(MicroBatch& batch, const Item& item, const SeriesRequest& request,
               std::int32_t exact_steps);

/// Results of one series; see ResultLayout.
struct SeriesResults {
  std::size_t request = 0;       // its index
  std::size_t stride = 0;        // from step to step of `exact` and `sampled`
  std::size_t exact_steps = 0;   // the first so many steps, or more than were asked for
  std::size_t horizon = 0;       // steps, or more than were asked for
  std::size_t trajectories = 0;  // or more than were asked for
  std::size_t parameter_floats = 0;
  std::span<const float> exact;    // [V][exact_steps][stride]; empty: not wanted
  std::span<const float> sampled;  // [V][horizon - exact_steps][stride]; empty: not wanted
  // Of all of a micro-batch where one of it wants them.
  std::span<const float> samples;     // [V][horizon][trajectories]
  std::span<const float> parameters;  // [V][horizon][parameter_floats]
};

class ResultSink {
 public:
  virtual ~ResultSink() = default;
  /// Called once everything that is left of the call is under way on a device that computes by
  /// itself: another call may begin.
  virtual void handed_over() {}
  /// Called while the device computes, once or, where a chunk had to be split, again: results() of
  /// this request comes next. To be used for what needs no results, such as memory for them: where
  /// calls overlap, another one has the turn.
  virtual void expect(std::size_t /*request*/) {}
  virtual void results(const SeriesResults& results) = 0;
  /// Whether results() of several series may be called at once, by several threads.
  [[nodiscard]] virtual bool concurrent() const { return false; }
  /// Called between units of work; throws to stop.
  virtual void progress(std::size_t /*done*/, std::size_t /*total*/) {}
};

/// For those who only look inside.
class NoResults final : public ResultSink {
 public:
  void results(const SeriesResults& /*results*/) override {}
};

/// Calls of one engine come one after the other. On a device that captures forecasts the chunks of
/// a call overlap: while one is computed, the next is staged, and results of the one before are
/// read.
class Engine {
 public:
  /// `plans` may be shared with nothing else while a forecast runs.
  Engine(const Network& net, PlanTable& plans);
  /// Engines that share `plans` and `work` overlap, as far as they let each other have the turn.
  Engine(const Network& net, PlanTable& plans, std::shared_ptr<DeviceWork> work);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Whether forecasts are captured where the backend can do that.
  void set_capturing(bool capturing) { capturing_ = capturing; }

  /// `turn`: the lock of the model's turn, which others may have while the device computes;
  /// nullptr: they may not. Throws what check_series throws for any series, before anything is
  /// computed; and Error: memory_limit (2), out_of_memory (70).
  void run(std::span<const SeriesRequest> requests, const Generation& generation,
           const Limits& limits, ResultSink& sink, std::unique_lock<std::mutex>* turn = nullptr);

  void count(Counters& counters) const;
  [[nodiscard]] const DeviceWork& work() const { return *work_; }

 private:
  // engine.cpp: micro-batches and memory for them
  [[nodiscard]] std::int64_t chunk_rows(const Limits& limits) const;
  [[nodiscard]] std::size_t chunk_size(std::size_t first, std::int64_t most_rows,
                                       const Limits& limits);
  [[nodiscard]] std::int32_t min_at_once(const MicroBatch& batch) const;
  void run_range(std::size_t first, std::size_t count, const Limits& limits, ResultSink& sink);
  bool run_chunk(std::size_t first, std::size_t count, std::int32_t at_once, ResultSink& sink);
  void prepare_chunk(std::size_t first, std::size_t count);
  [[nodiscard]] bool captures() const;
  [[nodiscard]] bool on_host(const Item& item) const;
  [[nodiscard]] const MicroBatch& batch_of(std::size_t first, std::size_t count);
  [[nodiscard]] MicroBatch form_batch(std::size_t first, std::size_t count);
  bool acquire(MicroBatch& batch, ResultSink& sink);
  [[nodiscard]] ProgramKey key_of(const MicroBatch& batch) const;
  [[noreturn]] void refuse(std::size_t first);

  // execute.cpp: at once, or as a captured graph
  enum class Outcome {
    done,  // or under way
    wait,  // until one of those that are under way has landed
    no_memory
  };
  Outcome execute(const MicroBatch& batch, ResultSink& sink);
  Outcome launch(const MicroBatch& batch, const ProgramKey& key);
  [[nodiscard]] const char* uncapturable(const MicroBatch& batch) const;
  [[nodiscard]] CapturedForecast* capture(const MicroBatch& batch, const ProgramKey& key);
  void stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in, bool replay);
  [[nodiscard]] ResultPointers pointers(const ProgramKey& key, std::byte* to, float* kept) const;
  [[nodiscard]] Levels levels_of(const ProgramKey& key, const Staging& in) const;

  // flights.cpp: what is under way, and its results
  /// A micro-batch that was launched. Its items stay where they are until the end of the call.
  struct Flight {
    MicroBatch batch;
    ProgramKey key;
    CapturedForecast* captured = nullptr;
    std::vector<HostResult> awaited;
  };
  void depart(const MicroBatch& batch, const ProgramKey& key, CapturedForecast& captured);
  void land(ResultSink& sink);
  void leave_flight();
  void give_up_flights() noexcept;
  bool wait_for_landing(ResultSink& sink);
  void await(Flight& flight) const;
  void begin_reading(const MicroBatch& batch);
  void read(const MicroBatch& batch, const ProgramKey& key, const std::byte* from,
            std::size_t there, ResultSink& sink);

  const Network& net_;
  Backend& backend_;
  PlanTable& plans_;
  std::unique_ptr<Program> program_;
  std::shared_ptr<DeviceWork> work_;
  const Workspace* memory_ = nullptr;  // while the engine has the turn
  std::int32_t patch_;                 // P
  bool capturing_ = false;
  Buffers buffers_;  // of forecasts that are executed at once

  // Of the call. Vectors only ever grow, so that warmed-up forecasts allocate nothing.
  std::span<const SeriesRequest> requests_;
  std::unique_lock<std::mutex>* turn_ = nullptr;
  std::vector<std::size_t> first_lanes_;  // of the items whose results are read, and their end
  std::size_t read_ = 0;                  // items of these
  Generation generation_;
  std::vector<Item> items_;  // in the order of requests; of a chunk: most patches first
  std::vector<Prepared> pool_;
  std::vector<double> levels_;  // of the chunk
  struct {
    MicroBatch batch;
    std::size_t first = 0, count = 0;  // 0: there is none
  } formed_;                           // the chunk
  // The oldest first, the next launch behind the last: a ring.
  static constexpr std::size_t kFlights = 2;
  std::array<Flight, kFlights> flights_;
  std::size_t oldest_ = 0, under_way_ = 0;
  std::size_t done_ = 0, total_ = 0;
};

}  // namespace toto
