// SPDX-License-Identifier: Apache-2.0
// What stands behind toto::Model.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "models/network.h"
#include "toto/model.hpp"

namespace toto {

struct Model::Impl {
  ModelInfo info;
  std::unique_ptr<Network> net;
  Mode mode = Mode::reduce_overhead;
  ContextCache kv_cache = ContextCache::shared;
  Precision precision = Precision::float32;
  std::string content_hash;    // of the weights
  double load_seconds = 0;     // that loading took, reading included
  std::string configuration;   // all that config.json decides
  mutable bool tuned = false;  // max-autotune has chosen kernel parameters; under `turn`
  /// A backend has one set of scratch memory and one team of threads: forecasts take turns. While a
  /// device computes one, the next may be made ready.
  mutable std::mutex turn;
  /// Loads the same model on the CPU (models/cpu_fallback.h); empty: there is nowhere else to go.
  std::function<std::shared_ptr<const Impl>()> load_cpu_fallback;
  mutable std::mutex cpu_fallback_turn;
  /// Once it has been loaded; under `cpu_fallback_turn`.
  mutable std::shared_ptr<const Impl> cpu_fallback;
};

}  // namespace toto
