// SPDX-License-Identifier: Apache-2.0
// Benchmarks: how fast a model forecasts here, held against what this machine can do at best.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/model.hpp"

#pragma GCC visibility push(default)
namespace toto {

/// A batch of equal series and what is asked of it.
struct Workload {
  std::string name;
  std::size_t series = 1;
  std::size_t variates = 1;
  std::size_t context = 512;  ///< steps
  std::size_t horizon = 8;    ///< steps
  std::size_t samples = 256;
  bool keep_samples = false;  ///< draw every trajectory, also where exact statistics need none
  Decode decode = Decode::cached;
};

/// "a", "b", "c" (docs/benchmarks.md), or "SERIESxVARIATESxCONTEXTxHORIZON[xSAMPLES]".
/// Throws Error invalid_workload (2).
Workload parse_workload(std::string_view text);

/// One way of running: a label and a model loaded for it.
struct BenchSubject {
  std::string label;  ///< e.g. "reduce-overhead float32"
  Model model;
};

/// What a process needed.
struct PeakMemory {
  std::uint64_t rss = 0;     ///< bytes, at most; 0: not measured
  std::uint64_t device = 0;  ///< bytes of the device's memory in use by all programs after its
                             ///< forecast; 0: there is no device
};

struct BenchOptions {
  std::size_t runs = 30;  ///< timed forecasts of every subject; they take turns
  double max_seconds =
      60;  ///< for each workload and subject: stops early, but after three runs at least
  std::vector<WarmupShape> warmup;  ///< plans built before each workload's own first forecast
  std::function<void(std::string_view what)> progress;
  /// Of a process that loads this subject and forecasts this workload once: in one process modes
  /// could not be told apart. None: rows say 0.
  std::function<PeakMemory(const Workload& workload, const BenchSubject& subject)> peak_memory;
  /// Measure what the machine can do at best, which takes six seconds and, with a device, some
  /// more. Without it the rates of MachineRates and the shares of rows are 0.
  bool ceilings = true;
};

/// What a timed forecast cost on a device, on average; all 0 without one.
struct DeviceCost {
  double graph_replays = 0;
  double graph_launches = 0;  ///< kernels; a forecast of several graphs counts the last one for all
  double graph_captures = 0;
  double graph_fallbacks = 0;
  double host_reads = 0;
};

struct BenchRow {
  std::string workload, subject;
  bool on_device = false;  ///< shares are of what the device can do (MachineRates::device)
  std::size_t runs = 0;
  double median = 0, p95 = 0, p99 = 0, fastest = 0;  ///< seconds
  double device_median = 0, device_p99 = 0;          ///< of it on the device, by events; 0: none
  double variation = 0;                              ///< standard deviation / mean
  double speed_up = 0;                               ///< over the first subject, by medians
  /// Mean absolute difference of the means to those of the first subject, in standard deviations of
  /// the context of each variate.
  double distance = 0;
  double build_seconds = 0;  ///< plans, graphs and measurements of kernels; loading is apart
  double operations = 0;     ///< of one forecast; a multiply-add is two
  double weight_bytes = 0;   ///< of one forecast
  /// Of the measured multiply-add rate of the type, at the median. On a device: of the rate of the
  /// library's own products there, at device_median, or at the median where no graph was timed.
  /// 0: what it would be a share of was not measured.
  double percent_of_compute = 0;
  double percent_of_memory = 0;  ///< the same of the best read rate; on a device of its copy rate
  double series_per_second = 0;
  /// Bytes, the most that a process of its own needed for this model and workload; 0: not measured.
  std::uint64_t peak_rss = 0;
  std::optional<std::uint64_t>
      peak_device_memory;  ///< bytes in use by all programs: after the forecast of that process,
                           ///< or without one after the runs
  DeviceCost per_forecast;
  Counters counters;  ///< after all runs
};

/// A device, and what it was measured to do by its own clock. 0: its memory did not suffice, or
/// nothing was measured.
struct DeviceRates {
  std::string name;
  std::string driver;  ///< its release and what CUDA it has
  std::string architecture;
  /// The measured rate of the library's own product on a large matrix, in operations (a
  /// multiply-add is two). Not the most that the device can do: cuBLAS reaches more.
  double float32_product_per_second = 0;
  double tf32_product_per_second = 0;
  double bfloat16_product_per_second = 0;
  double copy_bytes_per_second = 0;  ///< within the device; bytes read plus written
};

/// Rates and jitter are 0 where nothing was measured.
struct MachineRates {
  std::string processor;
  std::string isa;
  int threads = 0;
  double float32_per_second = 0;  ///< operations; a multiply-add is two
  double bfloat16_per_second = 0;
  double read_bytes_per_second = 0;        ///< at best
  double usual_read_bytes_per_second = 0;  ///< in the median: neighbours share the memory
  double jitter = 1;  ///< p99 / p50 of a loop of 5 ms that reads no memory: what this machine does
                      ///< to any program
  std::optional<DeviceRates> device;  ///< where one was used
};

/// One symbol in one mode.
struct SymbolRow {
  std::string symbol, subject;
  std::size_t windows = 0;
  double seconds = 0, variation = 0;  ///< of one forecast: median; standard deviation / mean
  double speed_up = 0;                ///< over the first subject
  double mae = 0, mae_sigma = 0;  ///< of the median of trajectories: mean and standard deviation
                                  ///< over seeds; in the units of the symbol
  double build_seconds = 0;       ///< loading the model, its plans and the first forecast
  std::uint64_t plan_bytes = 0;   ///< working memory of the plans
  std::uint64_t peak_rss = 0;     ///< as BenchRow
  std::optional<std::uint64_t> peak_device_memory;
};

struct SymbolOptions {
  std::size_t context = 512, horizon = 20;  ///< steps
  std::size_t windows = 4;                  ///< the last ones of each symbol that do not overlap
  std::size_t samples = 256, seeds = 5;
  std::size_t runs = 10;  ///< timed forecasts of every symbol and subject; subjects take turns
  std::function<bool(std::string_view what)> progress;  ///< false stops: Error interrupted (130)
};

/// Loads a subject; called once for each of `labels`, and timed.
using LoadSubject = std::function<Model(std::size_t subject)>;

/// The table that compares modes symbol by symbol. The first label is what others are compared
/// with. `series`: one variate or more each, targets only. Rows by symbol, then subject.
/// Throws Error (65) too_short where a series has no window.
std::vector<SymbolRow> run_symbols(std::span<const Series> series,
                                   std::span<const std::string> labels, const LoadSubject& load,
                                   const SymbolOptions& options);
std::string symbols_text(std::span<const SymbolRow> rows);
std::string symbols_markdown(std::span<const SymbolRow> rows);
std::string symbols_json(std::span<const SymbolRow> rows, std::string_view model);

struct BenchReport {
  std::string model;
  MachineRates machine;
  std::vector<BenchRow> rows;
  std::string family = {};  ///< as ModelInfo::architecture
};

/// Measures this machine with the threads and instructions of the cpu backend, and no device. About
/// three seconds.
MachineRates measure_machine(int threads = 0);

/// Subjects take turns within each workload, after one forecast each to warm up. Series are made
/// from a fixed formula. Ceilings, if they are wanted, of a device too where a subject runs on one,
/// are measured in the same run, before and after, and the better one counts.
BenchReport run_bench(std::span<const Workload> workloads, std::span<const BenchSubject> subjects,
                      const BenchOptions& options);

}  // namespace toto
#pragma GCC visibility pop
