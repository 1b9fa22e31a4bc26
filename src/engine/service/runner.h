// SPDX-License-Identifier: Apache-2.0
// The seam between the service and the engine: what one device does with a micro-batch.
#pragma once

#include <exception>
#include <functional>
#include <span>
#include <string_view>

#include "toto/service.hpp"

namespace toto {

/// Whether nobody waits for any request of the micro-batch any more. Cheap; to be asked between
/// units of work.
using StopCheck = std::function<bool()>;

struct Outcome {
  Forecast forecast;
  std::exception_ptr error;  // null: the forecast is there
};

/// What goes with a call of Runner::run().
struct RunnerCall {
  std::size_t lane = 0;  // calls that overlap are in different lanes
  const StopCheck& stop;
  /// To be called, if at all, once the device has all of the micro-batch and computes by itself:
  /// run() of another lane may begin. Safe to call twice.
  const std::function<void()>& handed_over;
};

/// Of one device. check(), estimate() and compatible() may be called on any thread while run()
/// runs. Calls of run() in one lane come one after the other, and not always on the same thread.
class Runner {
 public:
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  virtual ~Runner() = default;

  [[nodiscard]] virtual std::string_view device() const = 0;
  /// Lanes that run() may be called in. With more than one, a micro-batch is made ready, and the
  /// results of another are given out, while the device computes.
  [[nodiscard]] virtual std::size_t lanes() const { return 1; }
  /// Throws what is wrong with the request itself, so that it spoils no micro-batch.
  virtual void check(const Request& request) const = 0;
  /// Without `seconds`, which the service measures. `bytes`: whether they are wanted, which takes
  /// longer than the rest.
  [[nodiscard]] virtual Estimate estimate(const Request& request, bool bytes) const = 0;
  /// Whether both may be in one micro-batch. An equivalence relation.
  [[nodiscard]] virtual bool compatible(const Request& a, const Request& b) const = 0;
  /// Computes the requests, each with the bits that it has alone, and fills `outcomes`, which are
  /// empty. Where it throws, none has an outcome, and the service runs each by itself. Where
  /// `call.stop` says so it may throw anything.
  virtual void run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
                   const RunnerCall& call) = 0;
};

}  // namespace toto
