// SPDX-License-Identifier: Apache-2.0
// What stands behind toto::Model.
#pragma once

#include <memory>
#include <mutex>

#include "model/toto1.h"
#include "toto/model.hpp"

namespace toto {

struct Model::Impl {
  ModelInfo info;
  std::unique_ptr<Toto1> net;
  /// A backend has one set of scratch memory and one team of threads: forecasts take turns.
  mutable std::mutex turn;
};

}  // namespace toto
