// SPDX-License-Identifier: Apache-2.0
// toto_forecaster: forecasts, warm-up, counters.
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/request.h"
#include "capi/settings.h"
#include "capi/structs.h"

using namespace toto::capi;  // NOLINT(google-build-using-namespace): what this file implements

namespace toto::capi {
namespace {

ForecasterOptions own_options(const toto_forecaster_options& given) {
  ForecasterOptions options;
  options.memory_limit = given.memory_limit;
  options.max_plans = given.max_plans;
  options.plan_cache_dir = text(given.plan_cache_dir);
  if (given.plan_cache != nullptr) {
    SettingsFlags flags;
    flags.plan_cache = given.plan_cache;
    options.plan_cache = settings_of(flags, {}).plan_cache.value;
  }
  options.strict_counters = given.strict_counters != 0;
  options.deterministic_checks = given.deterministic_checks != 0;
  options.log = lines_to(given.warning, given.plan_log, given.user);
  return options;
}

void forecast(toto_forecaster& forecaster, const toto_series* series, std::size_t count,
              const toto_forecast_options* options, toto_forecast& into) {
  into.count = 0;
  const ForecastOptions own = options_of(options);
  const std::vector<Series> all = series_of(series, count, own.horizon);
  if (into.all.size() < count) into.all.resize(count);
  const std::scoped_lock turn(forecaster.turn);
  forecaster.forecaster.forecast(all, own, std::span(into.all).first(count));
  into.count = count;
}

}  // namespace
}  // namespace toto::capi

toto_status toto_forecaster_new(const toto_model* model, const toto_forecaster_options* options,
                                toto_forecaster** forecaster, toto_error** error) {
  return guard(error, [&] {
    required(forecaster, "forecaster") = nullptr;
    const toto::Model& loaded = required(model, "model").model;
    toto_forecaster_options given = TOTO_FORECASTER_OPTIONS_INIT;
    if (options != nullptr) given = read_struct<toto_forecaster_options>(options, "options");
    *forecaster = new toto_forecaster{{}, toto::Forecaster(loaded, own_options(given))};
  });
}

void toto_forecaster_free(toto_forecaster* forecaster) { delete forecaster; }

toto_status toto_forecaster_forecast(toto_forecaster* forecaster, const toto_series* series,
                                     size_t count, const toto_forecast_options* options,
                                     toto_forecast** forecast, toto_error** error) {
  return guard(error, [&] {
    toto_forecast*& result = required(forecast, "forecast");
    if (result != nullptr) result->count = 0;
    toto_forecaster& own = required(forecaster, "forecaster");
    if (result != nullptr) {
      toto::capi::forecast(own, series, count, options, *result);
      return;
    }
    auto made = std::make_unique<toto_forecast>();
    toto::capi::forecast(own, series, count, options, *made);
    result = made.release();
  });
}

toto_status toto_forecaster_warm_up(toto_forecaster* forecaster, const toto_warmup_shape* shapes,
                                    size_t count, const toto_forecast_options* options,
                                    toto_error** error) {
  return guard(error, [&] {
    toto_forecaster& own = required(forecaster, "forecaster");
    const auto all = shapes_of(shapes, count);
    const auto how = options_of(options);
    const std::scoped_lock turn(own.turn);
    own.forecaster.warm_up(all, how);
  });
}

toto_status toto_forecaster_counters(const toto_forecaster* forecaster, toto_counters* counters,
                                     toto_error** error) {
  return guard(error, [&] {
    const toto_forecaster& own = required(forecaster, "forecaster");
    required(counters, "counters");
    std::unique_lock turn(own.turn);
    const toto::Counters now = own.forecaster.counters();
    turn.unlock();
    toto_counters out = TOTO_COUNTERS_INIT;
    out.forecasts = now.forecasts;
    out.series = now.series;
    out.plan_builds = now.plan_builds;
    out.plan_hits = now.plan_hits;
    out.plan_evictions = now.plan_evictions;
    out.allocations = now.allocations;
    out.host_reads = now.host_reads;
    out.graph_captures = now.graph_captures;
    out.graph_replays = now.graph_replays;
    out.graph_fallbacks = now.graph_fallbacks;
    out.working_bytes = now.working_bytes;
    out.latency_p50 = now.latency_p50;
    out.latency_p95 = now.latency_p95;
    out.latency_p99 = now.latency_p99;
    write_struct(out, counters, "counters");
  });
}
