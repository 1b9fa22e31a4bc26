// SPDX-License-Identifier: Apache-2.0
// What the engine must know of a model. A model is a folder of src/models: its configuration, its
// tensors, its forward pass, and its generation program, behind the two classes below. The engine
// forms micro-batches, finds memory, executes or captures the program and reads the results; it
// names no model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "models/cost.h"
#include "models/prepared.h"
#include "toto/forecast.hpp"

namespace toto {

/// One series of a micro-batch, and what is asked of it.
struct Item {
  std::size_t index = 0;               // in the request, for those who look inside
  const Prepared* prepared = nullptr;  // its values; set before stage(), not for sizes
  std::int32_t variates = 1;           // V
  std::int32_t tokens = 0;             // of its context
  std::int32_t exogenous = 0;          // E: the last E variates are covariates
  bool covariates = false;             // their future is known
  bool covariate_gaps = false;         // but not of every step
  std::int32_t horizon = 0;            // steps
  std::int32_t patches = 0;            // of the horizon, R
  std::int32_t trajectories = 0;       // N; 0: none are drawn
  std::uint64_t seed = 0;
  std::int32_t level_first = 0;  // its levels in MicroBatch::levels
  std::int32_t level_count = 0;
  std::span<const float> forced;  // [N][V][R*P] takes the place of draws; empty: none
  BlockDecoding decoding;         // of Toto 2.0
  Tails tails = Tails::clamp;     // of quantiles that are known between two levels only
};

/// Series that go through the network together. They may differ in all that Item says.
struct MicroBatch {
  std::span<const Item> items;  // most patches first
  std::span<const double> levels;
  std::int32_t at_once = 1;  // trajectories of a series that go through the network together
  bool mean = false;         // feed the mean back instead of draws
  bool cached = true;        // spec A9
  bool coherent = false;     // draws of the steps of a patch go together
  bool exact = false;        // statistics of the steps that need no trajectories
  bool sampled = false;      // statistics of trajectories, of the other steps
  bool samples = false;      // the trajectories themselves
  bool parameters = false;   // of the distribution of every step
  // Of all items.
  std::int64_t variates = 0;
  std::int32_t horizon = 0, patches = 0, trajectories = 0, level_count = 0;  // the most

  /// Passes over the trajectories.
  [[nodiscard]] std::int32_t passes() const {
    return trajectories == 0 ? 0 : (trajectories + at_once - 1) / at_once;
  }
};

/// How much is done at once, where memory allows it. None of these changes a result.
struct Limits {
  std::int64_t rows = 4096;           // tokens of one call
  std::int64_t kv_bytes = 1LL << 30;  // of all caches
};

/// Sizes of working memory, by dimensions that a program names. Nothing in it changes from patch to
/// patch.
struct Capacity {
  static constexpr std::size_t kDimensions = 8;
  std::array<std::int64_t, kDimensions> of{};
  bool operator==(const Capacity&) const = default;
  [[nodiscard]] bool holds(const Capacity& other) const;
};

/// Pointers into working memory: a program's own. Memory is the engine's.
class Workspace {
 public:
  Workspace() = default;
  virtual ~Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  Capacity capacity;
  std::size_t bytes = 0;
};

/// What fixes the sequence of operations of a program. Sizes are upper bounds, rounded up to
/// buckets, so that one captured graph serves many forecasts.
struct ProgramKey {
  Capacity plan;
  std::uint64_t epoch = 0;  // of the memory that the plan points into
  std::int32_t series = 0;
  std::int32_t rows = 0;      // of the prefill
  std::int32_t variates = 0;  // of all series
  std::int32_t lanes = 0;     // sequences that are decoded at once
  std::int32_t patches = 0;
  std::int32_t last_steps = 0;  // of the last patch
  std::int32_t exact_steps = 0;
  std::int32_t passes = 0;            // over the trajectories; 0: none are drawn
  std::int32_t trajectories = 0;      // the most of a series
  std::int32_t levels = 0;            // the most of a series
  std::int32_t level_values = 0;      // of all series; the engine's
  std::int32_t parameter_floats = 0;  // of a step, where parameters are kept
  std::array<std::int32_t, 4> own{};  // sizes that only the program knows the meaning of
  bool mean = false, exact = false, sampled = false, samples = false, coherent = false;
  bool operator==(const ProgramKey&) const = default;

  [[nodiscard]] std::int32_t horizon(std::int32_t patch) const {
    return (patches - 1) * patch + last_steps;
  }
  /// Floats of statistics for each step: mean, deviation and quantiles.
  [[nodiscard]] std::int32_t stride() const { return 2 + levels; }
};

/// Where results lie, in bytes of the results buffer. Each part is [variates of all series] first.
struct ResultLayout {
  std::size_t exact = 0;             // [exact_steps][stride]
  std::size_t sampled = 0;           // [horizon - exact_steps][stride]
  std::size_t parameters = 0;        // [horizon][parameter_floats]
  std::size_t statistics_bytes = 0;  // of the parts above
  std::size_t samples = 0;  // [horizon][trajectories]; beside the buffer unless they are wanted
  std::size_t samples_bytes = 0;
  ResultLayout(const ProgramKey& key, std::int32_t patch);
  /// Of the buffer.
  [[nodiscard]] std::size_t bytes(const ProgramKey& key) const {
    return statistics_bytes + (key.samples ? samples_bytes : 0);
  }
};

/// Where operations write results; see ResultLayout.
struct ResultPointers {
  float* exact = nullptr;
  float* sampled = nullptr;
  float* parameters = nullptr;
  float* kept = nullptr;  // trajectories
};

/// Trajectories `first_sample` .. of one series at one iteration, for those who look inside.
struct PatchView {
  std::size_t series = 0;      // index in the request
  std::int32_t iteration = 0;  // patch number, from 0
  std::int32_t first_sample = 0;
  std::int32_t trajectories = 0;  // N; 1 for parameters that all trajectories share
  std::int32_t variates = 0;      // V
  std::int32_t patch = 0;         // P
  std::int32_t steps = 0;         // steps of the patch that were asked for
  std::int32_t components = 0;    // K; of quantiles their number
};

/// Looks inside a program that is executed at once: verification, golden cases. Numbers are the
/// backend's, widened to double.
class Probe {
 public:
  virtual ~Probe() = default;
  /// Series `first` .. `first + count - 1` go through the network together from here on.
  virtual void begin(std::size_t /*first*/, std::size_t /*count*/) {}
  /// Statistics of the first prefill: loc, scale [rows][P].
  [[nodiscard]] virtual bool wants_statistics() const { return false; }
  virtual void statistics(std::span<const double> /*loc*/, std::span<const double> /*scale*/) {}
  /// Hidden rows of the first prefill after each layer; `trimmed`: only the last tokens are left.
  [[nodiscard]] virtual bool wants_layers() const { return false; }
  virtual void layer(std::int32_t /*layer*/, std::span<const double> /*hidden*/, bool /*trimmed*/) {
  }
  /// params [N][V][steps][4][K] (df, loc, scale, probability); loc, scale [N][V][P].
  [[nodiscard]] virtual bool wants_parameters(std::int32_t /*iteration*/) const { return false; }
  virtual void parameters(const PatchView& /*at*/, std::span<const double> /*params*/,
                          std::span<const double> /*loc*/, std::span<const double> /*scale*/) {}
  /// Of a network whose distribution is no mixture, in place of parameters(): its quantiles
  /// [V][steps][Q] in data units, the same for all trajectories; loc, scale [V][P].
  virtual void quantiles(const PatchView& /*at*/, std::span<const double> /*quantiles*/,
                         std::span<const double> /*loc*/, std::span<const double> /*scale*/) {}
  /// y [N][V][P] in data units.
  virtual void values(const PatchView& /*at*/, std::span<const double> /*y*/) {}
};

class Executor;

/// The generation program of a network: written once, executed at once or captured into a graph. It
/// has room of its own for describing calls, so it serves one caller at a time; vectors only grow,
/// so that warmed-up forecasts allocate nothing.
class Program {
 public:
  virtual ~Program() = default;

  // --- sizes, from Items without values ---

  /// Called before anything else is asked of an item. Throws Error for one that the network cannot
  /// compute however much memory there is.
  virtual void check(const Item& /*item*/) const {}

  /// Tokens that the prefill of a series computes for one trajectory.
  [[nodiscard]] virtual std::int64_t prefill_rows(const Item& item,
                                                  const MicroBatch& batch) const = 0;
  /// Tokens that all trajectories of a series send through the network.
  [[nodiscard]] virtual std::int64_t tokens(const Item& item, const MicroBatch& batch) const {
    return prefill_rows(item, batch);
  }
  /// Trajectories that go through the network together, before memory has a say: at least 1.
  [[nodiscard]] virtual std::int32_t at_once(const MicroBatch& /*batch*/,
                                             const Limits& /*limits*/) const {
    return 1;
  }
  /// The fewest with which it can be captured; 1 where it makes no difference.
  [[nodiscard]] virtual std::int32_t min_at_once(const MicroBatch& /*batch*/) const { return 1; }
  [[nodiscard]] virtual Capacity need(const MicroBatch& /*batch*/) const { return {}; }
  /// The names of the dimensions, for log lines.
  [[nodiscard]] virtual std::span<const char* const> dimensions() const { return {}; }
  /// Lays a workspace out over `base` (64-byte aligned); with a null base only `bytes` means
  /// anything. `tables`: what fill_tables() filled.
  [[nodiscard]] virtual std::unique_ptr<Workspace> lay_out(const Capacity& capacity,
                                                           std::byte* base,
                                                           const Capacity& tables_for,
                                                           std::byte* tables) const;
  /// Constants that all plans share: what of a capacity they depend on, their size, and filling
  /// them.
  [[nodiscard]] virtual Capacity tables_of(const Capacity& /*capacity*/) const { return {}; }
  [[nodiscard]] virtual std::size_t table_bytes(const Capacity& /*tables_for*/) const { return 0; }
  virtual void fill_tables(const Capacity& /*tables_for*/, std::byte* /*tables*/) const {}

  // --- the program ---

  /// Why it cannot be captured; nullptr: it can.
  [[nodiscard]] virtual const char* uncapturable(const MicroBatch& /*batch*/) const {
    return "the program computes on the host";
  }
  /// The sizes of a key, of which `plan` and `epoch` are set.
  virtual void size(const MicroBatch& batch, ProgramKey& key) const = 0;
  /// Bytes of its inputs in the staging buffer.
  [[nodiscard]] virtual std::size_t input_bytes(const ProgramKey& /*key*/) const { return 0; }
  /// Writes the inputs of a forecast at `at` of the staging buffer. `replay`: all of them, for a
  /// captured graph; otherwise run() may write some when it needs them.
  virtual void stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in,
                     std::size_t at, bool replay) = 0;
  /// The operations. `batch` is what was staged; a program that is captured may not look at it.
  virtual void run(Executor& executor, const MicroBatch& batch, const ProgramKey& key,
                   const Workspace& workspace) = 0;
  /// What stage() and run() have cost since this was last asked.
  [[nodiscard]] virtual Cost take_cost() { return {}; }
};

/// A network with its weights on a backend: immutable once loaded.
class Network {
 public:
  virtual ~Network() = default;
  [[nodiscard]] virtual Backend& backend() const = 0;
  /// P: steps of a token; contexts are cut into tokens.
  [[nodiscard]] virtual std::int32_t patch() const = 0;
  /// How many of the first `horizon` steps have exact statistics, free of sampling noise.
  [[nodiscard]] virtual std::int32_t exact_steps(std::int32_t horizon) const = 0;
  /// Components of the mixture of a step; 0: its distribution is no mixture.
  [[nodiscard]] virtual std::int32_t components() const { return 0; }
  [[nodiscard]] virtual std::unique_ptr<Program> program() const = 0;
  /// Whether its program draws coherent paths, on its backend.
  [[nodiscard]] virtual bool has_paths() const { return false; }
  /// Calls visit(matrix, epilogue) for every matrix that products are taken with.
  virtual void for_each_matrix(
      const std::function<void(const Matrix&, Epilogue)>& /*visit*/) const {}
};

/// Hands out aligned pieces of one block of memory; with a null base it only counts.
class Pieces {
 public:
  static constexpr std::size_t kAlignment = 64;
  explicit Pieces(std::byte* base) : base_(base) {}
  std::byte* take(std::int64_t bytes) {
    const std::size_t at = used_;
    used_ += (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    return base_ == nullptr ? nullptr : base_ + at;
  }
  /// [rows][width]
  View take(ElementType type, std::int64_t rows, std::int64_t width) {
    void* const memory = take(rows * width * static_cast<std::int64_t>(size_of(type)));
    return {memory, type, static_cast<std::int32_t>(width), static_cast<std::int32_t>(rows)};
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// Offsets of the parts of a staging buffer.
class Offsets {
 public:
  static constexpr std::size_t kAlignment = 256;
  explicit Offsets(std::size_t at = 0) : used_(at) {}
  std::size_t take(std::size_t bytes) {
    const std::size_t at = used_;
    used_ = (used_ + bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t used_ = 0;
};

/// The bucket around a number: the next of 1, 1.25, 1.5, 1.75 times a power of two.
std::int64_t bucket(std::int64_t n);

}  // namespace toto
