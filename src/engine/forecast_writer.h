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
  std::span<float> array = {};  // takes the place of the vectors of statistics in `out`
};

/// As ForecastOptions::progress.
using Progress = std::function<bool(std::size_t done, std::size_t total)>;

/// Quantile levels of a request.
struct AskedLevels {
  std::vector<double> given;  // of the options
  bool median = true;         // selected
  std::vector<double> asked;  // ascending, each once
  std::vector<double> wide;   // the same, with the median in its place where it is selected
  std::size_t median_at = 0;  // of `wide`; its size: there is none
};

/// Where the statistics of a series go; null: nowhere. Each is [V][H] with a distance from variate
/// to variate, quantiles also from level to level.
struct StatisticsTarget {
  float* mean = nullptr;
  float* median = nullptr;
  float* std = nullptr;
  float* quantiles = nullptr;
  std::size_t variate = 0, level = 0;
  std::size_t levels = 0;
};

class ForecastWriter final : public ResultSink {
 public:
  ForecastWriter(const Network& net, const ModelDefaults& defaults);

  /// Starts a call, and fills `requests` (seeds, levels, trajectories) for the engine; all of them
  /// must outlive it. The jobs must be alike. `progress`: null or empty for none. `handed_over`, of
  /// ResultSink: likewise.
  void start(std::span<const ForecastJob> jobs, const Progress* progress,
             std::vector<SeriesRequest>& requests,
             const std::function<void()>* handed_over = nullptr);
  /// What the engine is asked for one series, levels excepted.
  [[nodiscard]] SeriesRequest request_of(const Series& series,
                                         const ForecastOptions& options) const;
  /// What jobs like this one have in common.
  [[nodiscard]] Generation generation_of(const ForecastOptions& options) const;
  /// Whether two jobs of a model with these defaults can go through the engine together.
  [[nodiscard]] static bool alike(const ForecastOptions& a, const ForecastOptions& b,
                                  const ModelDefaults& defaults);

  /// Where the statistics of a job go. Its `out` has been prepared, or says the sizes.
  [[nodiscard]] static StatisticsTarget target_of(const ForecastJob& job);

  void handed_over() override;
  /// Sizes of the answer to one request.
  void expect(std::size_t request) override;
  void results(const SeriesResults& results) override;
  [[nodiscard]] bool concurrent() const override { return !on_host_; }
  void progress(std::size_t done, std::size_t total) override;

 private:
  /// Options that ask for the same share an entry: there are few, however many jobs there are.
  [[nodiscard]] const AskedLevels& add_levels(const ForecastOptions& options);
  [[nodiscard]] const AskedLevels* find_levels(const ForecastOptions& options) const;
  [[nodiscard]] std::size_t exact_steps(const ForecastOptions& options) const;
  [[nodiscard]] static bool exact(const ForecastOptions& options);
  [[nodiscard]] bool exact_on_host() const;
  static void put_steps(const AskedLevels& levels, const StatisticsTarget& to, std::size_t cell,
                        std::span<const float> from, std::size_t stride, std::size_t count,
                        bool exact);
  static void put_mean(const SeriesResults& r, const Forecast& f, const StatisticsTarget& to);
  static void put_samples(const SeriesResults& r, Forecast& f);
  void put_parameters(const SeriesResults& r, Forecast& f) const;
  void exact_from_parameters(const SeriesResults& r, const AskedLevels& levels, const Forecast& f,
                             const StatisticsTarget& to);
  void sampled_from_samples(const SeriesResults& r, const AskedLevels& levels, const Forecast& f,
                            const StatisticsTarget& to);
  static void put_covariates(const ForecastJob& job, const StatisticsTarget& to);
  static void check_finite(const Forecast& f, const StatisticsTarget& from);

  const Network& net_;
  const ModelDefaults defaults_;
  std::size_t components_;
  std::span<const ForecastJob> jobs_;
  const Progress* progress_ = nullptr;
  const std::function<void()>* handed_over_ = nullptr;
  std::vector<AskedLevels> levels_;  // of the call, the first levels_used_ of them
  std::size_t levels_used_ = 0;
  bool on_host_ = false;  // some statistics of the call are formed here
  // Where a backend cannot form statistics of so many components or samples.
  Mixture mixture_{0};
  std::vector<double> wide_, found_;
  std::vector<float> column_, step_;
};

}  // namespace toto
