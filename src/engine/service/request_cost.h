// SPDX-License-Identifier: Apache-2.0
// What a request takes, from the sizes that the engine itself goes by.
#pragma once

#include "engine/forecast_writer.h"
#include "models/network.h"
#include "toto/service.hpp"

namespace toto {

class RequestCost {
 public:
  RequestCost(const Network& net, const ModelDefaults& defaults);
  /// Of a request that has been checked. `bytes`: with one trajectory at a time, which is what the
  /// engine comes down to where memory is short; 0 where they are not wanted. Safe to use from many
  /// threads.
  [[nodiscard]] Estimate of(const Request& request, bool bytes) const;

 private:
  const Network& net_;
  std::unique_ptr<const Program> program_;  // knows the sizes
  ForecastWriter writer_;                   // knows what options mean
};

}  // namespace toto
