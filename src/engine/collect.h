// SPDX-License-Identifier: Apache-2.0
// From parameters and trajectories to a Forecast: exact statistics inside the first patch,
// statistics of the trajectories beyond it.
#pragma once

#include <span>
#include <vector>

#include "engine/engine.h"
#include "statistics/mixture.h"
#include "statistics/statistics.h"
#include "toto/forecast.hpp"

namespace toto {

class Collector final : public Sink {
 public:
  Collector(const Backend& backend, const Toto1Config& config);

  /// Starts a request. `levels` ascending; `out` has one element for each series. All of them must
  /// outlive it.
  void reset(std::span<const Series> series, const ForecastOptions& options,
             std::span<const double> levels, std::span<Forecast> out);
  /// Whether trajectories are needed at all.
  [[nodiscard]] bool sampled() const { return sampled_; }

  [[nodiscard]] const WantedStatistics* wanted() const override { return &wanted_; }
  void results(const SeriesResults& results) override;
  void begin(std::size_t first, std::size_t count) override;
  [[nodiscard]] bool wants_parameters(std::int32_t iteration) const override;
  void parameters(const PatchView& at, std::span<const double> params, std::span<const double> loc,
                  std::span<const double> scale) override;
  void values(const PatchView& at, std::span<const double> y) override;
  void finish() override;
  void progress(std::size_t done, std::size_t total) override;

 private:
  /// What one thread needs to work out a step.
  struct Worker {
    Mixture mixture;
    std::vector<float> column;  // one step of all trajectories
    std::vector<double> found;  // quantiles at wide_levels_
  };
  void start(Forecast& f, const Series& series) const;
  void exact_step(Worker& worker, Forecast& f, std::size_t cell, std::span<const double> params,
                  double loc, double scale) const;
  void sampled_step(Worker& worker, Forecast& f, std::size_t cell, const float* all) const;
  void put_quantiles(Forecast& f, std::size_t cell, std::span<const double> found) const;
  /// `exact`: the step's statistics are exact ones, whose quantiles ascend but for rounding.
  void put_step(Forecast& f, std::size_t cell, std::span<const float> step, bool exact) const;
  void keep_parameters(Forecast& f, const PatchView& at, std::span<const double> params,
                       std::span<const double> loc, std::span<const double> scale) const;
  void put_covariates(Forecast& f, const Series& series) const;
  [[nodiscard]] float* samples_of(std::size_t series);

  const Backend& backend_;
  std::size_t patch_;
  std::size_t components_;
  std::vector<Worker> workers_;

  std::span<const Series> series_;
  const ForecastOptions* options_ = nullptr;
  std::span<const double> levels_;
  std::span<Forecast> out_;
  std::size_t exact_steps_ = 0;
  WantedStatistics wanted_;
  bool formed_ = false;              // statistics came from the backend
  bool sampled_ = false;             // some statistics come from trajectories
  std::vector<double> wide_levels_;  // ascending: the levels, and the median in its place
  std::size_t median_at_ = 0;        // of wide_levels_
  // Of the series between begin() and finish().
  std::size_t first_ = 0, count_ = 0;
  std::vector<float> samples_;          // where nobody asked for them: [series][num_samples][V][H]
  std::vector<std::size_t> sample_at_;  // of each series in samples_
};

}  // namespace toto
