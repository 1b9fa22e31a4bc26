// SPDX-License-Identifier: Apache-2.0
// Values of a test as views, where a backend's memory is the host's.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/view.h"

namespace toto::test {

/// [..][width]
template <typename T>
View in_rows(std::vector<T>& values, std::int64_t width) {
  const auto rows = static_cast<std::int64_t>(values.size()) / width;
  return view_of(values.data(), static_cast<std::int32_t>(rows), width);
}
template <typename T>
ConstView in_rows(const std::vector<T>& values, std::int64_t width) {
  const auto rows = static_cast<std::int64_t>(values.size()) / width;
  return view_of(values.data(), static_cast<std::int32_t>(rows), width);
}

}  // namespace toto::test
