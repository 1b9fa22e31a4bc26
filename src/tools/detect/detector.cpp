// SPDX-License-Identifier: Apache-2.0
// Blocks of steps rolling over series: forecasts in batches, then scores in the order of time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "core/json.h"
#include "models/model_impl.h"
#include "tools/detect/calibration.h"
#include "tools/detect/step_distribution.h"
#include "toto/tools/detect.hpp"

namespace toto::detect {
namespace {

// A call of the engine, as in a backtest: enough rows to keep every core busy, little memory.
constexpr std::size_t kMaxBatch = 256;
constexpr std::size_t kMaxValues = std::size_t{1} << 18;
constexpr double kMinProbability = 1e-300;
constexpr std::size_t kHistoryPatches = 4;

/// The highest of the last scores.
class Held {
 public:
  explicit Held(std::size_t steps) : steps_(steps) {}

  [[nodiscard]] double highest(std::size_t step) {
    while (!scores_.empty() && scores_.front().first + steps_ < step) scores_.pop_front();
    return scores_.empty() ? 0 : scores_.front().second;
  }
  void add(std::size_t step, double score) {
    if (steps_ == 0) return;
    while (!scores_.empty() && scores_.back().second <= score) scores_.pop_back();
    scores_.emplace_back(step, score);
  }

 private:
  std::size_t steps_;
  std::deque<std::pair<std::size_t, double>> scores_;  // falling; what a later one exceeds is gone
};

/// What is known of a target.
struct Target {
  Calibration calibration;
  Held held;
};

/// What is known of a series from one update to the next.
struct State {
  std::size_t seen = 0;        // steps, in all updates
  std::int64_t last_time = 0;  // of them
  Forecast block;              // that the last steps belong to
  std::size_t used = 0;        // of its steps; all: the next step begins a new one
  std::size_t scored = 0;      // of its steps
  bool judged = false;         // whether there is a forecast of the block
  std::vector<Target> targets;
};

/// A block of steps of one series.
struct Block {
  std::size_t series = 0;
  std::size_t begin = 0;   // step of the series
  std::size_t count = 0;   // of its steps that are here
  std::size_t number = 0;  // of the first one in all that has been seen
  bool fresh = true;       // false: it was forecast in an earlier update
  bool judged = true;
};

void check(const Options& options, std::size_t patch) {
  const auto invalid = [](const char* code, const std::string& message) {
    throw Error(ExitStatus::usage, code, message, "detect");
  };
  if (options.context == 0) invalid("invalid_context", "a forecast needs at least one step");
  if (options.block > patch) {
    invalid("invalid_block",
            fmt::format("a block has at most the {} steps of a patch, not {}: beyond it the "
                        "distribution is sampled",
                        patch, options.block));
  }
  if (!(options.threshold > 0 && options.threshold < 1)) {
    invalid("invalid_threshold", "the threshold is a probability between 0 and 1");
  }
  if (!(options.false_alarms >= 0 && std::isfinite(options.false_alarms))) {
    invalid("invalid_false_alarms", "false alarms a day are a number above 0");
  }
}

}  // namespace

double bits(double p) { return -std::log2(p); }

double observations_per_day(const data::Interval& interval) {
  using Unit = data::Interval::Unit;
  constexpr double kDayMs = 86'400'000;
  constexpr double kYear = 365.25;
  if (interval.count <= 0) return 0;
  switch (interval.unit) {
    case Unit::milliseconds:
      return kDayMs / static_cast<double>(interval.count);
    case Unit::business_day:
      return 5.0 / 7.0;
    case Unit::month:
      return 12 / kYear / static_cast<double>(interval.count);
    case Unit::index:
      break;
  }
  return 0;
}

struct Detector::Impl {
  Impl(Forecaster& f, Options o) : forecaster(f), options(std::move(o)) {
    const ModelInfo& info = forecaster.model().info();
    patch = static_cast<std::size_t>(forecaster.model().impl().net->patch());
    check(options, patch);
    if (options.block == 0) options.block = patch;
    if (options.min_history == 0) options.min_history = kHistoryPatches * patch;
    mixture = info.head == "mixture" || info.head == "student_t";
    asked.horizon = options.block;
    asked.num_samples = 1;  // of the first patch nothing is drawn
    // Across a missing end a block would reach beyond the first patch, along one drawn path.
    asked.across_missing = false;
    asked.keep_parameters = mixture;
    asked.select = {false, true, false};
    asked.decoding = options.decoding;
    constexpr std::size_t kKnots = 9;
    const bool quantiles = info.head == "quantiles" && info.components > 1;
    asked.levels =
        mixture ? std::vector<double>{0.5}
                : knot_levels(quantiles ? static_cast<std::size_t>(info.components) : kKnots);
  }

  double threshold_of(const data::TimeSeries& series, double per_day) const {
    if (options.false_alarms == 0) return options.threshold;
    const std::string where = "series " + quote(series.id);
    if (per_day == 0) {
      throw Error(ExitStatus::usage, "invalid_false_alarms",
                  "false alarms a day need timestamps, and this series has none", where,
                  "give a threshold of p instead");
    }
    if (options.false_alarms >= per_day) {
      throw Error(ExitStatus::usage, "invalid_false_alarms",
                  fmt::format("{} false alarms a day of {:.4g} observations a day",
                              options.false_alarms, per_day),
                  where, "allow fewer, or give a threshold of p instead");
    }
    return options.false_alarms / per_day;
  }

  /// The first step that no earlier update has seen.
  static std::size_t first_new(const data::TimeSeries& series, const State& state) {
    if (state.seen == 0) return 0;
    if (series.times.empty()) return std::min(state.seen, series.steps);
    return static_cast<std::size_t>(std::ranges::upper_bound(series.times, state.last_time) -
                                    series.times.begin());
  }

  /// Whether every variate of the context of `begin` has a patch of observations.
  [[nodiscard]] bool enough(const data::TimeSeries& series, std::size_t begin) const {
    const std::size_t first = begin - std::min(begin, options.context);
    for (std::size_t v = 0; v < series.variates.size(); ++v) {
      const auto from = series.mask.begin() + static_cast<std::ptrdiff_t>(v * series.steps);
      const auto observed = std::count(from + static_cast<std::ptrdiff_t>(first),
                                       from + static_cast<std::ptrdiff_t>(begin), 1);
      if (static_cast<std::size_t>(observed) < std::min(patch, options.context)) return false;
    }
    return true;
  }

  /// The blocks of what is new of one series; its state is taken to their end.
  void find_blocks(std::size_t index, const data::TimeSeries& series, std::vector<Block>& blocks) {
    State& state = states[series.id];
    if (state.targets.empty()) {
      state.targets.assign(series.targets(),
                           {Calibration(options.calibration), Held(options.hold)});
      state.used = options.block;
    }
    if (state.targets.size() != series.targets()) {
      throw Error(
          ExitStatus::bad_data, "changed_series",
          fmt::format("{} values at a time, but {} before", series.targets(), state.targets.size()),
          fmt::format("series '{}'", series.id), "give all targets of a series every time");
    }
    std::size_t at = first_new(series, state);
    while (at < series.steps) {
      if (state.seen < options.min_history) {
        const std::size_t history = std::min(options.min_history - state.seen, series.steps - at);
        state.seen += history;
        at += history;
        continue;
      }
      Block block;
      block.series = index;
      block.begin = at;
      block.fresh = state.used == options.block;
      if (block.fresh) {
        state.used = 0;
        state.judged = enough(series, at);
      }
      block.judged = state.judged;
      block.count = std::min(options.block - state.used, series.steps - at);
      block.number = state.seen;
      state.used += block.count;
      state.seen += block.count;
      at += block.count;
      blocks.push_back(block);
    }
    if (series.steps > 0 && !series.times.empty()) state.last_time = series.times.back();
  }

  /// Scores `block`, which goes on where the forecast of `state` has been scored up to.
  void score(const data::TimeSeries& series, const Block& block, State& state,
             std::span<Scored> out) {
    StepReader reader(state.block);
    const std::vector<double>& offsets = state.block.applied.value_offset;
    for (std::size_t v = 0; v < series.targets(); ++v) {
      const double offset = offsets.empty() ? 0 : offsets[v];
      for (std::size_t h = 0; h < block.count; ++h) {
        const std::size_t step = block.begin + h;
        if (series.mask[v * series.steps + step] == 0) continue;
        reader.select(v, state.scored + h);
        Point point;
        point.step = step;
        if (!series.times.empty()) point.time = series.times[step];
        point.value = static_cast<double>(series.values[v * series.steps + step]);
        // The block may have been forecast when the series had another offset.
        if (series.offset_of(v) != offset) point.value += series.offset_of(v) - offset;
        judge(point, reader, state.targets[v], block.number + h, out[v].threshold);
        if (offset != 0) {
          for (double* const one : {&point.value, &point.median, &point.low, &point.high}) {
            *one += offset;
          }
        }
        if (point.anomaly) ++out[v].anomalies;
        out[v].points.push_back(point);
      }
    }
  }

  /// `number`: of the step in all that has been seen of the series.
  void judge(Point& point, const StepReader& reader, Target& target, std::size_t number,
             double threshold) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    point.median = reader.quantile(0.5);
    const Tails tails = reader.tails(point.value);
    const bool both = options.side == Side::both;
    const double extreme = both ? 2 * std::min(tails.at_most, tails.at_least)
                           : options.side == Side::above ? tails.at_least
                                                         : tails.at_most;
    point.raw = std::clamp(extreme, kMinProbability, 1.0);
    const double held = target.held.highest(number);
    const double score = bits(point.raw);
    const bool counts = score > held || held == 0;
    point.p = counts ? target.calibration.probability(score) : 1;
    point.anomaly = point.p <= threshold;
    // Where scores exceed what is held and the threshold, in the user's units.
    const double limit = std::exp2(-std::max(held, target.calibration.score_of(threshold)));
    const double tail = std::max(both ? limit / 2 : limit, kMinProbability);
    point.low = options.side == Side::above ? -kInfinity : reader.quantile(tail);
    point.high = options.side == Side::below ? kInfinity : upper_limit(reader, tail);
    target.held.add(number, score);
    counts ? target.calibration.add(score) : target.calibration.add_held();
  }

  /// The x with P(X > x) = tail, also where 1 - tail is 1.
  static double upper_limit(const StepReader& reader, double tail) {
    constexpr double kFar = 1e-9;
    if (tail >= kFar) return reader.quantile(1 - tail);
    double low = reader.quantile(1 - kFar);
    const double median = reader.quantile(0.5);
    double high = low + std::max(low - median, 1e-30);
    for (int i = 0; i < 1000 && reader.tails(high).at_least > tail; ++i) {
      high = low + 2 * (high - low);
    }
    if (!std::isfinite(high)) return std::numeric_limits<double>::infinity();
    for (int i = 0; i < 60; ++i) {
      const double middle = low + (high - low) / 2;
      (reader.tails(middle).at_least > tail ? low : high) = middle;
    }
    return high;
  }

  void run(std::span<const data::TimeSeries> series, std::span<const Block> blocks,
           std::span<const std::size_t> first_scored, std::span<Scored> scored) {
    std::size_t done = 0;
    while (done < blocks.size()) {
      const std::size_t count = batch_size(series, blocks.subspan(done));
      forecast_batch(series, blocks.subspan(done, count));
      std::size_t next = 0;
      for (std::size_t i = done; i < done + count; ++i) {
        const Block& block = blocks[i];
        const data::TimeSeries& one = series[block.series];
        if (!block.judged) continue;
        State& state = states[one.id];
        if (block.fresh) {
          state.block = std::move(forecasts[next++]);
          state.scored = 0;
        }
        score(one, block, state, scored.subspan(first_scored[block.series], one.targets()));
        state.scored += block.count;
      }
      done += count;
      if (options.progress && !options.progress(done, blocks.size())) {
        throw Error(ExitStatus::interrupted, "interrupted", "stopped", "detect");
      }
    }
  }

  [[nodiscard]] std::size_t batch_size(std::span<const data::TimeSeries> series,
                                       std::span<const Block> blocks) const {
    std::size_t values = 0;
    std::size_t count = 0;
    while (count < std::min(blocks.size(), kMaxBatch)) {
      const Block& block = blocks[count];
      values += std::min(block.begin, options.context) * series[block.series].variates.size();
      if (count > 0 && values > kMaxValues) break;
      ++count;
    }
    return count;
  }

  /// One forecast for each fresh block that can be judged, in order.
  void forecast_batch(std::span<const data::TimeSeries> series, std::span<const Block> blocks) {
    std::vector<data::TimeSeries> contexts;
    contexts.reserve(blocks.size());
    for (const Block& block : blocks) {
      if (!block.fresh || !block.judged) continue;
      contexts.push_back(context_of(series[block.series], block.begin, contexts.size()));
    }
    if (contexts.empty()) return;
    std::vector<Series> views;
    views.reserve(contexts.size());
    for (const data::TimeSeries& context : contexts) views.push_back(context.view());
    forecasts = forecaster.forecast(views, asked);
  }

  [[nodiscard]] data::TimeSeries context_of(const data::TimeSeries& series, std::size_t begin,
                                            std::size_t number) const {
    const std::size_t first = begin - std::min(begin, options.context);
    data::TimeSeries out;
    out.id = fmt::format("{}@{}", series.id, number);
    out.variates = series.variates;
    out.value_offsets = series.value_offsets;
    out.steps = begin - first;
    for (std::size_t v = 0; v < series.variates.size(); ++v) {
      const auto at = static_cast<std::ptrdiff_t>(v * series.steps + first);
      const auto end = static_cast<std::ptrdiff_t>(v * series.steps + begin);
      out.values.insert(out.values.end(), series.values.begin() + at, series.values.begin() + end);
      out.mask.insert(out.mask.end(), series.mask.begin() + at, series.mask.begin() + end);
    }
    return out;
  }

  Forecaster& forecaster;
  Options options;
  std::size_t patch = 1;
  bool mixture = false;
  ForecastOptions asked;
  std::map<std::string, State, std::less<>> states;  // by id
  std::vector<Forecast> forecasts;
};

Detector::Detector(Forecaster& forecaster, Options options)
    : impl_(std::make_unique<Impl>(forecaster, std::move(options))) {}
Detector::~Detector() = default;
Detector::Detector(Detector&&) noexcept = default;
Detector& Detector::operator=(Detector&&) noexcept = default;

std::vector<Scored> Detector::update(std::span<const data::TimeSeries> series) {
  std::vector<Scored> scored;
  std::vector<std::size_t> first_scored;
  std::set<std::string_view> ids;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const data::TimeSeries& one = series[i];
    if (!ids.insert(one.id).second) {
      throw Error(ExitStatus::bad_data, "duplicate_id", "two series have one id",
                  "series " + quote(one.id));
    }
    first_scored.push_back(scored.size());
    const double per_day = observations_per_day(one.interval);
    for (std::size_t v = 0; v < one.targets(); ++v) {
      Scored out;
      out.id = one.id;
      if (one.targets() > 1) out.variate = one.variates[v];
      out.per_day = per_day;
      out.threshold = impl_->threshold_of(one, per_day);
      out.index = i;
      out.column = v;
      out.value_offset = one.offset_of(v);
      scored.push_back(std::move(out));
    }
  }
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < series.size(); ++i) impl_->find_blocks(i, series[i], blocks);
  impl_->run(series, blocks, first_scored, scored);
  return scored;
}

}  // namespace toto::detect
