// SPDX-License-Identifier: Apache-2.0
// From a call to forecasts and back: no thread waits for them.
#pragma once

#include <atomic>
#include <deque>

#include "server/call.h"
#include "server/errors.h"
#include "server/models.h"

namespace toto::server {

/// A call that is computed. Lives until its last future is ready: the requests borrow its memory.
struct Running {
  ParsedCall parsed;
  ModelPointer model;
  Account account;
  std::deque<PreparedSeries> series;
  std::vector<Future> futures;
  std::atomic<std::size_t> left{0};
  std::function<void(const std::shared_ptr<Running>&)> ready;
  bool gone = false;  ///< the client went
};
using RunningPointer = std::shared_ptr<Running>;

/// When a call's answer is of no use any more.
Clock::time_point deadline_of(const ForecastCall& call, const Limits& limits,
                              Clock::time_point received);

/// Submits every series. Calls `ready` once, when all are there or one is wrong: here or on a
/// thread of the service. Throws what is wrong at once.
RunningPointer begin(const ModelPointer& model, ParsedCall parsed, Clock::time_point deadline,
                     std::string_view route, std::function<void(const RunningPointer&)> ready);

/// Nobody needs it. To be called by the thread, or the strand, that began it.
void cancel(Running& running);

/// The answer of a call that is ready, or the first error of it. Once.
HttpResponse answer_of(Running& running, Dialect dialect, const HttpRequest& request);

/// begin(), and answers the exchange. Cancels what is left when the client goes. Call it on a
/// thread of the transport, in the handler. What is wrong at once is thrown.
void run(const ModelPointer& model, ParsedCall parsed, const ExchangePointer& exchange,
         const Limits& limits, Dialect dialect, std::string_view route);

}  // namespace toto::server
