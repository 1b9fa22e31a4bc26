// SPDX-License-Identifier: Apache-2.0
// Forecasts of a batch of requests (spec B4, B9): arrays, blocks, and the network in between.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/toto2/toto2.h"

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
  /// Whether Block::raw, loc and scale are wanted.
  [[nodiscard]] virtual bool wants_internals() const { return false; }
  /// Before the network runs for block `index`: the calls that describe its rows, and what sees
  /// them (may be empty).
  virtual Toto2Observer observer(std::int32_t /*index*/, const Call& /*all*/,
                                 const Call& /*wanted*/) {
    return {};
  }
};

/// A batch with its memory. Made once, it runs without allocating anything but what the sink is
/// handed.
class Generation {
 public:
  /// Throws Error (2): invalid_horizon, invalid_block, context_too_long; std::bad_alloc.
  Generation(const Toto2& net, std::span<const Request> requests);

  void run(Sink& sink);

 private:
  struct Buffers;
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
  void stage();
  /// Slices of the next call, of the requests that go on.
  void next_call();
  void deliver(std::int32_t index, Sink& sink);
  void feed_back();
  void force_feedback(const Request& request, const Progress& p, std::int32_t first,
                      std::int32_t count);

  const Toto2& net_;
  std::vector<Request> requests_;
  std::vector<Progress> progress_;
  std::int32_t lanes_ = 0;
  std::int64_t patches_ = 0;      // of all lanes
  std::int64_t slots_ = 0;        // of all lanes
  std::int32_t rows_ = 0;         // most of any call
  std::int32_t wanted_rows_ = 0;  // likewise
  std::int32_t positions_ = 0;    // most of any request
  bool single_pass_ = true;
  std::shared_ptr<Buffers> memory_;
  std::vector<CallSlice> all_, wanted_;
  std::vector<std::size_t> active_;  // requests of the call
  Call all_call_, wanted_call_;
};

}  // namespace toto::toto2
