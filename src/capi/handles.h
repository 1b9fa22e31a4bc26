// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of toto.h are.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "toto/forecast.hpp"
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

/// Lines to a callback of C. Empty where there is none.
inline std::function<void(std::string_view)> lines_to(toto_message_fn callback, void* user) {
  if (callback == nullptr) return {};
  return [callback, user](std::string_view line) { callback(user, std::string(line).c_str()); };
}

}  // namespace toto::capi
