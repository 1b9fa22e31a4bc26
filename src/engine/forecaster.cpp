// SPDX-License-Identifier: Apache-2.0
// toto::Forecaster: checks a request, runs the engine, collects statistics.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/log.h"
#include "core/stopwatch.h"
#include "engine/adapted.h"
#include "engine/autotune.h"
#include "engine/engine.h"
#include "engine/forecast_jobs.h"
#include "engine/guards.h"
#include "engine/plan_cache.h"
#include "engine/plan_table.h"
#include "models/cpu_fallback.h"
#include "models/model_impl.h"
#include "settings/complete.h"
#include "toto/forecast.hpp"

namespace toto {
namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

bool same_bits(const Forecast& a, const Forecast& b) {
  return same_bits(a.mean, b.mean) && same_bits(a.median, b.median) && same_bits(a.std, b.std) &&
         same_bits(a.quantiles, b.quantiles) && same_bits(a.samples, b.samples);
}

Error no_memory(std::string_view what) {
  return {ExitStatus::internal,
          "out_of_memory",
          what,
          {},
          "use a shorter context, fewer samples or fewer series at a time"};
}

}  // namespace

struct Forecaster::Impl {
  Impl(Model from, const ForecasterOptions& options)
      : asked(options),
        model(std::move(from)),
        strict(options.strict_counters),
        compute_twice(options.deterministic_checks),
        net(*model.impl().net),
        plans(net, options),
        engine(net, plans),
        writer(net),
        cache(options.plan_cache_dir,
              options.plan_cache_dir.empty() ? CachePolicy::never : options.plan_cache,
              options.log) {
    const Mode mode = model.impl().mode;
    engine.set_capturing(mode == Mode::reduce_overhead || mode == Mode::max_autotune);
    if (net.backend().capture() != nullptr) limits = {kDeviceRows, kDeviceKvBytes};
    latencies.reserve(kLatencies);
    key.model = model.impl().content_hash;
    key.isa = net.backend().isa();
    key.type = word(model.impl().precision);
    key.device = net.backend().name();
  }

  /// What earlier runs have left: kernel choices and shapes.
  void start() {
    const bool tune = model.impl().mode == Mode::max_autotune;
    if (model.impl().mode == Mode::eager) return;
    std::optional<PlanEntry> found = cache.load(key);
    if (found) {
      ++cache_loads;
      plans.log(Topic::cache, "plan_cache_loaded",
                fmt::format("plan cache: {} shapes, {} kernel choices", found->shapes.size(),
                            found->choices.size()));
      entry = std::move(*found);
    }
    const std::scoped_lock turn(model.impl().turn);
    if (tune && !model.impl().tuned) {
      const Stopwatch watch(autotune_seconds, "autotune");
      entry.choices = autotune(net, std::move(entry.choices), asked.log, autotune_runs);
      model.impl().tuned = true;
      if (autotune_runs > 0) cache.store(key, entry);
    }
  }

  /// Tells the plan cache about a shape that had to be planned.
  void remember_shape(std::span<const ForecastJob> given) {
    PlanShape shape;
    shape.batch = static_cast<std::uint32_t>(given.size());
    shape.samples = static_cast<std::uint32_t>(requests.front().trajectories);
    for (const ForecastJob& job : given) {
      const Series& s = *job.series;
      shape.horizon = std::max(shape.horizon, static_cast<std::uint32_t>(job.options->horizon));
      shape.variates = std::max(shape.variates, static_cast<std::uint32_t>(s.variates));
      shape.context = std::max(shape.context, static_cast<std::uint32_t>(s.steps));
    }
    if (std::find(entry.shapes.begin(), entry.shapes.end(), shape) != entry.shapes.end()) return;
    entry.shapes.insert(entry.shapes.begin(), shape);
    if (entry.shapes.size() > kKeptShapes) entry.shapes.pop_back();
    cache.store(key, entry);
  }

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

  void remember(double seconds) {
    if (latencies.size() < kLatencies) {
      latencies.push_back(seconds);
    } else {
      latencies[calls % kLatencies] = seconds;
    }
    ++calls;
  }

  /// Tells once what levels beyond the model's range give.
  void tell_levels(std::span<const double> levels, Tails tails) {
    const LevelRange range = net.level_range();
    constexpr double kSame = 1e-7;
    const auto outside = [&](double level) {
      return level < range.low - kSame || level > range.high + kSame;
    };
    if (told_levels || std::none_of(levels.begin(), levels.end(), outside)) return;
    told_levels = true;
    log_warning(
        asked.log, Topic::settings, "levels_out_of_range",
        fmt::format(
            "the model knows quantiles from {} to {}: levels beyond {}", range.low, range.high,
            tails == Tails::clamp ? "give these" : "are of exponential tails, an assumption"));
  }

  /// A forecast, in turn with those of others.
  void forecast(std::span<const ForecastJob> given, const Progress& progress) {
    const std::scoped_lock turn(model.impl().turn);
    double seconds = 0;
    {
      const Stopwatch watch(seconds, "forecast");
      const Growth before = growth();
      run(given, progress);
      if (strict && warmed) tell_if_not_steady(before);
      if (plans.builds() != before.builds) remember_shape(given);
    }
    if (compute_twice) check_deterministic(given, progress);
    remember(seconds);
    series_done += given.size();
  }

  /// The same; but where memory does not suffice and there is a CPU to go to, it says what is
  /// wrong. Empty: it is done.
  std::string try_forecast(std::span<const ForecastJob> given, const Progress& progress) {
    try {
      forecast(given, progress);
      return {};
    } catch (const Error& error) {
      if (error.code() != "out_of_memory" || !has_cpu_fallback(model)) throw;
      return error.message();
    } catch (const std::bad_alloc&) {
      constexpr std::string_view what = "not enough memory";
      if (!has_cpu_fallback(model)) throw no_memory(what);
      return std::string(what);
    }
  }

  /// What takes this one's place, on the CPU.
  [[nodiscard]] std::unique_ptr<Impl> on_cpu(std::string_view why) const {
    log_warning(asked.log, Topic::device, "device_fallback",
                fmt::format("the memory of the device does not suffice ({}): this forecast and all "
                            "that follow are computed on the CPU",
                            why));
    auto next = std::make_unique<Impl>(cpu_fallback_of(model), asked);
    next->start();
    next->warmed = warmed;
    next->latencies = latencies;
    next->calls = calls;
    next->series_done = series_done;
    return next;
  }

  void run(std::span<const ForecastJob> asked_for, const Progress& progress) {
    const std::span<const ForecastJob> given = adapted.start(net.backend(), asked_for);
    writer.start(given, &progress, requests);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i].options->seed) requests[i].seed = asked.seed.value_or(0);
    }
    Generation generation;
    if (!given.empty()) generation = writer.generation_of(*given.front().options);
    engine.run(requests, generation, limits, writer);
    adapted.finish(net.backend());
  }

  /// Computes them again and compares.
  void check_deterministic(std::span<const ForecastJob> given, const Progress& progress) {
    again.resize(given.size());
    std::vector<ForecastJob> twice(given.begin(), given.end());
    std::vector<std::vector<float>> arrays(given.size());
    for (std::size_t i = 0; i < twice.size(); ++i) {
      arrays[i].resize(given[i].array.size());
      twice[i].out = &again[i];
      twice[i].array = arrays[i];
    }
    run(twice, progress);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (same_bits(*given[i].out, again[i]) && same_bits(given[i].array, arrays[i])) continue;
      throw Error(ExitStatus::internal, "not_deterministic",
                  "the same forecast computed twice has different bits",
                  fmt::format("series '{}'", given[i].series->id),
                  "the memory or the processor of this machine may be faulty; if it is the same on "
                  "another, please report it");
    }
  }

  /// What must not grow after warm-up.
  struct Growth {
    std::uint64_t builds, allocations, captures, fallbacks;
  };
  [[nodiscard]] Growth growth() const {
    return {plans.builds(), plans.allocations() + engine.allocations(), engine.graph_captures(),
            engine.graph_fallbacks()};
  }
  void tell_if_not_steady(const Growth& before) const {
    const Growth now = growth();
    const auto tell = [&](Topic topic, std::string_view what, std::uint64_t then,
                          std::uint64_t count) {
      if (count == then) return;
      std::string line = fmt::format("after warm-up: {} {}", count - then, what);
      if (now.builds > 0) line += fmt::format(" ({})", plans.last_reason());
      log_warning(asked.log, topic, "not_steady", line);
    };
    tell(Topic::plans, "plans built", before.builds, now.builds);
    tell(Topic::memory, "allocations of working memory", before.allocations, now.allocations);
    tell(Topic::graphs, "graph captures", before.captures, now.captures);
    tell(Topic::graphs, "graph fallbacks", before.fallbacks, now.fallbacks);
  }

  static constexpr std::size_t kLatencies = 1024;
  // A device is idle with what keeps a processor busy.
  static constexpr std::int64_t kDeviceRows = 65536;
  static constexpr std::int64_t kDeviceKvBytes = std::int64_t{16} << 30;
  ForecasterOptions asked;
  Limits limits;
  Model model;
  bool strict, compute_twice;
  bool warmed = false;
  bool told_levels = false;
  const Network& net;
  PlanTable plans;
  Engine engine;
  ForecastWriter writer;
  AdaptedJobs adapted;
  std::vector<SeriesRequest> requests;
  std::vector<ForecastJob> jobs;
  std::vector<std::string_view> ids;
  std::vector<double> latencies;  // of the last calls, seconds
  std::uint64_t calls = 0;
  std::uint64_t series_done = 0;

  static constexpr std::size_t kKeptShapes = 32;
  PlanCache cache;
  PlanCacheKey key;
  PlanEntry entry;  // what the cache knows about this model, as far as this process has seen
  std::uint64_t cache_loads = 0, autotune_runs = 0;
  double autotune_seconds = 0;
  std::vector<Forecast> again;   // of check_deterministic
  std::vector<Forecast> unused;  // where statistics go to an array
};

namespace {

void check_outputs(std::size_t series, std::size_t found) {
  if (found == series) return;
  throw Error(ExitStatus::usage, "invalid_output",
              fmt::format("expected {} elements, one for each series, found {}", series, found));
}

void check_alive(const std::unique_ptr<Forecaster::Impl>& impl) {
  if (impl) return;
  throw Error(ExitStatus::usage, "moved_from", "this forecaster was moved from", "toto::Forecaster",
              "use what it was moved to");
}

/// Memory goes back to a backend in turn with the forecasts of other forecasters: a device may be
/// in the middle of a recording.
void retire(std::unique_ptr<Forecaster::Impl> impl) {
  if (!impl) return;
  const Model model = impl->model;  // outlives the lock
  const std::scoped_lock turn(model.impl().turn);
  impl.reset();
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
  impl_->check_ids(series);
  impl_->jobs.clear();
  for (std::size_t i = 0; i < series.size(); ++i) {
    impl_->jobs.push_back({&series[i], &options, &out[i]});
  }
  forecast_jobs(*this, impl_->jobs, options.progress);
}

void forecast_jobs(Forecaster& forecaster, std::span<const ForecastJob> jobs,
                   const Progress& progress) {
  std::unique_ptr<Forecaster::Impl>& impl = forecaster.impl_;
  for (const ForecastJob& job : jobs) {
    if (!job.options->mean_only) impl->tell_levels(job.options->levels, job.options->tails);
  }
  const std::string lack = impl->try_forecast(jobs, progress);
  if (lack.empty()) return;
  // The jobs, which may be in the memory of what retires, outlive it.
  std::unique_ptr<Forecaster::Impl> cpu = impl->on_cpu(lack);
  std::swap(impl, cpu);
  impl->forecast(jobs, progress);
  retire(std::move(cpu));
}

void Forecaster::forecast(std::span<const Series> series, std::span<const ForecastOptions> options,
                          std::span<Forecast> out) {
  check_alive(impl_);
  check_outputs(series.size(), options.size());
  check_outputs(series.size(), out.size());
  for (const ForecastOptions& o : options) check_options(o);
  impl_->check_ids(series);
  Progress progress;
  std::size_t before = 0;  // units of the calls that have ended
  std::size_t ended = 0;
  if (!options.empty() && options.front().progress) {
    progress = [&](std::size_t done, std::size_t total) {
      ended = total;
      return options.front().progress(before + done, before + total);
    };
  }
  std::vector<bool> taken(series.size(), false);
  for (std::size_t first = 0; first < series.size(); ++first) {
    if (taken[first]) continue;
    impl_->jobs.clear();
    for (std::size_t i = first; i < series.size(); ++i) {
      if (taken[i] || !ForecastWriter::alike(options[first], options[i])) continue;
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
  impl_->check_ids(series);
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
  Counters counters;
  counters.forecasts = impl_->calls;
  counters.series = impl_->series_done;
  impl_->plans.count(counters);
  impl_->engine.count(counters);
  counters.cache_loads = impl_->cache_loads;
  counters.autotune_runs = impl_->autotune_runs;
  counters.autotune_seconds = impl_->autotune_seconds;
  counters.load_seconds = impl_->model.impl().load_seconds;
  counters.thread_parks = impl_->net.backend().thread_parks();
  counters.device_bytes = impl_->net.backend().device_bytes();
  std::vector<double> sorted = impl_->latencies;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double q) {
    if (sorted.empty()) return 0.0;
    return sorted[static_cast<std::size_t>(
        std::lround(q * static_cast<double>(sorted.size() - 1)))];
  };
  counters.latency_p50 = at(0.5);
  counters.latency_p95 = at(0.95);
  counters.latency_p99 = at(0.99);
  return counters;
}

}  // namespace toto
