// SPDX-License-Identifier: Apache-2.0
// Anomalies: how improbable each observation is under the forecast that was made before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"
#include "toto/tools/output.hpp"
#include "toto/tools/plot.hpp"

#pragma GCC visibility push(default)
namespace toto::detect {

/// Which observations can be anomalies.
enum class Side {
  both,   ///< far above or far below what was forecast
  above,  ///< far above only
  below,  ///< far below only
};

struct Options {
  std::size_t context = 4096;   ///< steps that a forecast looks at, at most; at least 1
  std::size_t block = 0;        ///< steps forecast from one origin, at most a patch; 0: a patch
  std::size_t min_history = 0;  ///< steps before the first one that is scored; 0: four patches
  std::size_t calibration = 10'000;  ///< scores of the series' own that are kept, the last ones
  double threshold = 0.001;          ///< an observation with p at or below it is an anomaly
  double false_alarms = 0;  ///< a day; not 0: the threshold is this over the observations a day
  std::size_t hold = 0;     ///< steps after a score in which only higher ones count
  Side side = Side::both;
  BlockDecoding decoding;  ///< of Toto 2.0
  /// Called with blocks forecast and blocks to forecast; false stops (throws Error interrupted).
  std::function<bool(std::size_t done, std::size_t total)> progress;
};

/// One observation that was scored.
struct Point {
  std::size_t step = 0;      ///< in the series that was given
  std::int64_t time = 0;     ///< as TimeSeries::times; 0 where it has none
  double value = 0;          ///< what was observed
  double median = 0;         ///< what was forecast
  double low = 0, high = 0;  ///< values outside are anomalies; infinite: nothing is, on that side
  double raw = 1;            ///< probability of something as extreme, as the model says
  double p = 1;              ///< the same, calibrated with the scores before this one; 1 where one
                             ///< of the last `hold` was as extreme
  bool anomaly = false;
};

/// -log2(p): 10 bits are one in 1024.
double bits(double p);

/// What was scored of one variate of one series.
struct Scored {
  std::string id;             ///< of the series
  std::string variate;        ///< empty where the series has one target
  double threshold = 0;       ///< of p
  double per_day = 0;         ///< observations a day; 0: not known
  std::size_t index = 0;      ///< of the series among those given
  std::size_t column = 0;     ///< of the variate in it
  double value_offset = 0;    ///< what float32 holds of its values are differences from this; 0:
                              ///< the values themselves
  std::vector<Point> points;  ///< in the order of time; what is missing is not scored
  std::size_t anomalies = 0;
};

/// Scores series as they grow. Each step is forecast once, from the steps before the block that it
/// belongs to, and scored once. So the result does not depend on how many steps come at a time, as
/// long as what is given reaches `context` steps back.
///
/// The model's probability is computed from its distribution of the step: the mixture of Toto 1.0,
/// exactly; of Toto 2.0 linear between its quantiles, with exponential tails beyond the outermost.
/// It is then calibrated: where in the last scores of the same variate the score lies, and beyond
/// their upper tenth along an exponential tail fitted to that (docs/statistics.md).
class Detector {
 public:
  /// `forecaster` must outlive it. Throws Error (2): invalid_context, invalid_block (above a
  /// patch), invalid_threshold (not in (0, 1)), invalid_false_alarms (negative).
  Detector(Forecaster& forecaster, Options options);
  ~Detector();
  Detector(Detector&&) noexcept;
  Detector& operator=(Detector&&) noexcept;

  /// Scores the steps of each series that have not been seen: those after the last time that was
  /// given for its id; of a series without times all steps after as many as were given before.
  /// One entry for each target of each series, in order. Covariates are forecast like
  /// the rest and not scored. Steps before `min_history` and blocks whose context has fewer
  /// observations of a variate than a patch have no score.
  /// Throws Error (2) invalid_false_alarms where a series has no days, or fewer observations a day
  /// than false alarms are allowed; (65) duplicate_id, changed_series (a
  /// series of other targets than before); what Forecaster::forecast throws. After an
  /// error some steps count as seen that were not scored: begin again with a new Detector.
  std::vector<Scored> update(std::span<const data::TimeSeries> series);

  struct [[gnu::visibility("hidden")]] Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Observations in a day of 24 hours; 0 where steps are no times.
double observations_per_day(const data::Interval& interval);

/// How points are written.
struct WriteOptions {
  bool in_bits = false;         ///< `score` is -log2 of p; otherwise p
  bool only_anomalies = false;  ///< nothing else is written
  bool synthetic = false;       ///< each line says that the weights are synthetic
};

/// One JSON object a line: id, (variate,) ds, y, median, low, high, score, anomaly. What is
/// infinite is null.
void write_lines(const data::TextSink& sink, const Scored& scored, const data::TimeStyle& style,
                 const WriteOptions& options);

/// Each scored variate with its forecasts, the limits of its anomalies, and marks on them.
/// `series` are those that were given to update().
plot::Figure make_figure(std::span<const data::TimeSeries> series, std::span<const Scored> scored,
                         const ModelInfo& model);

}  // namespace toto::detect
#pragma GCC visibility pop
