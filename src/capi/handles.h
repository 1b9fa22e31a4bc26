// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of toto.h are.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/log.hpp"
#include "toto/model.hpp"
#include "toto/toto.h"

struct toto_model {
  toto::Model model;
};

struct toto_forecaster {
  mutable std::mutex turn;
  toto::Forecaster forecaster;
};

struct toto_forecast {
  std::vector<toto::Forecast> all;  // the first `count` are results; more is memory to use again
  std::size_t count = 0;
};

namespace toto::capi {

/// Messages to callbacks of C: warnings to one, the rest to the other. What variables mean goes to
/// `warning` too: a model has no other callback. Empty where both are NULL.
inline LogSink lines_to(toto_message_fn warning, toto_message_fn info, void* user) {
  if (warning == nullptr && info == nullptr) return {};
  return [warning, info, user](const LogEvent& event) {
    const bool warns = event.severity == Severity::warning || event.topic == Topic::settings;
    const toto_message_fn callback = warns ? warning : info;
    if (callback != nullptr) callback(user, std::string(event.message).c_str());
  };
}

}  // namespace toto::capi
