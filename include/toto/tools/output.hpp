// SPDX-License-Identifier: Apache-2.0
// Forecasts as CSV and JSON text. The same forecasts give the same bytes.
//
// Numbers have as many digits as it takes to read the same float again. What is not finite is an
// empty field in CSV and null in JSON. Covariates are not written.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"

#pragma GCC visibility push(default)
namespace toto::data {

/// Takes text, piece after piece.
using TextSink = std::function<void(std::string_view)>;

/// What the columns of CSV are called.
struct ColumnNames {
  enum class Style {
    toto,     ///< id, time, mean, q0.1 ...
    nixtla,   ///< unique_id, ds, Toto, Toto-lo-80, Toto-hi-80, ..., as Nixtla's libraries
    chronos,  ///< item_id, timestamp, target_name, predictions, 0.1 ..., as Chronos-2
  };
  Style style = Style::toto;
  std::string id = "unique_id", time = "ds";  ///< of `toto`
};

/// What was run, for the reader of an output.
struct RunInfo {
  std::string model;       ///< as ModelInfo::name
  bool synthetic = false;  ///< synthetic weights: the output says so
  std::uint64_t seed = 0;
  std::string decode;  ///< "cached" or "uncached"
  /// How it was computed (LoadReport), for JSON; empty: left out.
  std::string mode = {}, type = {}, device = {}, isa = {}, version = {}, weights = {};
  std::string family = {};  ///< as ModelInfo::architecture
  std::string paths = {};   ///< "coherent", or empty: left out
  ColumnNames columns = {};
  std::string kv_cache = {};  ///< where one was asked for (LoadOptions::kv_cache)
  std::string tails = {};     ///< "exponential" or "normal"; empty: left out
};

/// Long format: unique_id, ds, (point, where a forecast has one,) mean and a column q0.1 ... for
/// each level, or other columns as RunInfo::columns says; `variate` after unique_id where a series
/// has several targets; a last column `weights` that says "synthetic" when they are. `forecasts[i]`
/// belongs to `series[i]`. Throws Error (70) internal when they do not fit, and timestamp_overflow
/// as future_times does.
void write_csv(const TextSink& sink, std::span<const TimeSeries> series,
               std::span<const Forecast> forecasts, const RunInfo& run);

/// The trajectories: unique_id, (variate,) ds, sample and value.
void write_samples_csv(const TextSink& sink, std::span<const TimeSeries> series,
                       std::span<const Forecast> forecasts, const RunInfo& run);

/// One object: the run, and for each series its interval, how many steps are exact, what was done
/// beside the model's arithmetic (Applied), its timestamps, and for each target mean, median, std
/// and quantiles; then the series that failed.
void write_json(const TextSink& sink, std::span<const TimeSeries> series,
                std::span<const Forecast> forecasts, std::span<const SeriesError> errors,
                const RunInfo& run, std::string_view counters = {});

}  // namespace toto::data
#pragma GCC visibility pop
