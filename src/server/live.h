// SPDX-License-Identifier: Apache-2.0
// /v1/series: live series over HTTP.
#pragma once

#include "server/anomalies.h"
#include "server/live_store.h"
#include "server/run.h"

namespace toto::server {

/// Answers on paths below /v1/series. What it refers to must outlive it and every request.
class Live {
 public:
  Live(LiveStore& store, Background& background, const Models& models, const Limits& limits)
      : store_(store), background_(background), models_(models), limits_(limits) {}

  void list(const ExchangePointer& exchange) const;
  void put(const ExchangePointer& exchange, const std::string& id);
  void append(const ExchangePointer& exchange, const std::string& id);
  void remove(const ExchangePointer& exchange, const std::string& id);
  void get(const ExchangePointer& exchange, const std::string& id) const;
  void forecast(const ExchangePointer& exchange, const std::string& id) const;
  void anomalies(const ExchangePointer& exchange, const std::string& id);

 private:
  LiveStore& store_;
  Background& background_;
  const Models& models_;
  const Limits& limits_;
};

/// The query of GET .../forecast as a call for this series. Throws Error.
ParsedCall parse_live_forecast(const HttpRequest& request, const LiveSeries& series,
                               const Limits& limits);

}  // namespace toto::server
