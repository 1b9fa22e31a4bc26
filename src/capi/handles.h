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

/// Messages to callbacks of C, warnings to one and the rest to the other. Empty where both are
/// NULL.
inline LogSink lines_to(toto_message_fn warning, toto_message_fn info, void* user) {
  if (warning == nullptr && info == nullptr) return {};
  return [warning, info, user](const LogEvent& event) {
    const toto_message_fn callback = event.severity == Severity::warning ? warning : info;
    if (callback != nullptr) callback(user, std::string(event.message).c_str());
  };
}

}  // namespace toto::capi
