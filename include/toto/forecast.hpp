// SPDX-License-Identifier: Apache-2.0
// Forecasting: describe series, ask for a horizon, read statistics.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/log.hpp"
#include "toto/model.hpp"
#include "toto/settings.hpp"
#include "toto/views.hpp"

#pragma GCC visibility push(default)
namespace toto {

/// One request: V variates over T steps that are forecast jointly. A view: the memory stays the
/// caller's and must outlive the call. Arrays are row-major.
struct Series {
  std::string_view id;                   ///< names the output and addresses the random numbers
  std::size_t variates = 1;              ///< V
  std::size_t steps = 0;                 ///< T, at least 1
  std::span<const float> values;         ///< [V][T], in the user's units, all finite
  std::span<const std::uint8_t> mask;    ///< [V][T], 1 = observed; empty: all observed
  std::span<const std::int32_t> groups;  ///< [V] or [V][T] (constant in a patch); empty: one group.
                                         ///< Variates attend to each other only within a group
  std::size_t exogenous = 0;             ///< E: the last E variates are covariates
  std::span<const float> future_exogenous;  ///< [E][horizon]; empty: covariates are forecast too
  /// [E][horizon], 1 = known; empty: all are known. Toto 2.0 alone takes a 0: it is told so, and
  /// sees the value all the same, as in the official code. Give 0 where there is none.
  std::span<const std::uint8_t> future_mask = {};
  /// [V] The values (and known covariates) of a variate are differences from this, and so are its
  /// forecasts: exact where float32 has no digits left, such as around 1e7. Guards::min and max,
  /// whole numbers, and a range that is the size of a value are of offset + value. Empty: all 0.
  std::span<const double> value_offsets = {};
};

enum class Decode {
  cached,    ///< what the reference's forecast() does: keys keep the rotary centre of the call that
             ///< made them
  uncached,  ///< every patch from scratch: one centre for all keys (spec A9)
};

enum class QuantilesFrom {
  automatic,  ///< Toto 1.0: exact from the mixture inside the first patch, from trajectories beyond
              ///< it. Toto 2.0: from the nine quantiles of every step, linear between them
  samples,    ///< from trajectories throughout
};

enum class Align {
  pad,   ///< left-pad the context with zeros to whole patches, as the reference does
  trim,  ///< drop the oldest steps instead, so that no padded value enters the network
};

/// The mixture at every step: what the network says before anything is drawn. [V][horizon][K] each.
struct Parameters {
  std::size_t components = 0;  ///< K
  std::vector<double> df, loc, scale,
      probability;  ///< in scaled units; probability is all 1 for K = 1
  std::vector<double> affine_loc,
      affine_scale;  ///< [V][horizon]: value = loc + scale * scaled value
};

/// What was done beside the model's own arithmetic.
struct Applied {
  std::vector<double> input_scale;   ///< [V] the model saw the values times this; 1: as they are
  std::vector<double> value_offset;  ///< [V] what values and results are differences from, as
                                     ///< Series says; empty: all 0
  std::size_t missing_end = 0;       ///< steps without a value at the end of the context, forecast
                                     ///< across
  std::size_t clamped = 0;  ///< (target, step) with a value beyond Guards::clamp, moved to its edge
  std::size_t bounded = 0;  ///< (target, step) with a value beyond min or max, moved there
  std::size_t filled = 0;   ///< (target, step) of the context that the model has filled
  std::size_t passes = 1;   ///< forecasts that were averaged, that of the series among them
  std::string views_left_out = {};  ///< views that this series does not have, as parse_views has it
  /// [V] Steps after which the season of Views::season comes again, 0 where a variate has none.
  /// Empty: that view was not taken.
  std::vector<std::size_t> season_period = {};
  bool operator==(const Applied&) const = default;
};

struct Forecast {
  std::string id;
  std::size_t variates = 0;  ///< V, covariates included
  std::size_t horizon = 0;   ///< H, steps
  std::size_t exact_steps =
      0;  ///< the first so many steps have exact statistics, free of sampling noise
  std::size_t num_samples = 0;  ///< trajectories behind the other steps; 0 in mean mode
  std::vector<float> mean;      ///< [V][H]; this and the next: empty where not selected, or written
                                ///< to an array of the caller's
  std::vector<float> median;    ///< [V][H]; empty in mean mode
  std::vector<float> point;     ///< [V][H] what backtest::Parameters::aggregate asks for; empty
                                ///< where nothing does
  std::vector<float> std;      ///< [V][H]; empty in mean mode; divisor N-1 where sampled; NaN where
                               ///< the tails are too heavy for one (docs/statistics.md)
  std::vector<double> levels;  ///< the quantile levels asked for, ascending
  std::vector<float> quantiles;  ///< [levels][V][H]; empty in mean mode
  std::vector<float> samples;    ///< [num_samples][V][H] if asked for
  Applied applied;               ///< what was done to the series and to the results
  Parameters parameters;         ///< if asked for: along trajectory 0 beyond the first patch
};

/// How Toto 2.0 decodes; Toto 1.0 takes no notice. The names are those of the official code.
struct BlockDecoding {
  std::size_t decode_block_size = 0;  ///< steps predicted at a time, a multiple of the patch, whose
                                      ///< medians are then taken for observed; 0: all at once
  bool has_missing_values = true;     ///< patches without an observation are not attended to
  std::size_t scaler_fallback_min_obs = 0;  ///< patches with fewer observations up to their end are
                                            ///< scaled with the first so many
  double quantile_real_cap_k = 0;  ///< quantiles stay within so many scales of the context; 0: free
  bool operator==(const BlockDecoding&) const = default;
};

/// Which statistics are formed besides the levels asked for. The vectors of the others stay empty.
struct Select {
  bool mean = true;  ///< mean mode gives it in any case
  bool median = true;
  bool std = true;
  bool operator==(const Select&) const = default;
};

/// What keeps results within what the context supports and what its values can be. Known covariates
/// are not touched, and trajectories are fed back to the model as they were drawn. A standard
/// deviation of more than half of what lies between two bounds is NaN.
struct Guards {
  /// Sampled steps stay within so many ranges below and above the observed values of the context; a
  /// range is the largest less the smallest of them, or the size of a value that never changes.
  /// 0: free. Steps that are computed exactly are never moved.
  double clamp = 4;
  double min = -std::numeric_limits<double>::infinity();  ///< of every statistic and sample
  double max = std::numeric_limits<double>::infinity();
  bool integer = false;  ///< medians, quantiles and samples are rounded to whole numbers; the mean
                         ///< of whole numbers is none
  bool operator==(const Guards&) const = default;
};

struct ForecastOptions {
  std::size_t horizon = 64;  ///< steps, 1 to 100,000
  bool mean_only = false;  ///< one trajectory of mixture means fed back (the reference's mean mode)
  std::size_t num_samples = 256;                                               ///< 1 to 65,536
  std::vector<double> levels = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};  ///< in (0, 1)
  Select select;
  std::optional<std::uint64_t> seed = {};  ///< empty: that of the forecaster
  Decode decode = Decode::cached;
  QuantilesFrom quantiles_from = QuantilesFrom::automatic;
  Paths paths = Paths::automatic;
  Tails tails = Tails::automatic;  ///< of Toto 2.0; Toto 1.0 knows its tails and takes no notice
  Align align = Align::pad;
  BlockDecoding decoding;
  /// A context whose last steps have no observed value (in any variate that is forecast) ends with
  /// the last observation. The steps in between are forecast and left out of the result, which
  /// begins after the context's last step as ever. false: they go into the model as filled values.
  bool across_missing = true;
  /// Gaps of 4 steps or more inside the context hold what the model forecasts from the steps before
  /// them (its median), the last 32 gaps of a series; their mask stays 0. Each gap is one more pass
  /// of the model. false: what the caller has filled in.
  bool gaps_by_model = false;
  /// What the model sees is the series times this, and results are divided by it. 0: a power of two
  /// for each variate, which brings the standard deviation of its observed values to [64, 128), so
  /// that the smallest scale that the model's scaler knows never matters; a series times a power of
  /// two then gives the same bits times it. 1: the series as it is, the bits of the reference.
  double input_scale = 0;
  Guards guards;
  Views views;  ///< forecast as well, and averaged with the series; none: the series alone
  bool keep_samples = false;
  bool keep_parameters = false;
  bool time_device = false;  ///< count Counters::device_seconds: some 3 us of a call
  /// Called as work proceeds with units done and in all; return false to stop (throws Error
  /// interrupted).
  std::function<bool(std::size_t done, std::size_t total)> progress;
};

/// Takes away what the official implementation does not do: no input scale, no forecast across
/// missing values or of gaps, no guards, no views, and of what is automatic independent paths and
/// clamped tails. The bits are then those of the model alone.
void as_reference(ForecastOptions& options);

/// The same options with nothing automatic left: as a forecast of that model takes them.
void complete(ForecastOptions& options, const ModelInfo& info);

struct ForecasterOptions {
  std::uint64_t memory_limit = 0;  ///< bytes of working memory, weights excluded; 0: no limit.
                                   ///< Batches are split to fit, with the same bits
  /// Plans kept in memory; the least recently used goes first. 0: TOTO_MAX_PLANS, then 256.
  std::size_t max_plans = 0;
  /// Of forecasts that name none. Empty: TOTO_SEED, then 0.
  std::optional<std::uint64_t> seed = {};
  /// Plans, graphs, the plan cache and memory as they change, and what is not as it was asked to
  /// be (toto/log.hpp). Empty: nothing is said, unless TOTO_LOG names topics (LoadOptions::log).
  LogSink log = {};
  /// The plan cache on disk (docs/settings.md): what `max-autotune` measured is used again, and the
  /// shapes that were planned are remembered (known_shapes). Empty: TOTO_PLAN_CACHE_DIR, then none.
  std::string plan_cache_dir = {};
  CachePolicy plan_cache = CachePolicy::prefer;
  /// After warm_up(), a forecast that builds a plan, allocates, or does not run as it was captured
  /// is a warning to `log`, with the reason.
  bool strict_counters = false;
  /// Every forecast is computed twice; other bits the second time are Error (70) not_deterministic.
  bool deterministic_checks = false;
  Environment environment = Environment::obeyed;  ///< what may fill in what is left open
};

/// What the machine did. Counts since the forecaster was made; times in seconds.
struct Counters {
  std::uint64_t forecasts = 0;  ///< calls of forecast()
  std::uint64_t series = 0;
  std::uint64_t plan_builds = 0;
  std::uint64_t plan_hits = 0;
  std::uint64_t plan_evictions = 0;
  double plan_seconds = 0;         ///< building plans
  double capture_seconds = 0;      ///< capturing graphs
  double autotune_seconds = 0;     ///< measuring kernels (max-autotune)
  double load_seconds = 0;         ///< loading the model
  std::uint64_t allocations = 0;   ///< of working memory, by plans
  std::uint64_t splits = 0;        ///< batches halved because memory did not suffice
  std::uint64_t thread_parks = 0;  ///< a worker gave up waiting for work and slept
  std::uint64_t host_reads = 0;    ///< times the host waited for a device inside a forecast
  std::uint64_t graph_captures = 0, graph_replays = 0, graph_fallbacks = 0;
  std::uint64_t graph_launches = 0;  ///< kernels in the graph of the last call
  double device_seconds = 0;         ///< graphs, by the device's clock, where a forecast asked for
                                     ///< it (ForecastOptions::time_device)
  std::uint64_t autotune_runs = 0, cache_loads = 0;
  double prepare_seconds = 0;  ///< checking, padding, copying in
  double context_seconds = 0;  ///< the network over contexts
  double decode_seconds = 0;   ///< the network over further patches, and draws
  double statistics_seconds = 0;
  std::uint64_t working_bytes = 0;  ///< memory of the plans
  std::uint64_t device_bytes = 0;   ///< of the device's memory in use now, by all programs; 0: CPU
  double operations = 0;            ///< of the network; a multiply-add is two
  double weight_bytes = 0;          ///< weights read, each once for each call of the network
  double latency_p50 = 0, latency_p95 = 0, latency_p99 = 0;  ///< of the last 1024 calls
  std::string plan;  ///< the plan of the last call, e.g. "rows 512, lanes 64, kv 3 MiB"
  std::vector<std::string> builds;  ///< why each plan was built, the last 32
};

/// "3 series in 12.3 ms; 0 plans built, 1 hit; ...": what matters of them, in one line.
std::string summary(const Counters& counters);
/// One object with all of them, keys as the members. `indent`: spaces before each line but the
/// first.
std::string to_json(const Counters& counters, std::size_t indent = 0);

/// A shape to be ready for: no forecast inside it builds a plan or allocates. On a device that
/// captures graphs the first forecast of each bucket of shapes inside it still captures its own
/// (milliseconds): name the shapes that come.
struct WarmupShape {
  std::size_t context = 512;  ///< steps
  std::size_t horizon = 64;   ///< steps
  std::size_t variates = 1;
  std::size_t batch = 1;  ///< series in one call
};

/// "512x8,4096x336x7x64": CONTEXTxHORIZON[xVARIATES[xBATCH]], separated by commas. Throws Error (2)
/// invalid_warmup.
std::vector<WarmupShape> parse_warmup(std::string_view text);

/// Rows of a variate in an array of the caller's, which is [series][V][rows][H], one series after
/// the other: mean, median, deviation as far as they are selected, then the levels asked for, in
/// ascending order, each once. In mean mode the mean alone.
std::size_t statistic_rows(const ForecastOptions& options);
/// Floats of one series of V variates: V * rows * H.
std::size_t array_size(std::size_t variates, const ForecastOptions& options);

struct ForecastJob;

/// Turns series into forecasts. Not thread-safe: one for each thread. Forecasts of one model take
/// turns, so threads make nothing faster; toto::Service computes their requests together. One that
/// was moved from can be assigned to and destroyed; all else is Error (2) moved_from.
///
/// A forecast's bits depend on the model, the series, the options and the seed; never on the other
/// series of the batch or their order. Draws are addressed by (seed, id, variate, sample, step), so
/// asking for more samples or adding series changes no other number.
/// One that has been moved from can be destroyed or assigned to, and nothing else.
class Forecaster {
 public:
  /// Throws Error for variables of the environment that hold nonsense: invalid_setting,
  /// invalid_seed (78); plan_cache_miss (78).
  explicit Forecaster(Model model, const ForecasterOptions& options = {});
  ~Forecaster();
  Forecaster(Forecaster&&) noexcept;
  Forecaster& operator=(Forecaster&&) noexcept;

  /// One forecast per series, in order; `out` has one element for each. Memory that is already in
  /// them is used again: what has been warmed up allocates nothing.
  /// Throws Error (2): invalid_horizon, invalid_quantile, invalid_samples, invalid_input_scale,
  /// invalid_guard, invalid_views; (65): no_observations, not_finite, invalid_series (sizes that do
  /// not fit, ids that change within a patch), missing_end_too_long, duplicate_id; (70):
  /// nonfinite_forecast, not_deterministic, out_of_memory, device_failed; (130): interrupted.
  void forecast(std::span<const Series> series, const ForecastOptions& options,
                std::span<Forecast> out);
  [[nodiscard]] std::vector<Forecast> forecast(std::span<const Series> series,
                                               const ForecastOptions& options);
  /// The same with options of its own for each series. `progress` of the first is called.
  void forecast(std::span<const Series> series, std::span<const ForecastOptions> options,
                std::span<Forecast> out);
  /// The statistics alone, into one array of the caller's (statistic_rows). Throws also Error (2)
  /// invalid_output where `out` has another size than array_size() of all series together, or where
  /// samples or parameters are to be kept, which have no place in it.
  void forecast(std::span<const Series> series, const ForecastOptions& options,
                std::span<float> out);
  /// Builds what forecasts of these shapes need, with these options, and runs each once.
  void warm_up(std::span<const WarmupShape> shapes, const ForecastOptions& options);
  /// The shapes that the plan cache knows for this model, from this process and earlier ones, the
  /// last one first: what a service that starts again may want to warm up for.
  [[nodiscard]] std::vector<WarmupShape> known_shapes() const;
  [[nodiscard]] Counters counters() const;
  [[nodiscard]] const Model& model() const;

  struct [[gnu::visibility("hidden")]] Impl;

 private:
  friend void forecast_jobs(Forecaster& forecaster, std::span<const ForecastJob> jobs,
                            const std::function<bool(std::size_t, std::size_t)>& progress);
  std::unique_ptr<Impl> impl_;
};

}  // namespace toto
#pragma GCC visibility pop
