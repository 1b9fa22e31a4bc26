// SPDX-License-Identifier: Apache-2.0
// Forecasts of a batch of requests (spec B4, B9): arrays, blocks, and the network in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/toto2/toto2.h"
#include "models/toto2/workspace.h"

namespace toto {
class CallImage;
}

namespace toto::toto2 {

/// What is asked for, of one series. Masks: 1 = observed. Values must be finite, also where the
/// mask is 0. Group ids: only equality matters, -1 is reserved.
struct Request {
  std::int32_t targets = 1;                    // V
  std::int32_t steps = 0;                      // T of the context, at least 1
  std::span<const float> values;               // [V][T]
  std::span<const std::uint8_t> mask;          // [V][T]
  std::span<const std::int32_t> groups;        // [V]
  std::int32_t covariates = 0;                 // E
  std::int32_t known_steps = 0;                // of covariates, from the context's first step on
  std::span<const float> known;                // [E][known_steps]
  std::span<const std::uint8_t> known_mask;    // [E][known_steps]
  std::span<const std::int32_t> known_groups;  // [E]
  std::int32_t horizon = 0;                    // steps, at least 1
  std::int32_t block = 0;                      // steps predicted at a time, a multiple of P; 0: all
  bool has_missing_values = true;              // tokens do not see patches without an observation
  std::int32_t fallback = 0;                   // scaler_fallback_min_obs
  double cap = 0;                              // quantile_real_cap_k
  // For Ops2::knot_results.
  std::uint64_t seed = 0;
  std::uint64_t key = 0;  // hash of the series' id
  std::int32_t trajectories = 0;
  std::int32_t level_first = 0, level_count = 0;
  KnotTails tails = KnotTails::clamped;
  bool coherent = false;             // Ops2::knot_neighbours is to follow the first call
  std::span<const double> feedback;  // [V][NP*P]: takes the place of medians; empty: does not
};

/// What a block of one request has come to. Numbers are those of the backend.
struct Block {
  std::size_t request;
  std::int32_t index;                  // of the block
  std::int32_t first;                  // patch of the forecast; below 0: of the context
  std::int32_t patches;                // b
  std::int32_t variates;               // A
  std::span<const double> raw;         // [A][b][9][P]: asinh space, unsorted; only where asked for
  std::span<const double> quantiles;   // [A][b][9][P]
  std::span<const double> loc, scale;  // [A][C + NP]; only where asked for
};

/// Whoever takes the results.
class Sink {
 public:
  virtual ~Sink() = default;
  /// What is wanted of every step.
  [[nodiscard]] virtual KnotOutputs outputs() const { return {}; }
  /// Operations right after those that left the quantiles [rows][9][P] of a call; `to` is what is
  /// left of outputs().
  virtual void predicted(std::int32_t /*index*/, const Call& /*wanted*/,
                         const SeriesArrays& /*arrays*/, const ConstView& /*quantiles*/,
                         const KnotOutputs& /*to*/) {}
  /// Whether block() is to be called, which needs the results on the host: never while a graph is
  /// captured.
  [[nodiscard]] virtual bool wants_blocks() const { return true; }
  virtual void block(const Block& /*block*/) {}
  /// Whether Block::raw is wanted, and whether loc and scale are.
  [[nodiscard]] virtual bool wants_raw() const { return false; }
  [[nodiscard]] virtual bool wants_statistics() const { return false; }
  /// Before the network runs for block `index`: the calls that describe its rows, and what sees
  /// them (may be empty).
  virtual Toto2Observer observer(std::int32_t /*index*/, const Call& /*all*/,
                                 const Call& /*wanted*/) {
    return {};
  }
};

/// Tokens of a context whose forecasts show how steps go together. Each is one row more for the
/// last layer and the head; docs/statistics.md, "Coherent paths of Toto 2.0", has what more would
/// gain.
inline constexpr std::int32_t kPathTokens = 10;

/// How many of them a context of so many patches has at most.
[[nodiscard]] constexpr std::int32_t path_tokens(bool coherent, std::int32_t context) {
  return coherent ? std::min(kPathTokens, context - 1) : 0;
}

/// Throws Error (2) for what the model cannot compute: invalid_block for a block that is no
/// multiple of the patch, context_too_long for more than kToto2MaxPatches patches. `steps` of the
/// context.
void check_sizes(std::int32_t patch, std::int64_t steps, std::int64_t horizon, std::uint64_t block);

/// How large a batch is. A captured graph has these as upper bounds, all but `calls`.
struct BatchSizes {
  std::int32_t series = 0;
  std::int32_t lanes = 0;    // variates of all requests
  std::int32_t rows = 0;     // tokens of a call, the most
  std::int32_t wanted = 0;   // of these, tokens that feed the head, the most
  std::int32_t calls = 0;    // of the network
  std::int64_t patches = 0;  // of context and forecast of all lanes
  std::int32_t keys = 0;     // that a token sees, the most
};

/// What a batch of requests comes to, block by block. Arrays and calls are staged before anything
/// runs, so that run() can be captured. Its room only grows: what has been done once allocates
/// nothing the next time.
class Generation {
 public:
  explicit Generation(const Toto2& net) : net_(net) {}

  /// Takes up a batch, which must outlive run(). Throws Error (2): invalid_horizon,
  /// too_short, invalid_block, context_too_long.
  void begin(std::span<const Request> requests);
  /// The same in parts: start(), then take() of every request in any order, by any threads, once it
  /// has been filled in, then add_up().
  void start(std::span<const Request> requests);
  void take(std::size_t index);
  void add_up();
  [[nodiscard]] const BatchSizes& sizes() const { return sizes_; }
  /// The memory that it needs.
  [[nodiscard]] Capacity need() const;
  /// Bytes of a staging buffer with room for a batch.
  [[nodiscard]] std::size_t input_bytes(const BatchSizes& room) const;
  /// Writes arrays and calls to a staging buffer, from `at` on. Returns what the forecast costs.
  Cost stage(const BatchSizes& room, const Staging& in, std::size_t at);
  /// The operations, over what lies or will lie in the staging buffer; all that lies before `at` is
  /// copied in too. Looks at the batch only where it is not `capturing`.
  void run(const Toto2Workspace& memory, const BatchSizes& room, const Staging& in, std::size_t at,
           bool capturing, Sink& sink);

 private:
  /// One request's place in the arrays, and where its blocks are. Small, because one thread goes
  /// through those of all requests, which others have written.
  struct Progress {
    std::int32_t variates = 1;  // A
    std::int32_t context = 0;   // C
    std::int32_t patches = 0;   // NP
    std::int32_t block = 0;     // bs
    std::int32_t done = 0;
    std::int32_t first_slot = 0;  // the first patch that is a token
    std::int32_t lane = 0;        // of variate 0
    std::int64_t array = 0;       // its first patch
    bool coherent = false;
    bool hides = false;  // some patch of the context has no observation
    bool whole = false;  // no value is missing in the last patch of the context
    // Of the call that is described.
    std::int32_t at = -1;  // of its slices; -1: it has none
    std::int32_t row = 0, wanted_row = 0;
  };
  /// Tokens of one request in its next call.
  struct Tokens {
    std::int32_t first, count;          // all: patch of the first, and how many
    std::int32_t wanted, wanted_count;  // those that feed the head
    std::int32_t predicted;             // patches
  };
  /// Arrays of a batch on their way to the backend.
  struct HostArrays {
    float* values;
    std::uint8_t* mask;
    std::uint8_t* hidden;
    std::int32_t* groups;
  };
  /// Offsets of the parts of a staging buffer.
  struct Inputs;

  void check(const Request& request) const;
  void place(std::size_t index, const HostArrays& to);
  [[nodiscard]] Tokens next_tokens(const Progress& p) const;
  /// What is the same in all calls.
  [[nodiscard]] CallSlice slice_of(std::size_t index) const;
  /// Slices of the next call, of the requests that go on. Returns what it costs.
  Cost next_call(CallImage& all, CallImage& wanted);
  void deliver(const Toto2Workspace& memory, const SeriesArrays& arrays, const Call& wanted,
               std::int32_t index, Sink& sink);
  void force_feedback(const SeriesArrays& arrays, const CallSlice& slice);

  const Toto2& net_;
  std::span<const Request> requests_;
  std::vector<Progress> progress_;
  BatchSizes sizes_;
  std::int64_t positions_ = 0;  // of a lane, the most
  bool one_pass_ = true;
  // Results of a call.
  std::vector<double> raw_, results_, loc_, scale_;
};

/// A batch with memory of its own.
void generate(const Toto2& net, std::span<const Request> requests, Sink& sink);

}  // namespace toto::toto2
