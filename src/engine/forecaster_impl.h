// SPDX-License-Identifier: Apache-2.0
// What stands behind toto::Forecaster, and behind each device of a service, whose micro-batches
// overlap.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/adapted.h"
#include "engine/engine.h"
#include "engine/forecast_writer.h"
#include "engine/gaps.h"
#include "engine/plan_cache.h"
#include "engine/plan_table.h"
#include "engine/views.h"
#include "toto/forecast.hpp"

namespace toto {

struct Forecaster::Impl {
 public:
  /// `lane_count`: calls of forecast() that may overlap, each in a lane of its own. On a CPU they
  /// come one after the other.
  Impl(Model from, const ForecasterOptions& options, std::size_t lane_count = 1);

  /// What earlier runs have left: kernel choices and shapes.
  void start();

  /// A call of forecast(). On a device that computes by itself `handed_over` is
  /// called when it has all of it: another call may begin in another lane.
  struct Call {
    std::size_t lane = 0;
    std::span<const ForecastJob> jobs;
    const Progress* progress = nullptr;
    const std::function<void()>* handed_over = nullptr;
  };
  /// A forecast, in turn with those of others.
  void forecast(const Call& call);
  /// The same; but where memory does not suffice and there is a CPU to go to, it says what is
  /// wrong. Empty: it is done.
  std::string try_forecast(const Call& call);
  /// What takes this one's place, on the CPU.
  [[nodiscard]] std::unique_ptr<Impl> on_cpu(std::string_view why) const;
  [[nodiscard]] Counters counters() const;

  /// What a call needs for itself.
  struct Lane {
    explicit Lane(Impl& of);
    Engine engine;
    ForecastWriter writer;
    FilledJobs gaps;
    ViewedJobs views;
    AdaptedJobs adapted;
    std::vector<SeriesRequest> requests;
    std::vector<Forecast> again;  // of check_deterministic
  };

  ForecasterOptions asked;
  Limits limits;
  Model model;
  bool strict, compute_twice;
  bool warmed = false;
  bool told_levels = false;
  const Network& net;
  PlanTable plans;
  std::shared_ptr<DeviceWork> work;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<double> latencies;  // of the last calls, seconds
  std::uint64_t calls = 0;
  std::uint64_t series_done = 0;

  PlanCache cache;
  PlanCacheKey key;
  PlanEntry entry;  // what the cache knows about this model, as far as this process has seen
  std::uint64_t cache_loads = 0, autotune_runs = 0;
  double autotune_seconds = 0;

  // Of a Forecaster.
  std::vector<ForecastJob> jobs;
  std::vector<std::string_view> ids;
  std::vector<std::uint32_t> places;  // of ids that are compared
  std::vector<Forecast> unused;       // where statistics go to an array

 private:
  using Turn = std::unique_lock<std::mutex>;
  void run(const Call& call, std::span<const ForecastJob> asked_for, Turn& turn);
  void run_adapted(const Call& call, std::span<const ForecastJob> asked_for, Turn& turn);
  void check_deterministic(const Call& call, Turn& turn);
  void remember_shape(const Call& call);
  void remember(double seconds);
  void tell_levels(std::span<const double> levels, Tails tails);
  /// What must not grow after warm-up.
  struct Growth {
    std::uint64_t builds, allocations, captures, fallbacks;
  };
  [[nodiscard]] Growth growth() const;
  void tell_if_not_steady(const Growth& before) const;
};

/// Memory goes back to a backend in turn with the forecasts of other forecasters: a device may be
/// in the middle of a recording.
void retire(std::unique_ptr<Forecaster::Impl> impl);

}  // namespace toto
