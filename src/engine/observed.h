// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "toto/forecast.hpp"

namespace toto {

/// `cell`: variate · steps + step. Without a mask everything is observed.
inline bool observed(const Series& s, std::size_t cell) {
  return s.mask.empty() || s.mask[cell] != 0;
}

}  // namespace toto
