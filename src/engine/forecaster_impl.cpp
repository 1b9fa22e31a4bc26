// SPDX-License-Identifier: Apache-2.0
// A forecast: adapts what was asked, runs the engine, and counts.
#include "engine/forecaster_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "core/log.h"
#include "core/stopwatch.h"
#include "engine/autotune.h"
#include "models/cpu_fallback.h"
#include "models/model_impl.h"
#include "toto/settings.hpp"

namespace toto {
namespace {

// A device is idle with what keeps a processor busy.
constexpr std::int64_t kDeviceRows = 65536;
constexpr std::int64_t kDeviceKvBytes = std::int64_t{16} << 30;
constexpr std::size_t kLatencies = 1024;
constexpr std::size_t kKeptShapes = 32;

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

Forecaster::Impl::Lane::Lane(Impl& of)
    : engine(of.net, of.plans, of.work), writer(of.net, of.model.info().defaults) {
  const Mode mode = of.model.impl().mode;
  engine.set_capturing(mode == Mode::reduce_overhead || mode == Mode::max_autotune);
}

Forecaster::Impl::Impl(Model from, const ForecasterOptions& options, std::size_t lane_count)
    : asked(options),
      model(std::move(from)),
      strict(options.strict_counters),
      compute_twice(options.deterministic_checks),
      net(*model.impl().net),
      plans(net, options),
      work(std::make_shared<DeviceWork>(net.backend(), plans.max_plans())),
      cache(options.plan_cache_dir,
            options.plan_cache_dir.empty() ? CachePolicy::never : options.plan_cache, options.log) {
  if (net.backend().capture() != nullptr) limits = {kDeviceRows, kDeviceKvBytes};
  for (std::size_t i = 0; i < lane_count; ++i) lanes.push_back(std::make_unique<Lane>(*this));
  latencies.reserve(kLatencies);
  key.model = model.impl().content_hash;
  key.isa = net.backend().isa();
  key.type = word(model.impl().precision);
  key.device = net.backend().name();
}

void Forecaster::Impl::start() {
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
void Forecaster::Impl::remember_shape(const Call& call) {
  PlanShape shape;
  shape.batch = static_cast<std::uint32_t>(call.jobs.size());
  shape.samples = static_cast<std::uint32_t>(lanes[call.lane]->requests.front().trajectories);
  for (const ForecastJob& job : call.jobs) {
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

void Forecaster::Impl::remember(double seconds) {
  if (latencies.size() < kLatencies) {
    latencies.push_back(seconds);
  } else {
    latencies[calls % kLatencies] = seconds;
  }
  ++calls;
}

/// Tells once what levels beyond the model's range give.
void Forecaster::Impl::tell_levels(std::span<const double> levels, Tails tails) {
  const ModelInfo& info = model.info();
  const auto outside = [&](double level) { return !info.knows(level); };
  if (told_levels || std::none_of(levels.begin(), levels.end(), outside)) return;
  told_levels = true;
  log_warning(asked.log, Topic::settings, "levels_out_of_range",
              fmt::format("the model knows quantiles from {} to {}: levels beyond {}",
                          info.lowest_level, info.highest_level,
                          tails == Tails::clamp
                              ? "give these; tails \"normal\" would go on beyond them"
                              : fmt::format("are of {} tails, an assumption", word(tails))));
}

void Forecaster::Impl::forecast(const Call& call) {
  Turn turn(model.impl().turn);
  const ForecastOptions* told = nullptr;
  for (const ForecastJob& job : call.jobs) {
    if (job.options == told || job.options->mean_only) continue;
    told = job.options;
    tell_levels(told->levels, model.info().defaults.meaning(told->tails));
  }
  double seconds = 0;
  {
    const Stopwatch watch(seconds, "forecast");
    const Growth before = growth();
    run(call, call.jobs, turn);
    if (strict && warmed) tell_if_not_steady(before);
    if (plans.builds() != before.builds) remember_shape(call);
  }
  if (compute_twice) check_deterministic(call, turn);
  remember(seconds);
  series_done += call.jobs.size();
}

std::string Forecaster::Impl::try_forecast(const Call& call) {
  try {
    forecast(call);
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

std::unique_ptr<Forecaster::Impl> Forecaster::Impl::on_cpu(std::string_view why) const {
  log_warning(asked.log, Topic::device, "device_fallback",
              fmt::format("the memory of the device does not suffice ({}): this forecast and all "
                          "that follow are computed on the CPU",
                          why));
  auto next = std::make_unique<Impl>(cpu_fallback_of(model), asked, lanes.size());
  next->start();
  const Turn turn(model.impl().turn);
  next->warmed = warmed;
  next->latencies = latencies;
  next->calls = calls;
  next->series_done = series_done;
  return next;
}

/// Passes that fill gaps come first. They are not counted, but can be stopped too.
void Forecaster::Impl::run(const Call& call, std::span<const ForecastJob> asked_for, Turn& turn) {
  Lane& lane = *lanes[call.lane];
  const Progress quiet = [&call](std::size_t, std::size_t) {
    return call.progress == nullptr || !*call.progress || (*call.progress)(0, 1);
  };
  const auto before_gaps = [&](std::span<const ForecastJob> before) {
    run_adapted({call.lane, before, &quiet, nullptr}, before, turn);
  };
  // By reference: what a std::function copies, it may allocate.
  const std::span<const ForecastJob> whole = lane.gaps.start(asked_for, std::cref(before_gaps));
  run_adapted(call, lane.views.start(net.backend(), whole), turn);
  lane.views.finish(net.backend());
  lane.gaps.finish();
}

void Forecaster::Impl::run_adapted(const Call& call, std::span<const ForecastJob> asked_for,
                                   Turn& turn) {
  Lane& lane = *lanes[call.lane];
  const std::span<const ForecastJob> given = lane.adapted.start(net.backend(), asked_for);
  lane.writer.start(given, call.progress, lane.requests, call.handed_over);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].options->seed) lane.requests[i].seed = asked.seed.value_or(0);
  }
  Generation generation;
  if (!given.empty()) generation = lane.writer.generation_of(*given.front().options);
  AdaptedResults results(lane.writer, lane.adapted);
  lane.engine.run(lane.requests, generation, limits, results, &turn);
}

/// Computes them again and compares.
void Forecaster::Impl::check_deterministic(const Call& call, Turn& turn) {
  const std::span<const ForecastJob> given = call.jobs;
  std::vector<Forecast>& again = lanes[call.lane]->again;
  again.resize(given.size());
  std::vector<ForecastJob> twice(given.begin(), given.end());
  std::vector<std::vector<float>> arrays(given.size());
  for (std::size_t i = 0; i < twice.size(); ++i) {
    arrays[i].resize(given[i].array.size());
    twice[i].out = &again[i];
    twice[i].array = arrays[i];
  }
  run(call, twice, turn);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (same_bits(*given[i].out, again[i]) && same_bits(given[i].array, arrays[i])) continue;
    throw Error(ExitStatus::internal, "not_deterministic",
                "the same forecast computed twice has different bits",
                fmt::format("series '{}'", given[i].series->id),
                "the memory or the processor of this machine may be faulty; if it is the same on "
                "another, please report it");
  }
}

Forecaster::Impl::Growth Forecaster::Impl::growth() const {
  return {plans.builds(), plans.allocations() + work->allocations, work->graph_captures,
          work->graph_fallbacks};
}

void Forecaster::Impl::tell_if_not_steady(const Growth& before) const {
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

Counters Forecaster::Impl::counters() const {
  Counters counters;
  counters.forecasts = calls;
  counters.series = series_done;
  plans.count(counters);
  lanes.front()->engine.count(counters);
  counters.cache_loads = cache_loads;
  counters.autotune_runs = autotune_runs;
  counters.autotune_seconds = autotune_seconds;
  counters.load_seconds = model.impl().load_seconds;
  counters.thread_parks = net.backend().thread_parks();
  counters.device_bytes = net.backend().device_bytes();
  std::vector<double> sorted = latencies;
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

void retire(std::unique_ptr<Forecaster::Impl> impl) {
  if (!impl) return;
  const Model model = impl->model;  // outlives the lock
  const std::scoped_lock turn(model.impl().turn);
  impl.reset();
}

}  // namespace toto
