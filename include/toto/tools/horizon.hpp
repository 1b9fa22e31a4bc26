// SPDX-License-Identifier: Apache-2.0
// What trajectories say about the horizon as a whole: their sum, mean, maximum or minimum, and
// whether they cross a level. It means something where the steps of a trajectory go together
// (Paths::coherent); of independent draws sums vary too little, and levels are crossed too often.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"
#include "toto/tools/output.hpp"

#pragma GCC visibility push(default)
namespace toto::data {

enum class HorizonAggregate { none, sum, mean, max, min };

struct HorizonQuestion {
  HorizonAggregate aggregate = HorizonAggregate::none;
  std::optional<double> above = {}, below = {};  ///< levels, in the units of the series
  std::vector<double> levels = {};               ///< of the quantiles, in [0, 1]
  [[nodiscard]] bool asks() const {
    return aggregate != HorizonAggregate::none || above.has_value() || below.has_value();
  }
};

/// Of one variate. Shares are of the trajectories.
struct HorizonAnswer {
  double mean = 0;                ///< of the aggregate
  std::vector<double> quantiles;  ///< of the aggregate, linear between the trajectories
  /// Share that is above the level at any step, and at each step; likewise below. Empty where it
  /// was not asked for.
  double above_anywhere = 0, below_anywhere = 0;
  std::vector<double> above, below;
};

/// `offset` is added to every value (Series::value_offsets). Throws Error (2) no_samples where the
/// forecast has no trajectories (ForecastOptions::keep_samples).
HorizonAnswer over_horizon(const Forecast& forecast, std::size_t variate,
                           const HorizonQuestion& question, double offset = 0);

/// One row for each number: unique_id, (variate,) ds, statistic, value. `ds` is empty where it is
/// of the whole horizon: sum, sum_q0.1 ..., above_anywhere; `above` has a row for each step.
void write_horizon_csv(const TextSink& sink, std::span<const TimeSeries> series,
                       std::span<const Forecast> forecasts, const HorizonQuestion& question);

/// The same as one object.
void write_horizon_json(const TextSink& sink, std::span<const TimeSeries> series,
                        std::span<const Forecast> forecasts, const HorizonQuestion& question);

/// The word for it; empty for none.
std::string_view word(HorizonAggregate aggregate);

}  // namespace toto::data
#pragma GCC visibility pop
