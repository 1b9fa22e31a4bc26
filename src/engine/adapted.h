// SPDX-License-Identifier: Apache-2.0
// What a forecast does beside the model's arithmetic: a missing end, the input scale, guards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/forecast_writer.h"
#include "toto/forecast.hpp"

namespace toto {

/// The jobs of a call as the engine is to see them, and the way back. Memory is used again.
class AdaptedJobs {
 public:
  /// Jobs that take the place of `jobs`, as many and in their order. They and the results that are
  /// written to them belong to this object; `jobs` must outlive it. Series that cannot be forecast
  /// pass unchanged, and the engine refuses them. Throws Error (65) missing_end_too_long.
  std::span<const ForecastJob> start(const Backend& backend, std::span<const ForecastJob> jobs);
  /// Brings the results of the engine into the jobs that were given. Throws Error (70)
  /// nonfinite_forecast where results leave the range of float.
  void finish(const Backend& backend);

 private:
  /// One job.
  struct Adapted {
    const ForecastJob* given = nullptr;
    Series series;
    ForecastOptions options;  // with a longer horizon
    Forecast longer;          // of it
    std::size_t gap = 0;
    std::vector<double> scale;            // [V]
    std::vector<double> lowest, highest;  // [V] of what is observed of the context
    std::vector<float> values, future;
    std::vector<std::uint8_t> future_mask;  // of those, where some are not known
    std::vector<std::uint8_t> mask;
    std::vector<std::int32_t> groups;
  };

  static void adapt(Adapted& job, ForecastJob& to);
  static void choose_scales(Adapted& job, const Series& s, std::size_t kept);
  static void cut(Adapted& job, const Series& s, std::size_t kept, bool scaled);

  std::vector<Adapted> all_;
  std::vector<ForecastJob> jobs_;
};

/// Whether the arrays have the sizes that the series says. The engine refuses others.
bool fits(const Series& series, std::size_t horizon);

/// Steps at the end of a series at which no variate that is forecast is observed. 0 where nothing
/// at all is observed.
std::size_t missing_end(const Series& series);

}  // namespace toto
