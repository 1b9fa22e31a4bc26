// SPDX-License-Identifier: Apache-2.0
// toto::Forecaster: checks a request, runs the engine, collects statistics.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "forecast/collect.h"
#include "forecast/engine.h"
#include "model/model_impl.h"
#include "toto/forecast.hpp"

namespace toto {
namespace {

constexpr std::size_t kMaxHorizon = 100000;
constexpr std::size_t kMaxSamples = 65536;
constexpr std::size_t kMaxLevels = 1000;

void check(const ForecastOptions& options) {
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
  for (const float level : options.levels) {
    if (level > 0.0F && level < 1.0F) continue;
    throw Error(ExitStatus::usage, "invalid_quantile",
                fmt::format("expected a level between 0 and 1, both excluded; found {}", level));
  }
}

}  // namespace

struct Forecaster::Impl {
  explicit Impl(Model from) : model(std::move(from)), engine(*model.impl().net) {}

  void check_ids(std::span<const Series> series) {
    ids.clear();
    for (const Series& s : series) ids.push_back(s.id);
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    if (twice == ids.end()) return;
    throw Error(ExitStatus::bad_data, "duplicate_id", "two series have this id",
                fmt::format("series '{}'", *twice),
                "ids address the random numbers: give every series its own");
  }

  Model model;
  Engine engine;
  std::vector<std::string_view> ids;
  std::vector<float> levels;
};

Forecaster::Forecaster(Model model) : impl_(std::make_unique<Impl>(std::move(model))) {}
Forecaster::~Forecaster() = default;
Forecaster::Forecaster(Forecaster&&) noexcept = default;
Forecaster& Forecaster::operator=(Forecaster&&) noexcept = default;

const Model& Forecaster::model() const { return impl_->model; }

void Forecaster::forecast(std::span<const Series> series, const ForecastOptions& options,
                          std::vector<Forecast>& out) {
  check(options);
  impl_->check_ids(series);
  impl_->levels = options.levels;
  std::sort(impl_->levels.begin(), impl_->levels.end());
  impl_->levels.erase(std::unique(impl_->levels.begin(), impl_->levels.end()), impl_->levels.end());

  const Toto1& net = *impl_->model.impl().net;
  out.resize(series.size());
  Collector collector(series, options, impl_->levels, net.config().patch_size,
                      static_cast<std::size_t>(net.config().components), out);
  Generation generation;
  generation.horizon = options.horizon;
  generation.mean = options.mean_only;
  generation.trajectories = options.mean_only     ? 1
                            : collector.sampled() ? static_cast<std::int32_t>(options.num_samples)
                                                  : 0;
  generation.cached = options.decode == Decode::cached;
  generation.seed = options.seed;
  generation.align = options.align;
  const std::scoped_lock turn(impl_->model.impl().turn);
  impl_->engine.run(series, generation, Limits{}, collector);
}

std::vector<Forecast> Forecaster::forecast(std::span<const Series> series,
                                           const ForecastOptions& options) {
  std::vector<Forecast> out;
  forecast(series, options, out);
  return out;
}

}  // namespace toto
