// SPDX-License-Identifier: Apache-2.0
// The C interface of toto.cpp (C99): load a model, describe series, forecast, read the results.
//
//   toto_error* error = NULL;
//   toto_model* model = NULL;
//   if (toto_model_load(NULL, &model, &error) != TOTO_OK) {  // the model that ships with toto
//     fprintf(stderr, "%s\n", toto_error_message(error));
//     toto_error_free(error);
//   }
//
// Errors. A function that can fail returns a toto_status and takes `error`, the address of a
// pointer that it sets: to NULL, or on failure to an object that belongs to the caller
// (toto_error_free). `error` itself may be NULL. No C++ exception leaves a function. A NULL where
// something is needed is TOTO_USAGE with the code null_argument, never a crash.
//
// Handles (toto_model, toto_forecaster, toto_forecast, toto_error) are opaque. Every free function
// takes NULL and does nothing. A handle that was freed must not be used again.
//
// Threads. Any number of threads may use one model, and each its own forecaster. Calls on the same
// forecaster take turns; a callback must not call the forecaster that calls it. Errors and results
// are not shared unless the caller does so.
//
// Strings are UTF-8 and end with a zero byte. Sizes are size_t. Arrays are row-major.
//
// Binary interface. Fields are only ever added at the end of a struct. `struct_size` says which
// fields the caller knows: set it to sizeof the struct, as the *_INIT macros do. A field that the
// caller does not know is taken as zero, which is its default; one that this library does not know
// must be zero, else the error is invalid_struct_size. Functions and numbers of enumerations are
// not removed or changed while the number in "libtoto.so.0" is the same.
#ifndef TOTO_TOTO_H
#define TOTO_TOTO_H

#include <stddef.h>
#include <stdint.h>

#define TOTO_VERSION_MAJOR 0
#define TOTO_VERSION_MINOR 1
#define TOTO_VERSION_PATCH 0
/// 100 for 0.1.0, 10203 for 1.2.3.
#define TOTO_VERSION_NUMBER \
  (10000 * TOTO_VERSION_MAJOR + 100 * TOTO_VERSION_MINOR + TOTO_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// ---- Version: of the library that runs, which may be newer than this header ----

/// "0.1.0"
const char* toto_version(void);
/// As TOTO_VERSION_NUMBER.
uint32_t toto_version_number(void);

// ---- Errors ----

/// The kind of an error: what the program `toto` exits with (docs/errors.md).
typedef enum toto_status {
  TOTO_OK = 0,
  TOTO_USAGE = 2,                ///< an argument or option is wrong
  TOTO_BAD_DATA = 65,            ///< a series or a model file is malformed
  TOTO_MISSING_INPUT = 66,       ///< a file or model is not there
  TOTO_DEVICE_UNAVAILABLE = 69,  ///< the device asked for is not to be had
  TOTO_INTERNAL = 70,            ///< a defect of the library, or memory does not suffice
  TOTO_IO = 74,                  ///< reading or writing failed
  TOTO_BAD_CONFIG = 78,          ///< config.json or an environment variable is wrong
  TOTO_INTERRUPTED = 130         ///< a callback asked to stop
} toto_status;

typedef struct toto_error toto_error;

// All take NULL: the status is then TOTO_OK and the texts are empty. Texts live as long as `error`.
toto_status toto_error_status(const toto_error* error);
/// Stable, for programs: "model_not_found" (docs/errors.md).
const char* toto_error_code(const toto_error* error);
/// One line for people: where, what was expected and found, what to do.
const char* toto_error_message(const toto_error* error);
/// The file, tensor, field or series; may be empty.
const char* toto_error_where(const toto_error* error);
/// What to do; may be empty.
const char* toto_error_remedy(const toto_error* error);
void toto_error_free(toto_error* error);

/// Called with one line. It must return normally: no longjmp, no exception.
typedef void (*toto_message_fn)(void* user, const char* line);
/// Called as work proceeds. A value other than 0 stops it: the call fails with TOTO_INTERRUPTED.
typedef int (*toto_progress_fn)(void* user, size_t done, size_t total);

// ---- Models ----

typedef struct toto_model toto_model;

/// Words are those of docs/settings.md. NULL or 0: the environment says it (TOTO_COMPILE_MODE,
/// TOTO_NUM_THREADS ...), else the built-in value. TOTO_DISABLE_COMPILE=1 outranks `mode`.
typedef struct toto_model_options {
  size_t struct_size;
  const char* model;      ///< a folder, a .safetensors file or a Hub id; NULL or "": TOTO_MODEL_ID,
                          ///< then the model that ships with toto
  const char* hub_cache;  ///< NULL: where Hugging Face keeps its cache
  const char* device;     ///< "cpu", "cuda" or "auto"
  const char* backend;    ///< of the CPU: "cpu" or "reference"
  const char* mode;       ///< "eager", "default", "reduce-overhead" or "max-autotune"
  const char* precision;  ///< "float32", "tf32", "bfloat16", "float64" or "int8"
  int32_t threads;        ///< of the cpu backend
  int32_t strict;         ///< 1: unknown keys of config.json are errors
  toto_message_fn warning;  ///< told what is not as it was asked to be, and what variables that are
                            ///< set for PyTorch mean here; may be NULL. Called while the model is
                            ///< loaded, and later from any thread that forecasts
  void* user;               ///< handed to `warning`; must live as long as the model is used
} toto_model_options;
#define TOTO_MODEL_OPTIONS_INIT \
  { sizeof(toto_model_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL }

/// Loads a model. `options` NULL: all defaults. Sets `*model`, on failure to NULL.
/// Codes: model_not_chosen (2), model_not_found, model_incomplete (66), device_unavailable (69),
/// out_of_memory (70); of words unknown_mode, unknown_device ... (2, of the environment 78); of
/// files those of docs/errors.md (65, 78).
toto_status toto_model_load(const toto_model_options* options, toto_model** model,
                            toto_error** error);
/// A forecaster that was made with the model keeps what it needs.
void toto_model_free(toto_model* model);

// Of a model; of NULL: NULL or 0. Texts live as long as the model.
const char* toto_model_name(const toto_model* model);          ///< what was asked for
const char* toto_model_folder(const toto_model* model);        ///< where its files are
const char* toto_model_architecture(const toto_model* model);  ///< "toto-1.0"
size_t toto_model_patch_size(const toto_model* model);         ///< steps
uint64_t toto_model_parameters(const toto_model* model);       ///< number of weights
/// 1: hash weights, so forecasts mean nothing.
int32_t toto_model_is_synthetic(const toto_model* model);

// ---- Forecasters ----

typedef struct toto_forecaster toto_forecaster;

typedef struct toto_forecaster_options {
  size_t struct_size;
  uint64_t memory_limit;         ///< bytes of working memory, weights excluded; 0: no limit
  size_t max_plans;              ///< 0: TOTO_MAX_PLANS, then 256
  const char* plan_cache_dir;    ///< docs/settings.md; NULL: TOTO_PLAN_CACHE_DIR, then none
  const char* plan_cache;        ///< "prefer", "only" or "never"; NULL: "prefer"
  int32_t strict_counters;       ///< 1: `warning` is told what is built or allocated after warm-up
  int32_t deterministic_checks;  ///< 1: computes twice; other bits are not_deterministic (70)
  toto_message_fn warning;       ///< what is not as it was asked to be; may be NULL
  toto_message_fn plan_log;      ///< each plan built, evicted or split; may be NULL
  void* user;                    ///< handed to both; must live as long as the forecaster
} toto_forecaster_options;
#define TOTO_FORECASTER_OPTIONS_INIT \
  { sizeof(toto_forecaster_options), 0, 0, NULL, NULL, 0, 0, NULL, NULL, NULL }

/// `options` NULL: all defaults. Sets `*forecaster`, on failure to NULL.
/// Codes: unknown words as above (2), plan_cache_miss (78), out_of_memory (70).
toto_status toto_forecaster_new(const toto_model* model, const toto_forecaster_options* options,
                                toto_forecaster** forecaster, toto_error** error);
void toto_forecaster_free(toto_forecaster* forecaster);

// ---- Series and options of a forecast ----

/// V variates over T steps that are forecast jointly. The memory stays the caller's and need not
/// outlive the call. In an array of series all have the `struct_size` of the first.
typedef struct toto_series {
  size_t struct_size;
  const char* id;         ///< names the result and addresses the random numbers; every series of a
                          ///< call has another one; NULL: ""
  size_t variates;        ///< V; 0: 1
  size_t steps;           ///< T, at least 1
  const float* values;    ///< [V][T], in the caller's units, all finite
  const uint8_t* mask;    ///< [V][T], 1 = observed; NULL: all observed
  const int32_t* groups;  ///< [V] or [V][T] (constant in a patch); NULL: one group. Variates attend
                          ///< to each other only within a group
  size_t num_groups;      ///< how many numbers `groups` holds: V or V*T
  size_t exogenous;       ///< E: the last E variates are covariates
  const float* future_exogenous;  ///< [E][horizon]; NULL: covariates are forecast too
} toto_series;
#define TOTO_SERIES_INIT \
  { sizeof(toto_series), NULL, 0, 0, NULL, NULL, NULL, 0, 0, NULL }

enum toto_decode {
  TOTO_DECODE_CACHED = 0,   ///< as the reference's forecast() does
  TOTO_DECODE_UNCACHED = 1  ///< every patch from scratch
};
enum toto_quantiles_from {
  TOTO_QUANTILES_AUTOMATIC = 0,    ///< exact inside the first patch, sampled beyond it
  TOTO_QUANTILES_FROM_SAMPLES = 1  ///< sampled throughout
};
/// What Toto 2.0 gives beyond its outermost quantiles, 0.1 and 0.9.
enum toto_tails {
  TOTO_TAILS_CLAMP = 0,        ///< these two, as the official code
  TOTO_TAILS_EXPONENTIAL = 1,  ///< exponential tails through the outermost two: an assumption
  TOTO_TAILS_NORMAL = 2,       ///< normal tails through the median and the outermost: another
  TOTO_TAILS_AUTO = 3          ///< what the model names, else clamp
};
/// How the steps of a trajectory are drawn.
enum toto_paths {
  TOTO_PATHS_AUTO = 0,         ///< as the model names, else independent
  TOTO_PATHS_INDEPENDENT = 1,  ///< each by itself, as the official code
  TOTO_PATHS_COHERENT = 2      ///< together, as the model's forecasts of the context show
};
enum toto_align {
  TOTO_ALIGN_PAD = 0,  ///< the context is padded to whole patches, as in the reference
  TOTO_ALIGN_TRIM = 1  ///< its oldest steps are left out instead
};

typedef struct toto_forecast_options {
  size_t struct_size;
  size_t horizon;             ///< H: steps, 1 to 100,000; TOTO_FORECAST_OPTIONS_INIT: 64
  size_t num_samples;         ///< trajectories, 1 to 65,536; ..._INIT: 256
  const double* levels;       ///< of quantiles, in (0, 1); NULL: 0.1, 0.2 ... 0.9
  size_t num_levels;          ///< how many `levels` holds; 0 with `levels` not NULL: no quantiles
  uint64_t seed;              ///< the same seed, model, series and options: the same bits
  int32_t mean_only;          ///< 1: one trajectory of means; no median, quantiles or samples
  int32_t decode;             ///< TOTO_DECODE_*
  int32_t quantiles_from;     ///< TOTO_QUANTILES_*
  int32_t align;              ///< TOTO_ALIGN_*
  int32_t keep_samples;       ///< 1: toto_forecast_samples
  int32_t keep_parameters;    ///< 1: toto_forecast_parameters
  toto_progress_fn progress;  ///< may be NULL; also the way to cancel
  void* user;                 ///< handed to `progress`
  int32_t tails;              ///< TOTO_TAILS_*; ..._INIT: TOTO_TAILS_AUTO
  const char* views;          ///< "flip,log,season" (docs/cli.md), averaged; NULL: none
  int32_t paths;              ///< TOTO_PATHS_*
  int32_t unused;             ///< 0
} toto_forecast_options;
#define TOTO_FORECAST_OPTIONS_INIT                                                    \
  {                                                                                   \
    sizeof(toto_forecast_options), 64, 256, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, \
        TOTO_TAILS_AUTO, NULL, TOTO_PATHS_AUTO, 0                                     \
  }

// ---- Forecasts ----

/// The forecasts of one call, one for each series, in order.
typedef struct toto_forecast toto_forecast;

/// Forecasts `count` series. `options` NULL: all defaults. `*forecast` is NULL, or the result of an
/// earlier call, whose memory is used again.
/// On failure `*forecast` stays what it was, without any series in it.
/// Codes: invalid_horizon, invalid_samples, invalid_quantile, invalid_choice, memory_limit (2);
/// no_observations, not_finite, invalid_series, duplicate_id (65); nonfinite_forecast,
/// not_deterministic, out_of_memory, device_failed (70); interrupted (130).
toto_status toto_forecaster_forecast(toto_forecaster* forecaster, const toto_series* series,
                                     size_t count, const toto_forecast_options* options,
                                     toto_forecast** forecast, toto_error** error);
void toto_forecast_free(toto_forecast* forecast);

/// How many series there are; 0 for NULL.
size_t toto_forecast_count(const toto_forecast* forecast);

// Of the series `index`. Of NULL, or beyond the last: 0 or NULL. Pointers belong to the forecast:
// they are good until it is freed or used for another call.
const char* toto_forecast_id(const toto_forecast* forecast, size_t index);
size_t toto_forecast_variates(const toto_forecast* forecast, size_t index);  ///< V, covariates too
size_t toto_forecast_horizon(const toto_forecast* forecast, size_t index);   ///< H
/// The first so many steps have exact statistics, without sampling noise.
size_t toto_forecast_exact_steps(const toto_forecast* forecast, size_t index);
size_t toto_forecast_num_samples(const toto_forecast* forecast, size_t index);    ///< 0: none drawn
size_t toto_forecast_num_levels(const toto_forecast* forecast, size_t index);     ///< L
const double* toto_forecast_levels(const toto_forecast* forecast, size_t index);  ///< [L] ascending

// In the units of the series. NULL where there is none (mean_only, keep_samples = 0).
const float* toto_forecast_mean(const toto_forecast* forecast, size_t index);       ///< [V][H]
const float* toto_forecast_median(const toto_forecast* forecast, size_t index);     ///< [V][H]
const float* toto_forecast_std(const toto_forecast* forecast, size_t index);        ///< [V][H]
const float* toto_forecast_quantiles(const toto_forecast* forecast, size_t index);  ///< [L][V][H]
/// [N][V][H], N = toto_forecast_num_samples
const float* toto_forecast_samples(const toto_forecast* forecast, size_t index);

/// The mixture of Student-T distributions at every step, before anything is drawn, in scaled units:
/// value = affine_loc + affine_scale * scaled value. K = 1: one distribution, probability 1.
typedef struct toto_parameters {
  size_t struct_size;
  size_t components;           ///< K
  const double* df;            ///< [V][H][K]
  const double* loc;           ///< [V][H][K]
  const double* scale;         ///< [V][H][K]
  const double* probability;   ///< [V][H][K]
  const double* affine_loc;    ///< [V][H]
  const double* affine_scale;  ///< [V][H]
} toto_parameters;
#define TOTO_PARAMETERS_INIT \
  { sizeof(toto_parameters), 0, NULL, NULL, NULL, NULL, NULL, NULL }

/// Fills `parameters`, whose struct_size is set. Codes: not_kept (2) where keep_parameters was 0,
/// index_out_of_range (2).
toto_status toto_forecast_parameters(const toto_forecast* forecast, size_t index,
                                     toto_parameters* parameters, toto_error** error);

// ---- Warm-up and counters ----

/// A shape to be ready for.
typedef struct toto_warmup_shape {
  size_t struct_size;
  size_t context;   ///< steps, at least 1
  size_t horizon;   ///< steps, at least 1
  size_t variates;  ///< 0: 1
  size_t batch;     ///< series in one call; 0: 1
} toto_warmup_shape;
#define TOTO_WARMUP_SHAPE_INIT \
  { sizeof(toto_warmup_shape), 0, 0, 0, 0 }

/// Builds what forecasts of these shapes need, with these options, and runs each once. In an array
/// of shapes all have the `struct_size` of the first. Codes: invalid_warmup (2) and those of
/// toto_forecaster_forecast.
toto_status toto_forecaster_warm_up(toto_forecaster* forecaster, const toto_warmup_shape* shapes,
                                    size_t count, const toto_forecast_options* options,
                                    toto_error** error);

/// What the machine did since the forecaster was made.
typedef struct toto_counters {
  size_t struct_size;
  uint64_t forecasts;  ///< calls that succeeded
  uint64_t series;
  uint64_t plan_builds;
  uint64_t plan_hits;
  uint64_t plan_evictions;
  uint64_t allocations;  ///< of working memory, by plans
  uint64_t host_reads;   ///< times the host waited for a device inside a forecast
  uint64_t graph_captures;
  uint64_t graph_replays;
  uint64_t graph_fallbacks;
  uint64_t working_bytes;  ///< memory of the plans
  double latency_p50;      ///< seconds, of the last 1024 calls
  double latency_p95;
  double latency_p99;
} toto_counters;
#define TOTO_COUNTERS_INIT \
  { sizeof(toto_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/// Fills `counters`, whose struct_size is set.
toto_status toto_forecaster_counters(const toto_forecaster* forecaster, toto_counters* counters,
                                     toto_error** error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
