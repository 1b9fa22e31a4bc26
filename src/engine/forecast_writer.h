// SPDX-License-Identifier: Apache-2.0
// From results of the engine to Forecasts: the only place that knows both layouts.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "statistics/mixture.h"
#include "toto/forecast.hpp"

namespace toto {

/// One series of a call: what is asked of it, and where the answer goes.
struct ForecastJob {
  const Series* series = nullptr;
  const ForecastOptions* options = nullptr;
  Forecast* out = nullptr;
};

/// As ForecastOptions::progress.
using Progress = std::function<bool(std::size_t done, std::size_t total)>;

/// Quantile levels of a request.
struct AskedLevels {
  const ForecastOptions* options = nullptr;
  std::vector<double> asked;  // ascending, each once
  std::vector<double> wide;   // the same, with the median in its place
  std::size_t median_at = 0;  // of `wide`
};

class ForecastWriter final : public ResultSink {
 public:
  explicit ForecastWriter(const Network& net);

  /// Starts a call, and fills `requests` (seeds, levels, trajectories) for the engine; all of them
  /// must outlive it. The jobs must be alike. `progress`: null or empty for none.
  void start(std::span<const ForecastJob> jobs, const Progress* progress,
             std::vector<SeriesRequest>& requests);
  /// What the engine is asked for one series, levels excepted.
  [[nodiscard]] SeriesRequest request_of(const Series& series,
                                         const ForecastOptions& options) const;
  /// What jobs like this one have in common.
  [[nodiscard]] Generation generation_of(const ForecastOptions& options) const;
  /// Whether two jobs can go through the engine together.
  [[nodiscard]] static bool alike(const ForecastOptions& a, const ForecastOptions& b);

  void results(const SeriesResults& results) override;
  void progress(std::size_t done, std::size_t total) override;

 private:
  [[nodiscard]] const AskedLevels& levels_of(const ForecastOptions& options);
  [[nodiscard]] std::size_t exact_steps(const ForecastOptions& options) const;
  [[nodiscard]] static bool exact(const ForecastOptions& options);
  [[nodiscard]] bool exact_on_host() const;
  void prepare(const ForecastJob& job, const AskedLevels& levels) const;
  void put_step(const AskedLevels& levels, Forecast& f, std::size_t cell,
                std::span<const float> step, bool exact) const;
  void put_samples(const SeriesResults& r, const ForecastOptions& options, Forecast& f) const;
  void put_parameters(const SeriesResults& r, Forecast& f) const;
  void exact_from_parameters(const SeriesResults& r, const AskedLevels& levels, Forecast& f);
  void sampled_from_samples(const SeriesResults& r, const AskedLevels& levels, Forecast& f);
  static void put_covariates(const ForecastJob& job, Forecast& f);
  static void check_finite(const Forecast& f);

  const Network& net_;
  std::size_t components_;
  std::span<const ForecastJob> jobs_;
  const Progress* progress_ = nullptr;
  std::vector<AskedLevels> levels_;  // of the call, the first levels_used_ of them
  std::size_t levels_used_ = 0;
  // Where a backend cannot form statistics of so many components or samples.
  Mixture mixture_{0};
  std::vector<double> wide_, found_;
  std::vector<float> column_, step_;
};

}  // namespace toto
