// SPDX-License-Identifier: Apache-2.0
// From parameters and trajectories to a Forecast: exact statistics inside the first patch,
// statistics of the trajectories beyond it.
#pragma once

#include <span>
#include <vector>

#include "forecast/engine.h"
#include "forecast/mixture.h"
#include "forecast/statistics.h"
#include "toto/forecast.hpp"

namespace toto {

class Collector final : public Sink {
 public:
  /// `out` has one entry for each series. Levels are ascending.
  Collector(std::span<const Series> series, const ForecastOptions& options,
            std::span<const float> levels, std::int32_t patch, std::size_t components,
            std::span<Forecast> out);

  /// Whether trajectories are needed at all.
  [[nodiscard]] bool sampled() const { return sampled_; }
  [[nodiscard]] bool wants_parameters(std::int32_t iteration) const override;
  void parameters(const PatchView& at, std::span<const double> params, std::span<const double> loc,
                  std::span<const double> scale) override;
  void values(const PatchView& at, std::span<const double> y) override;
  void finished(std::size_t series) override;
  void progress(std::size_t done, std::size_t total) override;

 private:
  void start(Forecast& f, const Series& series, std::size_t components) const;
  void exact_step(Forecast& f, std::size_t cell, std::span<const double> params, double loc,
                  double scale);
  void sampled_step(Forecast& f, std::size_t cell);
  void put_quantiles(Forecast& f, std::size_t cell) const;
  void keep_parameters(Forecast& f, const PatchView& at, std::span<const double> params,
                       std::span<const double> loc, std::span<const double> scale) const;
  void put_covariates(Forecast& f, const Series& series) const;

  std::span<const Series> series_;
  const ForecastOptions& options_;
  std::span<const float> levels_;
  std::span<Forecast> out_;
  Mixture mixture_;
  std::size_t exact_steps_ = 0;
  bool sampled_ = false;             // some statistics come from trajectories
  std::vector<float> column_;        // one step of all trajectories
  std::vector<double> wide_levels_;  // ascending: the levels, and the median in its place
  std::size_t median_at_ = 0;        // of wide_levels_
  std::vector<double> found_;        // quantiles of one step
};

}  // namespace toto
