// SPDX-License-Identifier: Apache-2.0
// Which path is answered by what.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "server/access_log.h"
#include "server/call.h"
#include "server/errors.h"
#include "server/live.h"
#include "server/metrics.h"
#include "server/models.h"

namespace toto::server {

struct AppOptions {
  Limits limits;
  std::size_t max_body_bytes = std::size_t{16} << 20;  ///< once decompressed
  std::vector<std::string> api_keys;                   ///< none: everybody may ask
  LineSink log;                                        ///< empty: no lines
  LiveOptions live;  ///< of the series that grow; the context is that of `limits`
};

/// Answers requests. Safe to use from many threads.
class App {
 public:
  /// `models` and `metrics` must outlive it, and every request. Throws what LiveStore throws.
  App(AppOptions options, Models& models, Metrics& metrics);

  void handle(const ExchangePointer& exchange);
  /// Whether the body is to be read piece by piece (TransportHooks::streams).
  static bool streams(const HttpRequest& request);
  /// After the answer: counts and logs it.
  void done(const HttpRequest& request, const HttpResponse& response, std::size_t bytes, bool sent);
  /// From now on readiness says 503.
  void set_draining() { draining_ = true; }
  /// What is computed in the background is told to stop, and answered.
  void stop_background() { background_.stop(); }
  /// Ends its threads. To be called while the transport still takes answers.
  void stop() {
    background_.stop();
    store_.stop();
  }

 private:
  static constexpr std::size_t kMaxBackground = 64;  // searches for anomalies that wait
  struct Route;
  static const std::vector<Route>& routes();

  void answer(const ExchangePointer& exchange, Dialect dialect);
  void forecast(const ExchangePointer& exchange, const struct Protocol& protocol);
  [[nodiscard]] bool allowed(const HttpRequest& request) const;
  void decode(Exchange& exchange) const;

  void anomalies(const ExchangePointer& exchange);

  HttpResponse health() const;
  HttpResponse model_list() const;
  HttpResponse model(std::string_view name) const;
  HttpResponse kserve_models() const;
  HttpResponse oip_server() const;
  HttpResponse oip_ready(std::string_view model) const;

  AppOptions options_;
  Models& models_;
  Metrics& metrics_;
  std::atomic<bool> draining_{false};
  const Clock::time_point started_ = Clock::now();
  LiveStore store_;
  Background background_{kMaxBackground};
  Live live_;
};

/// Whether `given` is one of `keys`; takes the same time wherever they differ.
bool has_key(const std::vector<std::string>& keys, std::string_view given);

}  // namespace toto::server
