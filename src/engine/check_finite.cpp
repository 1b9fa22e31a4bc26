// SPDX-License-Identifier: Apache-2.0
#include "engine/check_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "backend/cpu/series_kernels.h"
#include "toto/error.hpp"

namespace toto {

void check_finite(std::string_view id, std::span<const float> values, std::size_t steps,
                  std::span<const float> future) {
  const auto refuse = [&](const std::string& message, std::string_view remedy) {
    throw Error(ExitStatus::bad_data, "not_finite", message, fmt::format("series '{}'", id),
                remedy);
  };
  const cpu::SeriesKernels& kernels = cpu::series_kernels();
  if (!kernels.all_finite(values.data(), values.size())) {
    const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    const auto i = static_cast<std::size_t>(bad - values.begin());
    refuse(fmt::format("variate {}, step {} is not a finite number", i / steps, i % steps),
           "fill missing values and set their mask to 0");
  }
  if (!kernels.all_finite(future.data(), future.size()))
    refuse("a future covariate is not a finite number", "");
}

}  // namespace toto
