// SPDX-License-Identifier: Apache-2.0
// Walk-forward evaluation: forecasts of the past, made with what was known then, held against what
// happened and against simple baselines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"
#include "toto/tools/output.hpp"

#pragma GCC visibility push(default)
namespace toto::backtest {

/// What the model is shown. Forecasts come back as values in the user's units, whatever it is.
enum class Transform {
  none,        ///< the values themselves
  pct,         ///< x[t] / x[t-1] - 1; values must be positive
  log_return,  ///< log(x[t] / x[t-1]); values must be positive
};

/// How a window of H bars after its origin is forecast.
enum class Rolling {
  multi_step,  ///< all H bars at once, from the bars up to the origin
  one_step,    ///< each bar from the bars before it, so a forecast is always one step ahead
};

/// The levels of every forecast here: 0.05, 0.10 ... 0.95.
inline constexpr std::size_t kLevels = 19;
std::span<const double, kLevels> levels();

/// When a symbol trades, which says what kind of asset it is and what trading it usually costs.
enum class TradingHours {
  sessions,  ///< a part of the day, or nobody can tell: shares. Fee 0.0005
  weekdays,  ///< round the clock but for weekends: currencies. Fee 0.0001
  always,    ///< at weekends too: crypto. Fee 0.001
};

/// Something about the data that whoever reads the results should know.
struct Finding {
  std::string code;  ///< gaps, repeated_rows, non_positive, high_below_low, zero_volume, jumps,
                     ///< unreadable_column (of one that is not forecast)
  std::size_t count = 0;
  std::string message;  ///< one line, with the first place
};

/// The bars of one symbol: V targets over T bars.
struct Symbol {
  std::string name;  ///< of the id column, else the file's stem
  std::string file;
  std::vector<std::string> targets;     ///< [V]
  std::size_t bars = 0;                 ///< T
  std::vector<float> values;            ///< [V][T] finite; what is missing repeats the value before
  std::vector<double> value_offsets;    ///< [V] that values are differences from; empty: all 0
  std::vector<std::uint8_t> mask;       ///< [V][T] 1 = observed
  std::vector<std::int64_t> times;      ///< [T] as data::TimeSeries
  std::vector<std::string> covariates;  ///< [E] known ahead; empty: none
  std::vector<float> known;             ///< [E][T] finite
  data::TimeStyle style;
  data::Interval interval;
  TradingHours hours = TradingHours::sessions;
  std::vector<Finding> findings;

  [[nodiscard]] double offset_of(std::size_t target) const {
    return value_offsets.empty() ? 0.0 : value_offsets[target];
  }
  [[nodiscard]] std::span<const float> values_of(std::size_t target) const {
    return std::span(values).subspan(target * bars, bars);
  }
  [[nodiscard]] std::span<const std::uint8_t> mask_of(std::size_t target) const {
    return std::span(mask).subspan(target * bars, bars);
  }
};

struct Market {
  std::vector<Symbol> symbols;
  std::vector<data::SeriesError> errors;  ///< files and symbols that cannot be evaluated
  std::vector<std::string> warnings;
};

struct MarketOptions {
  std::vector<std::string> inputs;  ///< files of tables, and folders whose tables are read, by name
  std::vector<std::string> symbols;  ///< only these; empty: all
  std::vector<std::string> targets;  ///< open, high, low, close, volume in any usual spelling, or
                                     ///< columns; empty: close, else what the layout has
  std::string future;  ///< a table of covariates known ahead, at the times of the bars; empty: none
  data::CsvOptions table;  ///< how tables are read; joint, context and values are chosen here
};

/// Reads bars (one symbol to a file), long files with a column of symbols, and other tables that
/// data::read_csv takes. A file or symbol that is broken goes into `errors`, the others are read;
/// where symbols are chosen, those that are not only into `warnings`.
/// Throws Error (66) file_not_found, no_input (a folder without *.csv), missing_symbol.
Market read_market(const MarketOptions& options);

/// What is chosen for a symbol by hand, or by tune().
struct Parameters {
  std::size_t context = 512;  ///< bars that the model sees, at most
  std::size_t samples = 256;  ///< trajectories, where there are any
  Transform transform = Transform::none;
  double input_scale = 0;  ///< what the model is shown is multiplied by this, and forecasts divided
                           ///< by it; 0: automatic, as ForecastOptions::input_scale
  std::string aggregate = "median";  ///< the point forecast, see parse_aggregate()
  double width_below = 1;  ///< the distance of quantiles below the median from it is multiplied by
  double width_above = 1;  ///< this, and that of those above it by this; tune() finds them

  friend bool operator==(const Parameters&, const Parameters&) = default;
};

/// Whether each context has a scale of its own, found by the forecaster.
bool has_automatic_scale(const Parameters& parameters);
/// What is shown to the forecaster is multiplied by this: 1 where the scale is automatic.
double input_scale(const Parameters& parameters);

struct Options {
  Parameters parameters;
  std::map<std::string, Parameters, std::less<>> by_symbol;  ///< instead of `parameters`
  Rolling rolling = Rolling::multi_step;
  std::size_t horizon = 5;  ///< H, bars of a window
  std::size_t stride = 0;   ///< bars from origin to origin; 0: the horizon
  std::size_t windows = 0;  ///< the last so many of each symbol; 0: all
  std::string from, to;     ///< the bars of windows lie in between, both included
  std::size_t season = 0;   ///< bars; 0: from the symbol (see season_of)
  bool joint = false;       ///< the targets of a symbol are variates of one series
  std::uint64_t seed = 0;
  Decode decode = Decode::cached;
  bool covariates = true;  ///< take the effect of known covariates out (toto/tools/regress.hpp)
  BlockDecoding decoding;  ///< of Toto 2.0
  Tails tails = Tails::automatic;  ///< of Toto 2.0
  Views views;                     ///< averaged with the series itself; Transform::none alone
  Guards guards;          ///< of the values; with a transform `clamp` is of what the model is shown
  std::string cache_dir;  ///< predictions on disk; empty: none
  std::size_t scale_probe = 64;  ///< contexts forecast once more at input scale 1
  /// Called with forecasts made and forecasts to make; false stops (throws Error interrupted, and
  /// what has been made stays in the cache).
  std::function<bool(std::size_t done, std::size_t total)> progress;
  /// Called with a line about what is not as it should be but does no harm to a result.
  std::function<void(std::string_view)> warning;
};

/// Forecasters that are compared: the model, then the baselines.
enum class Source : std::uint8_t { model, last_value, seasonal_naive, drift };
inline constexpr std::size_t kSources = 4;
std::string_view word(Source source);
std::string_view word(Transform transform);
std::string_view word(Rolling rolling);

/// One bar that was forecast by one source.
struct Prediction {
  double point = 0;
  double mean = 0;
  std::array<float, kLevels> quantiles{};
};

/// One bar that was forecast: what was known, what happened, what each source had said.
struct Cell {
  std::uint32_t symbol = 0;
  std::uint32_t target = 0;
  std::uint32_t window = 0;  ///< of the symbol, from 0, in the order of time
  std::uint32_t step = 1;    ///< bar of the window, from 1
  std::uint32_t bar = 0;     ///< index into Symbol::times
  std::int64_t time = 0;
  double value_offset = 0;  ///< added to the quantiles of `model` here, and no other values
  double base = 0;          ///< the last value that was known
  double scale = 0;   ///< mean absolute seasonal difference of what is observed of the context
                      ///< (of the last two seasons, if that is no longer than one), for MASE;
                      ///< without a season, that of single moves; 0: none
  double actual = 0;  ///< NaN: not observed, counts nowhere
  Prediction model;
  std::array<double, kSources - 1> baseline{};        ///< point forecasts
  std::array<double, kSources - 1> baseline_sigma{};  ///< of the normal around them; 0: a point

  [[nodiscard]] double point(Source source) const;
  [[nodiscard]] double quantile(Source source, std::size_t level) const;
};

/// A paired comparison of losses (Diebold and Mariano 1995 with the small-sample correction of
/// Harvey, Leybourne and Newbold 1997). Negative: the first one loses less.
struct PairedTest {
  std::size_t count = 0;  ///< origins; what begins at one time counts once
  std::size_t needed =
      0;                 ///< with fewer nothing is said: 10, and 3 for each that may be correlated
  double statistic = 0;  ///< NaN where there is nothing to compare, and with too few
  double p_value = 0;    ///< two-sided; NaN as well

  [[nodiscard]] bool too_few() const { return count < needed; }
};

/// How good one source was over one group of cells. NaN: not defined for this group.
struct Metrics {
  std::string symbol;    ///< empty: all
  std::string target;    ///< empty: all
  std::size_t step = 0;  ///< 0: all
  Source source = Source::model;
  std::size_t count = 0;       ///< cells
  double mae = 0, rmse = 0;    ///< units of the values: compare within a symbol only
  double mape = 0, smape = 0;  ///< percent
  double mase = 0;             ///< 1: as wrong as the seasonal naive forecast was in context (the
                               ///< last value, where the context has no season)
  double return_mae = 0;       ///< mean of |forecast - actual| / base, percent; NaN where a base is
                               ///< 0 or below, since such values have no returns
  double wql = 0;              ///< weighted quantile loss, mean over the levels
  double crps = 0;             ///< 2 x mean pinball loss over the levels; units of the values
  std::array<double, kLevels> pinball{};  ///< per level; units of the values
  std::array<double, kLevels> below{};    ///< share of actual values at or below the quantile
  std::array<double, 3> coverage{};       ///< of the central 50, 80 and 90 % intervals
  std::array<double, 3> width{};          ///< their mean width, percent of base; NaN as well
  std::size_t directions = 0;             ///< cells where the value moved and the forecast says so
  double direction = 0;                   ///< share with the right sign of actual - base
  double direction_low = 0, direction_high = 0;    ///< its 95 % interval (Wilson)
  std::array<PairedTest, kSources - 1> against{};  ///< the model against each baseline
};

/// What the input scale does: forecasts of the same contexts at scale 1 and at the scale used.
struct ScaleEffect {
  std::size_t contexts = 0;  ///< compared; 0: the scale used was 1 throughout
  double mae_at_one = 0;     ///< mean of |forecast - actual| / |base|, percent
  double mae_at_scale = 0;
  double width_at_one = 0;  ///< of the 80 % interval, percent of |base|
  double width_at_scale = 0;
  double swamped_at_one = 0;  ///< share of contexts whose standard deviation is below the model's
                              ///< smallest scale, sqrt(0.1)
  double swamped_at_scale = 0;
};

/// What the machine did; not part of the results, which are the same bits whatever it did.
struct RunStatistics {
  std::size_t requested = 0;   ///< contexts of all windows
  std::size_t distinct = 0;    ///< of these, no two alike
  std::size_t cache_hits = 0;  ///< of the distinct ones
  std::size_t forecast = 0;    ///< by the model
  std::size_t damaged = 0;     ///< entries of the cache that were not usable
  double seconds = 0;          ///< of forecasting alone
  double series_per_second = 0;
  std::size_t batch = 0;                            ///< series in the largest call
  double call_p50 = 0, call_p95 = 0, call_p99 = 0;  ///< seconds of a call, of up to `batch` series
  std::size_t timed_alone = 0;                      ///< contexts forecast once more, one to a call
  double latency_p50 = 0, latency_p95 = 0, latency_p99 = 0;  ///< seconds of such a forecast
  double least_scale = 0, most_scale = 0;  ///< input scales of what was forecast; 0: nothing was
  std::size_t across = 0;                  ///< contexts that end without a value, forecast across
  std::size_t clamped = 0;                 ///< (target, bar) with a value kept within Guards::clamp
  std::size_t bounded = 0;                 ///< (target, bar) with a value beyond Guards::min or max
};

/// What known covariates gain: the model with them and without, over all targets of a symbol.
struct CovariateGain {
  std::string symbol;
  std::size_t count = 0;            ///< cells
  double mae = 0, mae_without = 0;  ///< units of the values
  PairedTest test;                  ///< over windows; negative: less error with them
};

struct Result {
  std::vector<Symbol> symbols;            ///< those that have windows
  std::vector<data::SeriesError> errors;  ///< those that have none, and why
  std::vector<std::size_t> windows;       ///< [symbols]
  std::vector<std::size_t> season;        ///< [symbols]
  std::vector<std::size_t> unseasonal;    ///< [symbols] forecasts, by target, without two values a
                                          ///< season apart: their scale is that of single moves
  std::vector<Parameters> parameters;     ///< [symbols]
  std::vector<Cell> cells;                ///< by symbol, target, window, step
  Rolling rolling = Rolling::multi_step;
  std::size_t horizon = 0;
  std::size_t exact_steps = 0;  ///< steps whose distribution is computed, not sampled
  ScaleEffect scale_effect;
  std::vector<CovariateGain> covariate_gain;  ///< of symbols that have covariates
  RunStatistics statistics;
};

/// Evaluates the model over windows of every symbol; where there are covariates, with them and once
/// more without. A forecast depends on the bars up to its
/// origin and on nothing else but covariates that are known ahead. Throws Error (2):
/// conflicting_flags (covariates with returns), invalid_horizon, invalid_context,
/// unknown_aggregate, invalid_time; (65) no_windows where no symbol has any, with the reason for
/// each; (130) interrupted; and what Forecaster::forecast throws. Warns of symbols that `by_symbol`
/// does not cover, and of contexts without a season.
Result run(const Market& market, Forecaster& forecaster, const Options& options);

/// Bars of a season by interval: 5 business days, 7 days, 24 hours, a day of shorter bars (at most
/// 1440), 12 months, 52 weeks, 4 quarters; else 1.
std::size_t season_of(const data::Interval& interval);
/// The same, but for bars of less than a day the median number of bars of its days, which knows
/// when the market is open. `Options::season` 0 stands for this.
std::size_t season_of(const Symbol& symbol);

/// Metrics of every symbol, target and step, of each of them over the others, and of all: sorted as
/// tables are read. `only_totals` leaves out single steps.
std::vector<Metrics> measure(const Result& result, const Options& options,
                             bool only_totals = false);

/// An illustration, no advice: long, flat or short at each origin after the sign of the forecast,
/// held to the end of the window. Of windows that overlap only those are traded that begin where
/// nothing is held, so no bar counts twice; between windows that do not touch nothing is held. All
/// figures are of the value at the end of every bar.
struct Trades {
  std::string symbol;       ///< empty: all symbols, an equal part of the money for each
  std::string target;       ///< whose values are traded; empty: not the same for all symbols
  std::size_t periods = 0;  ///< decisions
  double fee = 0;           ///< of the value traded; NaN: not the same for all symbols
  double total_return = 0;  ///< 0.1 is 10 %
  bool yearly = true;       ///< false: times are an index, so what is yearly is NaN
  double yearly_return = 0;
  double yearly_volatility = 0;
  double sharpe = 0;       ///< yearly, no interest
  double drawdown = 0;     ///< largest fall from a peak, 0.2 is 20 %
  double turnover = 0;     ///< positions changed per decision, 2 from long to short
  double hold_return = 0;  ///< of holding in the same bars, without fee
  double hold_sharpe = 0;  ///< yearly
};

/// `fee` nothing: by TradingHours. `dead_zone`: no position where the forecast moves less than
/// that. Looks at the target that is a close in any usual spelling, else at the first that is an
/// open, high or low: what is no price has no returns and is left out. Symbols are put together
/// unless some have times and others an index.
std::vector<Trades> simulate(const Result& result, std::optional<double> fee, double dead_zone = 0);

/// What was run, for the reader of an output.
struct RunDescription {
  std::string model;
  bool synthetic = false;
  std::string model_hash;  ///< of the weights
  std::string precision, mode, decode;
  std::string family = {};  ///< as ModelInfo::architecture
  ModelDefaults defaults = {};
};

/// Every bar that was forecast: symbol, target, window, step, origin, ds, actual, the point
/// forecast of the model and of each baseline, mean and quantiles.
void write_forecasts(const data::TextSink& sink, const Result& result, const Options& options);
void write_metrics(const data::TextSink& sink, std::span<const Metrics> metrics);
/// The whole evaluation as one JSON object, without anything that differs from run to run.
void write_summary(const data::TextSink& sink, const Result& result,
                   std::span<const Metrics> metrics, std::span<const Trades> trades,
                   const Options& options, const RunDescription& run);
/// One page that needs no network: summary, fans, error by step, calibration, error over time.
void write_report(const data::TextSink& sink, const Result& result,
                  std::span<const Metrics> metrics, std::span<const Trades> trades,
                  const Options& options, const RunDescription& run);

/// Forecasts what comes after the last step of each series, as its parameters say: point, mean,
/// median and the quantiles of `asked.levels`, in the user's units. `asked.num_samples` is not
/// looked at. Throws Error (2) conflicting_flags for series with covariates, (65) too_short and
/// non_positive_value, and what Forecaster::forecast throws.
std::vector<Forecast> forecast_next(Forecaster& forecaster,
                                    std::span<const data::TimeSeries> series,
                                    std::span<const Parameters> parameters,
                                    const ForecastOptions& asked);

/// What tune() tries: every combination.
struct Candidates {
  std::vector<std::size_t> contexts = {64, 128, 256, 512};
  std::vector<std::size_t> samples = {256};
  std::vector<Transform> transforms = {Transform::none, Transform::pct, Transform::log_return};
  std::vector<std::string> aggregates = {"median",
                                         "mean",
                                         "trimmed_mean_10",
                                         "quantile_45",
                                         "quantile_55",
                                         "mean_quantile_mix_40_0.5",
                                         "mean_minus_std_0.1",
                                         "mean_plus_std_0.1"};
  std::size_t validation_windows = 60;  ///< of each symbol, what is chosen by
  std::size_t test_windows = 40;        ///< later ones, what is reported
};

struct Tuned {
  std::string symbol;
  Parameters chosen;  ///< `best`, or options.parameters where they are as good
  Parameters best;    ///< with the least MASE on the validation windows
  std::size_t validation_windows = 0, test_windows = 0;
  double validation_mase = 0;          ///< of what was chosen
  double best_validation_mase = 0;     ///< of `best`
  double default_validation_mase = 0;  ///< of options.parameters
  double test_mase = 0, default_test_mase = 0, last_value_test_mase = 0;
  double best_test_mase = 0;
  /// Of the 80 % band of what was chosen on the test windows, as the model gives it and with the
  /// widths of `chosen`, which are those that were right on the validation windows (docs/cli.md).
  double test_coverage_as_is = 0, test_coverage = 0;
  double test_loss_as_is = 0, test_loss = 0;  ///< mean pinball loss over the levels, scaled as MASE
  /// How often luck alone would give the best of so many candidates such a lead over the defaults
  /// (White's Reality Check on the validation windows). NaN: too few windows to say; 1: none leads.
  double p_luck = 0;
  bool keeps_default = false;  ///< p_luck is NaN or above kTunedByLuck
  PairedTest against_default;  ///< `best` on the test windows; negative: it errs less
};

/// What p_luck may be at most for parameters other than the defaults.
inline constexpr double kTunedByLuck = 0.05;

struct Tuning {
  std::vector<Tuned> symbols;
  std::vector<data::SeriesError> errors;  ///< symbols that have too few bars
  std::size_t candidates = 0;
  RunStatistics statistics;
};

/// Chooses parameters for each symbol: those with the least MASE over all targets of its validation
/// windows, if their lead over the defaults (options.parameters) is more than luck, else the
/// defaults. The last windows are test windows; nothing is chosen by them. `options.windows` is not
/// looked at. The widths of the bands of what is written are those that would have been right on
/// the validation windows. A symbol without returns (prices of 0 and below) is offered `none`
/// alone. Throws as run() does, (2) no_candidates, and (65) no_windows where no symbol has enough
/// bars.
Tuning tune(const Market& market, Forecaster& forecaster, const Options& options,
            const Candidates& candidates);

/// What read_parameters() reads, and how it was found.
void write_parameters(const data::TextSink& sink, const Tuning& tuning, const Options& options,
                      const RunDescription& run);

/// A file of parameters by symbol: what tune() found. Throws Error (65) invalid_parameters,
/// (66) file_not_found.
std::map<std::string, Parameters, std::less<>> read_parameters(const std::string& path);

}  // namespace toto::backtest
#pragma GCC visibility pop
