// SPDX-License-Identifier: Apache-2.0
// Gaps inside contexts, filled by what the model forecasts from the steps before them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "engine/forecast_writer.h"
#include "toto/forecast.hpp"

namespace toto {

/// The jobs of a call with their gaps filled (ForecastOptions::gaps_by_model).
class FilledJobs {
 public:
  /// Forecasts jobs that are alike, without views and gaps.
  using Run = std::function<void(std::span<const ForecastJob>)>;

  /// Jobs that take the place of `jobs`, which must outlive them: those without gaps as they are.
  /// Gaps are filled from the oldest on, one of every series in each call of `run`.
  std::span<const ForecastJob> start(std::span<const ForecastJob> jobs, const Run& run);
  /// Says in the results what was filled.
  void finish();

 private:
  struct Gap {
    std::size_t variate = 0, begin = 0, end = 0;
  };
  struct Filled {
    std::size_t job = 0;
    const ForecastJob* given = nullptr;
    std::vector<Gap> gaps;
    std::vector<float> values;
    std::vector<float> before;  // the steps before a gap, [V][begin]
    std::vector<std::uint8_t> mask;
    std::vector<std::int32_t> groups;
    Series series, prefix;
    ForecastOptions options;
    Forecast out;
    std::size_t steps = 0;
  };

  static void find_gaps(Filled& filled);
  static void make_prefix(Filled& filled, const Gap& gap);

  std::vector<Filled> filled_;
  std::vector<ForecastJob> jobs_, calls_;
};

}  // namespace toto
