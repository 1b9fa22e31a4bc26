// SPDX-License-Identifier: Apache-2.0
// toto::Forecaster: checks what it is given, and hands it on as jobs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/philox.h"
#include "engine/forecast_jobs.h"
#include "engine/forecaster_impl.h"
#include "settings/complete.h"

namespace toto {
namespace {

void check_outputs(std::size_t series, std::size_t found) {
  if (found == series) return;
  throw Error(ExitStatus::usage, "invalid_output",
              fmt::format("expected {} elements, one for each series, found {}", series, found));
}

/// True only where no two series have the same id: they are put into a table of `places`, which is
/// kept for its memory. False too where ids crowd together there.
bool ids_differ(std::span<const Series> series, std::vector<std::uint32_t>& places) {
  places.assign(std::bit_ceil(2 * series.size() + 1), 0);
  const std::size_t last = places.size() - 1;
  std::size_t looks = 8 * series.size();
  for (std::size_t i = 0; i < series.size(); ++i) {
    std::size_t at = series_key(series[i].id) & last;
    for (; places[at] != 0; at = (at + 1) & last) {
      if (--looks == 0 || series[places[at] - 1].id == series[i].id) return false;
    }
    places[at] = static_cast<std::uint32_t>(i + 1);
  }
  return true;
}

/// The memory of `impl` is used again.
void check_ids(std::span<const Series> series, Forecaster::Impl& impl) {
  if (series.size() < 2 || ids_differ(series, impl.places)) return;
  std::vector<std::string_view>& ids = impl.ids;
  ids.clear();
  for (const Series& s : series) ids.push_back(s.id);
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return;
  throw Error(ExitStatus::bad_data, "duplicate_id", "two series have this id",
              fmt::format("series '{}'", *twice),
              "ids address the random numbers: give every series its own");
}

void check_alive(const std::unique_ptr<Forecaster::Impl>& impl) {
  if (impl) return;
  throw Error(ExitStatus::usage, "moved_from", "this forecaster was moved from", "toto::Forecaster",
              "use what it was moved to");
}

}  // namespace

Forecaster::Forecaster(Model model, const ForecasterOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), complete(options))) {
  impl_->start();
}
Forecaster::~Forecaster() { retire(std::move(impl_)); }
Forecaster::Forecaster(Forecaster&&) noexcept = default;
Forecaster& Forecaster::operator=(Forecaster&& other) noexcept {
  if (this != &other) retire(std::exchange(impl_, std::move(other.impl_)));
  return *this;
}

const Model& Forecaster::model() const {
  check_alive(impl_);
  return impl_->model;
}

void Forecaster::forecast(std::span<const Series> series, const ForecastOptions& options,
                          std::span<Forecast> out) {
  check_alive(impl_);
  check_options(options);
  check_outputs(series.size(), out.size());
  check_ids(series, *impl_);
  impl_->jobs.clear();
  for (std::size_t i = 0; i < series.size(); ++i) {
    impl_->jobs.push_back({&series[i], &options, &out[i]});
  }
  forecast_jobs(*this, impl_->jobs, options.progress);
}

void forecast_jobs(Forecaster& forecaster, std::span<const ForecastJob> jobs,
                   const Progress& progress) {
  std::unique_ptr<Forecaster::Impl>& impl = forecaster.impl_;
  const Forecaster::Impl::Call call{0, jobs, &progress};
  const std::string lack = impl->try_forecast(call);
  if (lack.empty()) return;
  // The jobs, which may be in the memory of what retires, outlive it.
  std::unique_ptr<Forecaster::Impl> cpu = impl->on_cpu(lack);
  std::swap(impl, cpu);
  impl->forecast(call);
  retire(std::move(cpu));
}

void Forecaster::forecast(std::span<const Series> series, std::span<const ForecastOptions> options,
                          std::span<Forecast> out) {
  check_alive(impl_);
  check_outputs(series.size(), options.size());
  check_outputs(series.size(), out.size());
  for (const ForecastOptions& o : options) check_options(o);
  check_ids(series, *impl_);
  Progress progress;
  std::size_t before = 0;  // units of the calls that have ended
  std::size_t ended = 0;
  if (!options.empty() && options.front().progress) {
    progress = [&](std::size_t done, std::size_t total) {
      ended = total;
      return options.front().progress(before + done, before + total);
    };
  }
  const ModelDefaults& defaults = impl_->model.info().defaults;
  std::vector<bool> taken(series.size(), false);
  for (std::size_t first = 0; first < series.size(); ++first) {
    if (taken[first]) continue;
    impl_->jobs.clear();
    for (std::size_t i = first; i < series.size(); ++i) {
      if (taken[i] || !ForecastWriter::alike(options[first], options[i], defaults)) continue;
      taken[i] = true;
      impl_->jobs.push_back({&series[i], &options[i], &out[i]});
    }
    forecast_jobs(*this, impl_->jobs, progress);
    before += ended;
  }
}

void Forecaster::forecast(std::span<const Series> series, const ForecastOptions& options,
                          std::span<float> out) {
  check_alive(impl_);
  check_options(options);
  if (options.keep_samples || options.keep_parameters) {
    throw Error(ExitStatus::usage, "invalid_output",
                "samples and parameters have no place in an array of statistics", {},
                "keep none, or take Forecasts");
  }
  std::size_t size = 0;
  for (const Series& s : series) size += array_size(s.variates, options);
  if (out.size() != size) {
    throw Error(ExitStatus::usage, "invalid_output",
                fmt::format("expected an array of {} numbers, found {}", size, out.size()));
  }
  check_ids(series, *impl_);
  impl_->unused.resize(series.size());
  impl_->jobs.clear();
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::size_t own = array_size(series[i].variates, options);
    impl_->jobs.push_back({&series[i], &options, &impl_->unused[i], out.first(own)});
    out = out.subspan(own);
  }
  forecast_jobs(*this, impl_->jobs, options.progress);
}

std::vector<Forecast> Forecaster::forecast(std::span<const Series> series,
                                           const ForecastOptions& options) {
  std::vector<Forecast> out(series.size());
  forecast(series, options, out);
  return out;
}

void Forecaster::warm_up(std::span<const WarmupShape> shapes, const ForecastOptions& options) {
  check_alive(impl_);
  impl_->warmed = false;  // what is built now is meant to be
  for (const WarmupShape& shape : shapes) {
    const std::size_t cells = std::max<std::size_t>(shape.context * shape.variates, 1);
    std::vector<float> values(cells);
    for (std::size_t i = 0; i < cells; ++i) values[i] = static_cast<float>(i % 7);
    std::vector<std::string> ids;
    ids.reserve(shape.batch);
    for (std::size_t i = 0; i < shape.batch; ++i) ids.push_back(fmt::format("warm-up {}", i));
    std::vector<Series> series(shape.batch);
    for (std::size_t i = 0; i < shape.batch; ++i) {
      series[i].id = ids[i];
      series[i].variates = shape.variates;
      series[i].steps = shape.context;
      series[i].values = values;
    }
    ForecastOptions once = options;
    once.horizon = shape.horizon;
    once.progress = {};
    const auto out = forecast(series, once);
  }
  impl_->warmed = true;
}

std::vector<WarmupShape> Forecaster::known_shapes() const {
  check_alive(impl_);
  std::vector<WarmupShape> shapes;
  for (const PlanShape& s : impl_->entry.shapes) {
    shapes.push_back({s.context, s.horizon, s.variates, s.batch});
  }
  return shapes;
}

Counters Forecaster::counters() const {
  check_alive(impl_);
  return impl_->counters();
}

}  // namespace toto
