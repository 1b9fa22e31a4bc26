// SPDX-License-Identifier: Apache-2.0
// How large a batch can be.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"

namespace toto::cuda {

/// Upper bounds of a batch, for the size of a launch.
struct Extent {
  const LiveBatch* live = nullptr;
  std::int32_t rows = 0;
  std::int32_t lanes = 0;
  std::int32_t groups = 0;  // of queries in time attention, of all tokens
  std::int32_t last_groups = 0;
  std::int32_t keys = 0;  // as Batch has them
};

}  // namespace toto::cuda
