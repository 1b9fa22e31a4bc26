// SPDX-License-Identifier: Apache-2.0
// What options are refused, whoever forecasts.
#include <fmt/format.h>

#include "engine/forecast_jobs.h"
#include "engine/guards.h"
#include "engine/views.h"

namespace toto {
namespace {

constexpr std::size_t kMaxHorizon = 100000;
constexpr std::size_t kMaxSamples = 65536;
constexpr std::size_t kMaxLevels = 1000;

}  // namespace

void check_options(const ForecastOptions& options) {
  if (options.horizon == 0 || options.horizon > kMaxHorizon) {
    throw Error(ExitStatus::usage, "invalid_horizon",
                fmt::format("expected 1 to {} steps, found {}", kMaxHorizon, options.horizon));
  }
  if (!options.mean_only && (options.num_samples == 0 || options.num_samples > kMaxSamples)) {
    throw Error(
        ExitStatus::usage, "invalid_samples",
        fmt::format("expected 1 to {} samples, found {}", kMaxSamples, options.num_samples));
  }
  if (options.levels.size() > kMaxLevels) {
    throw Error(ExitStatus::usage, "invalid_quantile",
                fmt::format("expected at most {} quantile levels, found {}", kMaxLevels,
                            options.levels.size()));
  }
  check_adaptation(options);
  check_views(options);
  for (const double level : options.levels) {
    if (level > 0 && level < 1) continue;
    throw Error(ExitStatus::usage, "invalid_quantile",
                fmt::format("expected a level between 0 and 1, both excluded; found {}", level));
  }
}

}  // namespace toto
