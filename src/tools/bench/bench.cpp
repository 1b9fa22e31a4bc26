// SPDX-License-Identifier: Apache-2.0
#include "toto/tools/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

#include "backend/cpu/ceilings.h"
#include "backend/cuda/runtime/cuda_backend.h"
#include "core/cpu_info.h"
#include "models/model_impl.h"
#include "tools/bench/inputs.h"
#include "tools/bench/report.h"

namespace toto {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Runner {
  std::string label;
  std::unique_ptr<Forecaster> forecaster;
  std::vector<Forecast> out;
  std::vector<double> seconds;
  std::vector<double> device_seconds;
  double total = 0;
  double distance = 0;
  double operations = 0, weight_bytes = 0;  // of one forecast
  DeviceCost device_cost;                   // of all of them
  Precision precision = Precision::float32;
  bool on_device = false;
};

/// What happened between two readings of the counters, one forecast apart.
void add(DeviceCost& cost, const Counters& before, const Counters& after) {
  const auto replays = static_cast<double>(after.graph_replays - before.graph_replays);
  cost.graph_replays += replays;
  cost.graph_launches += replays * static_cast<double>(after.graph_launches);
  cost.graph_captures += static_cast<double>(after.graph_captures - before.graph_captures);
  cost.graph_fallbacks += static_cast<double>(after.graph_fallbacks - before.graph_fallbacks);
  cost.host_reads += static_cast<double>(after.host_reads - before.host_reads);
}

DeviceCost divided(const DeviceCost& cost, double n) {
  return {cost.graph_replays / n, cost.graph_launches / n, cost.graph_captures / n,
          cost.graph_fallbacks / n, cost.host_reads / n};
}

double deviation_of(std::span<const float> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const float x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / n);
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
}

/// BenchRow::distance.
double distance_of(const BenchInputs& inputs, const std::vector<Forecast>& a,
                   const std::vector<Forecast>& b) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < inputs.series.size(); ++i) {
    const Series& series = inputs.series[i];
    const std::size_t horizon = a[i].mean.size() / series.variates;
    for (std::size_t v = 0; v < series.variates; ++v) {
      const double unit = deviation_of(series.values.subspan(v * series.steps, series.steps));
      for (std::size_t t = v * horizon; t < (v + 1) * horizon; ++t) {
        const double off = static_cast<double>(a[i].mean[t]) - static_cast<double>(b[i].mean[t]);
        sum += std::abs(off) / unit;
        ++count;
      }
    }
  }
  return sum / count;
}

BenchRow summarise(const Workload& workload, Runner& runner, const MachineRates& machine,
                   const PeakMemory& memory) {
  std::vector<double>& s = runner.seconds;
  std::sort(s.begin(), s.end());
  const auto n = static_cast<double>(s.size());
  const double mean = std::accumulate(s.begin(), s.end(), 0.0) / n;
  double squares = 0;
  for (const double x : s) squares += (x - mean) * (x - mean);
  BenchRow row;
  row.workload = workload.name;
  row.subject = runner.label;
  row.runs = s.size();
  row.median = quantile(s, 0.5);
  row.p95 = quantile(s, 0.95);
  row.p99 = quantile(s, 0.99);
  row.fastest = s.front();
  if (std::vector<double>& d = runner.device_seconds; !d.empty()) {
    std::sort(d.begin(), d.end());
    row.device_median = quantile(d, 0.5);
    row.device_p99 = quantile(d, 0.99);
  }
  row.variation = s.size() > 1 ? std::sqrt(squares / (n - 1)) / mean : 0;
  row.operations = runner.operations;
  row.weight_bytes = runner.weight_bytes;
  row.on_device = runner.on_device;
  if (runner.on_device) row.per_forecast = divided(runner.device_cost, n);
  set_shares(row, machine, runner.precision);
  row.series_per_second = static_cast<double>(workload.series) / row.median;
  row.peak_rss = memory.rss;
  row.counters = runner.forecaster->counters();
  const std::uint64_t device = memory.device > 0 ? memory.device : row.counters.device_bytes;
  if (device > 0) row.peak_device_memory = device;
  row.distance = runner.distance;
  row.build_seconds =
      row.counters.plan_seconds + row.counters.capture_seconds + row.counters.autotune_seconds;
  return row;
}

void raise(MachineRates& machine, const MachineRates& again) {
  machine.float32_per_second = std::max(machine.float32_per_second, again.float32_per_second);
  machine.bfloat16_per_second = std::max(machine.bfloat16_per_second, again.bfloat16_per_second);
  machine.read_bytes_per_second =
      std::max(machine.read_bytes_per_second, again.read_bytes_per_second);
  machine.usual_read_bytes_per_second =
      (machine.usual_read_bytes_per_second + again.usual_read_bytes_per_second) / 2;
  machine.jitter = std::min(machine.jitter, again.jitter);
}

DeviceRates measure_device(bool ceilings) {
  const DeviceCeilings c = ceilings ? cuda_ceilings() : cuda_device();
  return {c.device,     c.driver,     c.architecture, c.f32_flops,
          c.tf32_flops, c.bf16_flops, c.copy_bytes};
}

void raise(DeviceRates& device, const DeviceRates& again) {
  const auto better = [&](double DeviceRates::*rate) {
    device.*rate = std::max(device.*rate, again.*rate);
  };
  better(&DeviceRates::float32_product_per_second);
  better(&DeviceRates::tf32_product_per_second);
  better(&DeviceRates::bfloat16_product_per_second);
  better(&DeviceRates::copy_bytes_per_second);
}

/// What `team` runs on; nothing is measured.
MachineRates machine_of(const ThreadTeam& team) {
  MachineRates machine;
  machine.processor = processor_name();
  machine.isa = cpu::isa_name(cpu::find_isa(""));
  machine.threads = team.size();
  machine.jitter = 0;
  return machine;
}

bool on_device(const BenchSubject& subject) {
  return subject.model.impl().net->backend().name() == "cuda";
}

struct Measured {
  Workload workload;
  std::vector<Runner> runners;
};

Measured measure(const Workload& workload, std::span<const BenchSubject> subjects,
                 const BenchOptions& options) {
  Measured result{workload, {}};
  const BenchInputs inputs(workload);
  ForecastOptions forecast;
  forecast.horizon = workload.horizon;
  forecast.num_samples = workload.samples;
  forecast.keep_samples = workload.keep_samples;
  forecast.decode = workload.decode;
  for (const BenchSubject& subject : subjects) {
    Runner& runner = result.runners.emplace_back();
    runner.label = subject.label;
    runner.forecaster = std::make_unique<Forecaster>(subject.model);
    runner.out.resize(workload.series);
    runner.precision = subject.model.impl().precision;
    runner.on_device = on_device(subject);
    if (options.progress) options.progress(workload.name + ", " + subject.label);
    runner.forecaster->warm_up(options.warmup, forecast);
    runner.forecaster->forecast(inputs.series, forecast, runner.out);  // builds the plan
    const Counters counters = runner.forecaster->counters();
    runner.operations = counters.operations;
    runner.weight_bytes = counters.weight_bytes;
  }
  for (std::size_t run = 0; run < std::max<std::size_t>(options.runs, 1); ++run) {
    for (Runner& runner : result.runners) {
      if (run >= 3 && runner.total > options.max_seconds) continue;
      const Counters before = runner.forecaster->counters();
      const auto start = Clock::now();
      runner.forecaster->forecast(inputs.series, forecast, runner.out);
      runner.seconds.push_back(seconds_since(start));
      const Counters after = runner.forecaster->counters();
      add(runner.device_cost, before, after);
      if (runner.on_device) {  // once more: asking the device for its time takes some of the host's
        forecast.time_device = true;
        runner.forecaster->forecast(inputs.series, forecast, runner.out);
        forecast.time_device = false;
        const double seconds = runner.forecaster->counters().device_seconds - after.device_seconds;
        if (seconds > 0) runner.device_seconds.push_back(seconds);
      }
      runner.total += seconds_since(start);
    }
  }
  for (Runner& runner : result.runners) {
    runner.distance = distance_of(inputs, runner.out, result.runners.front().out);
  }
  return result;
}

}  // namespace

MachineRates measure_machine(int threads) {
  ThreadTeam team(threads);
  const cpu::Ceilings ceilings = cpu::measure_ceilings(team, cpu::find_isa(""), 2.0);
  MachineRates machine = machine_of(team);
  machine.float32_per_second = ceilings.f32_flops;
  machine.bfloat16_per_second = ceilings.bf16_flops;
  machine.read_bytes_per_second = ceilings.read_bytes;
  machine.usual_read_bytes_per_second = ceilings.usual_read_bytes;
  machine.jitter = ceilings.jitter;
  return machine;
}

BenchReport run_bench(std::span<const Workload> workloads, std::span<const BenchSubject> subjects,
                      const BenchOptions& options) {
  BenchReport report;
  if (subjects.empty()) return report;
  report.model = subjects.front().model.info().name;
  report.family = subjects.front().model.info().architecture;
  const int threads = subjects.front().model.impl().net->backend().workers();
  report.machine = options.ceilings ? measure_machine(threads) : machine_of(ThreadTeam(threads));
  if (std::any_of(subjects.begin(), subjects.end(), on_device)) {
    if (options.ceilings && options.progress) options.progress("what the device can do");
    report.machine.device = measure_device(options.ceilings);
  }
  std::vector<Measured> measured;
  for (const Workload& workload : workloads) {
    measured.push_back(measure(workload, subjects, options));
  }
  if (options.ceilings) {
    raise(report.machine, measure_machine(threads));  // before other processes are started
    if (report.machine.device) raise(*report.machine.device, measure_device(true));
  }
  for (Measured& m : measured) {
    for (std::size_t i = 0; i < m.runners.size(); ++i) {
      const PeakMemory memory =
          options.peak_memory ? options.peak_memory(m.workload, subjects[i]) : PeakMemory{};
      BenchRow& row =
          report.rows.emplace_back(summarise(m.workload, m.runners[i], report.machine, memory));
      row.speed_up = report.rows[report.rows.size() - 1 - i].median / row.median;
    }
  }
  return report;
}

}  // namespace toto
