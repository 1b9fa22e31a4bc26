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
  /// Brings the results of the engine for job `index` of these into the job that was given. Several
  /// threads may do so at once, for several jobs. Throws Error (70) nonfinite_forecast where
  /// results leave the range of float.
  void finish(std::size_t index);

 private:
  /// One job.
  struct Adapted {
    const ForecastJob* given = nullptr;
    Series series;
    ForecastOptions options;  // with a longer horizon
    Forecast longer;          // of it
    std::size_t gap = 0;
    bool scaled = false;
    std::vector<double> scale;            // [V]
    std::vector<double> lowest, highest;  // [V] of what is observed of the context
    std::vector<float> values, future;
    std::vector<std::uint8_t> future_mask;  // of those, where some are not known
    std::vector<std::uint8_t> mask;
    std::vector<std::int32_t> groups;
  };

  static void adapt(Adapted& job, ForecastJob& to);
  static void choose_scales(Adapted& job, const Series& s, std::size_t kept);
  static void cut(Adapted& job, const Series& s, std::size_t kept);

  std::vector<Adapted> all_;
  std::vector<ForecastJob> jobs_;
};

/// Takes results for a writer, and finishes the jobs that they are of while they are near.
class AdaptedResults final : public ResultSink {
 public:
  AdaptedResults(ForecastWriter& writer, AdaptedJobs& jobs) : writer_(writer), jobs_(jobs) {}
  void handed_over() override { writer_.handed_over(); }
  void expect(std::size_t request) override { writer_.expect(request); }
  void results(const SeriesResults& results) override {
    writer_.results(results);
    jobs_.finish(results.request);
  }
  [[nodiscard]] bool concurrent() const override { return writer_.concurrent(); }
  void progress(std::size_t done, std::size_t total) override { writer_.progress(done, total); }

 private:
  ForecastWriter& writer_;
  AdaptedJobs& jobs_;
};

/// Whether the arrays have the sizes that the series says. The engine refuses others.
bool fits(const Series& series, std::size_t horizon);

/// Steps at the end of a series at which no variate that is forecast is observed. 0 where nothing
/// at all is observed.
std::size_t missing_end(const Series& series);

}  // namespace toto
