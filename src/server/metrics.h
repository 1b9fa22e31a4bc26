// SPDX-License-Identifier: Apache-2.0
// What Prometheus reads at /metrics.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/http.h"
#include "server/models.h"
#include "server/transport.h"

namespace toto::server {

class Metrics {
 public:
  /// `models` must outlive it.
  explicit Metrics(const Models& models);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// One answered request.
  void count(const HttpResponse& response, std::size_t body_bytes, double seconds, bool sent);
  /// An event of the engine's log: plan_built, graph_captured, ...
  void count_event(std::string_view code);
  /// What is asked for numbers of connections. Safe to call once, before text().
  void watch(std::function<TransportCounts()> transport);
  /// One more number, asked for in text(). Not after the first text().
  void add_gauge(std::string name, std::string help, std::function<double()> value);
  /// Prometheus's text format.
  [[nodiscard]] std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace toto::server
