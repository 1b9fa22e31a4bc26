// SPDX-License-Identifier: Apache-2.0
// Forecasts of a batch of requests (spec B4, B9): arrays, blocks, and the network in between.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/toto2/toto2.h"
#include "models/toto2/workspace.h"

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
  std::span<const double> feedback;  // [V][NP*P]: takes the place of medians; empty: does not
};

/// What a block of one request has come to. Numbers are those of the backend.
struct Block {
  std::size_t request;
  std::int32_t index;                  // of the block
  std::int32_t first;                  // patch of the forecast
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
  virtual void block(const Block& block) = 0;
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

/// Throws Error (2) for what the model cannot compute: invalid_block for a block that is no
/// multiple of the patch, context_too_long for more than kToto2MaxPatches patches. `steps` of the
/// context.
void check_sizes(std::int32_t patch, std::int64_t steps, std::int64_t horizon, std::uint64_t block);

/// What a batch of requests comes to, block by block. Its room only grows, so that what has been
/// done once allocates nothing the next time.
class Generation {
 public:
  explicit Generation(const Toto2& net) : net_(net) {}

  /// Takes up a batch; spans in it must outlive run(). Throws Error (2): invalid_horizon,
  /// too_short, invalid_block, context_too_long.
  void begin(std::span<const Request> requests);
  /// The memory that it needs.
  [[nodiscard]] Capacity need() const;
  /// Returns what it has cost.
  Cost run(const Toto2Workspace& memory, Sink& sink);

 private:
  /// One request's place in the arrays, and where its blocks are.
  struct Progress {
    std::int32_t context = 0;  // C
    std::int32_t patches = 0;  // NP
    std::int32_t block = 0;    // bs
    std::int32_t done = 0;
    bool hides = false;  // some patch of the context has no observation
    CallSlice slice;     // what is the same in all calls
  };

  void check(const Request& request) const;
  void stage(const Toto2Workspace& memory);
  void place(std::size_t index);
  /// Slices of the next call, of the requests that go on.
  void next_call();
  void deliver(const Toto2Workspace& memory, std::int32_t index, Sink& sink);
  void feed_back(const Toto2Workspace& memory);
  void force_feedback(const Toto2Workspace& memory, const Request& request, const Progress& p,
                      std::int32_t first, std::int32_t count);

  const Toto2& net_;
  std::vector<Request> requests_;
  std::vector<Progress> progress_;
  std::int64_t lanes_ = 0;
  std::int64_t patches_ = 0;  // of all lanes
  std::int64_t rows_ = 0;     // most of any call
  std::int64_t wanted_ = 0;   // likewise, of those that feed the head
  std::int64_t positions_ = 0;
  bool one_pass_ = true;
  // Arrays on their way to the backend.
  std::vector<float> values_;
  std::vector<std::uint8_t> mask_, hidden_;
  std::vector<std::int32_t> groups_;
  // The call.
  std::vector<CallSlice> all_slices_, wanted_slices_;
  std::vector<std::size_t> active_;  // its requests
  Call all_call_, wanted_call_;
  // Results of a call.
  std::vector<double> raw_, results_, loc_, scale_;
};

/// A batch with memory of its own.
void generate(const Toto2& net, std::span<const Request> requests, Sink& sink);

}  // namespace toto::toto2
