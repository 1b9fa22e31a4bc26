// SPDX-License-Identifier: Apache-2.0
// Every kind of refusal, and what does not crash.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "check.h"

void test_null_arguments(void) {
  toto_error* caught = NULL;
  toto_model* model = tiny_model();
  toto_forecaster* forecaster = NULL;
  toto_forecast* forecast = NULL;
  toto_counters counters = TOTO_COUNTERS_INIT;
  toto_parameters parameters = TOTO_PARAMETERS_INIT;
  toto_series series = wave_series("a", 0);
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;

  CHECK_FAILS(toto_model_load(NULL, NULL, &caught), TOTO_USAGE, "null_argument", "model");
  CHECK_FAILS(toto_forecaster_new(NULL, NULL, &forecaster, &caught), TOTO_USAGE, "null_argument",
              "model");
  CHECK_FAILS(toto_forecaster_new(model, NULL, NULL, &caught), TOTO_USAGE, "null_argument",
              "forecaster");
  CHECK_OK(toto_forecaster_new(model, NULL, &forecaster, &caught));
  CHECK_FAILS(toto_forecaster_forecast(NULL, &series, 1, NULL, &forecast, &caught), TOTO_USAGE,
              "null_argument", "forecaster");
  CHECK_FAILS(toto_forecaster_forecast(forecaster, NULL, 1, NULL, &forecast, &caught), TOTO_USAGE,
              "null_argument", "series");
  CHECK_FAILS(toto_forecaster_forecast(forecaster, &series, 1, NULL, NULL, &caught), TOTO_USAGE,
              "null_argument", "forecast");
  series.values = NULL;
  CHECK_FAILS(toto_forecaster_forecast(forecaster, &series, 1, NULL, &forecast, &caught),
              TOTO_USAGE, "null_argument", "series[0].values");
  series.values = wave(0);
  series.num_groups = 1;
  CHECK_FAILS(toto_forecaster_forecast(forecaster, &series, 1, NULL, &forecast, &caught),
              TOTO_USAGE, "null_argument", "series[0].groups");
  series.num_groups = 0;
  options.num_levels = 1;
  CHECK_FAILS(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &caught),
              TOTO_USAGE, "null_argument", "options.levels");
  CHECK_FAILS(toto_forecaster_warm_up(NULL, NULL, 0, NULL, &caught), TOTO_USAGE, "null_argument",
              "forecaster");
  CHECK_FAILS(toto_forecaster_warm_up(forecaster, NULL, 1, NULL, &caught), TOTO_USAGE,
              "null_argument", "shapes");
  CHECK_FAILS(toto_forecaster_counters(NULL, &counters, &caught), TOTO_USAGE, "null_argument",
              "forecaster");
  CHECK_FAILS(toto_forecaster_counters(forecaster, NULL, &caught), TOTO_USAGE, "null_argument",
              "counters");
  CHECK_FAILS(toto_forecast_parameters(NULL, 0, &parameters, &caught), TOTO_USAGE, "null_argument",
              "forecast");
  CHECK(forecast == NULL);

  // Without an error object the status alone says it.
  CHECK(toto_model_load(NULL, NULL, NULL) == TOTO_USAGE);
  toto_forecaster_free(forecaster);
  CHECK(toto_forecaster_new(NULL, NULL, &forecaster, NULL) == TOTO_USAGE);
  toto_model_free(model);
}

void test_null_handles(void) {
  toto_model_free(NULL);
  toto_forecaster_free(NULL);
  toto_forecast_free(NULL);
  toto_error_free(NULL);
  CHECK(toto_error_status(NULL) == TOTO_OK);
  CHECK(strcmp(toto_error_code(NULL), "") == 0);
  CHECK(strcmp(toto_error_message(NULL), "") == 0);
  CHECK(strcmp(toto_error_where(NULL), "") == 0);
  CHECK(strcmp(toto_error_remedy(NULL), "") == 0);
  CHECK(toto_model_name(NULL) == NULL && toto_model_folder(NULL) == NULL);
  CHECK(toto_model_architecture(NULL) == NULL && toto_model_patch_size(NULL) == 0);
  CHECK(toto_model_parameters(NULL) == 0 && toto_model_is_synthetic(NULL) == 0);
  CHECK(toto_forecast_count(NULL) == 0 && toto_forecast_id(NULL, 0) == NULL);
  CHECK(toto_forecast_variates(NULL, 0) == 0 && toto_forecast_horizon(NULL, 0) == 0);
  CHECK(toto_forecast_exact_steps(NULL, 0) == 0 && toto_forecast_num_samples(NULL, 0) == 0);
  CHECK(toto_forecast_num_levels(NULL, 0) == 0 && toto_forecast_levels(NULL, 0) == NULL);
  CHECK(toto_forecast_mean(NULL, 0) == NULL && toto_forecast_median(NULL, 0) == NULL);
  CHECK(toto_forecast_std(NULL, 0) == NULL && toto_forecast_quantiles(NULL, 0) == NULL);
  CHECK(toto_forecast_samples(NULL, 0) == NULL);
}

static void count_line(void* user, const char* line) {
  CHECK(line[0] != '\0');
  ++*(int*)user;
}

// With a GPU both load; without one "cuda" is refused, and "auto" says that the CPU computes.
void test_devices(void) {
  toto_error* caught = NULL;
  toto_model* model = NULL;
  toto_model_options options = TOTO_MODEL_OPTIONS_INIT;
  char folder[4096];
  int lines = 0;
  snprintf(folder, sizeof folder, "%s/toto1-tiny-a", getenv("CAPI_TEST_DATA"));
  options.model = folder;
  options.device = "cuda";
  options.warning = count_line;
  options.user = &lines;
  const toto_status cuda = toto_model_load(&options, &model, &caught);
  CHECK(cuda == TOTO_OK || cuda == TOTO_DEVICE_UNAVAILABLE);
  if (cuda != TOTO_OK) {
    CHECK(model == NULL && strcmp(toto_error_code(caught), "device_unavailable") == 0);
    CHECK(strcmp(toto_error_where(caught), "options.device") == 0);
    CHECK(toto_error_remedy(caught)[0] != '\0');
  }
  toto_error_free(caught);
  caught = NULL;
  toto_model_free(model);
  options.device = "auto";
  CHECK_OK(toto_model_load(&options, &model, &caught));
  CHECK(lines == (cuda == TOTO_OK ? 0 : 1));
  toto_model_free(model);
}

void test_model_errors(void) {
  toto_error* caught = NULL;
  toto_model* model = NULL;
  toto_model_options options = TOTO_MODEL_OPTIONS_INIT;
  char config[4096];

  options.model = "/no/such/model";
  CHECK(toto_model_load(&options, &model, &caught) == TOTO_MISSING_INPUT);
  CHECK(model == NULL);
  CHECK(strcmp(toto_error_code(caught), "model_not_found") == 0);
  CHECK(strstr(toto_error_message(caught), "/no/such/model") != NULL);
  toto_error_free(caught);
  caught = NULL;

  options.model = "owner/no-such-model";
  options.hub_cache = "/no/such/cache";
  CHECK_FAILS(toto_model_load(&options, &model, &caught), TOTO_MISSING_INPUT, "model_not_found",
              "owner/no-such-model");
  snprintf(config, sizeof config, "%s/toto1-tiny-a/config.json", getenv("CAPI_TEST_DATA"));
  options.model = config;  // a file, but of no weights
  CHECK(toto_model_load(&options, &model, &caught) == TOTO_BAD_DATA);
  toto_error_free(caught);
  caught = NULL;

  options.model = NULL;
  options.mode = "fastest";
  CHECK_FAILS(toto_model_load(&options, &model, &caught), TOTO_USAGE, "unknown_mode",
              "options.mode");
  options.mode = NULL;
  options.device = "tpu";
  CHECK_FAILS(toto_model_load(&options, &model, &caught), TOTO_USAGE, "unknown_device",
              "options.device");
  options.device = NULL;
  options.backend = "x";
  CHECK_FAILS(toto_model_load(&options, &model, &caught), TOTO_USAGE, "unknown_backend",
              "options.backend");
  options.backend = NULL;
  options.precision = "int4";
  CHECK_FAILS(toto_model_load(&options, &model, &caught), TOTO_USAGE, "unknown_dtype",
              "options.precision");
  options.precision = NULL;
  options.threads = -1;
  CHECK_FAILS(toto_model_load(&options, &model, &caught), TOTO_USAGE, "invalid_threads",
              "options.threads");
  options.threads = 0;
  setenv("TOTO_COMPILE_MODE", "nonsense", 1);
  CHECK_FAILS(toto_model_load(&options, &model, &caught), TOTO_BAD_CONFIG, "unknown_mode",
              "TOTO_COMPILE_MODE");
  unsetenv("TOTO_COMPILE_MODE");
  setenv("TOTO_MODEL_ID", "/no/such/model", 1);
  CHECK(toto_model_load(NULL, &model, NULL) == TOTO_MISSING_INPUT);
  unsetenv("TOTO_MODEL_ID");
}

void test_forecaster_errors(void) {
  toto_error* caught = NULL;
  toto_model* model = tiny_model();
  toto_forecaster* forecaster = NULL;
  toto_forecaster_options options = TOTO_FORECASTER_OPTIONS_INIT;
  toto_forecast* forecast = NULL;
  const toto_series series = wave_series("a", 0);

  options.plan_cache = "sometimes";
  CHECK_FAILS(toto_forecaster_new(model, &options, &forecaster, &caught), TOTO_USAGE,
              "invalid_setting", "options.plan_cache");
  CHECK(forecaster == NULL);
  options.plan_cache = "only";
  options.plan_cache_dir = "/no/such/folder";
  CHECK(toto_forecaster_new(model, &options, &forecaster, &caught) == TOTO_BAD_CONFIG);
  CHECK(strcmp(toto_error_code(caught), "plan_cache_miss") == 0);
  toto_error_free(caught);
  caught = NULL;
  options.plan_cache = options.plan_cache_dir = NULL;
  options.memory_limit = 1;
  CHECK_OK(toto_forecaster_new(model, &options, &forecaster, &caught));
  CHECK(toto_forecaster_forecast(forecaster, &series, 1, NULL, &forecast, &caught) == TOTO_USAGE);
  CHECK(strcmp(toto_error_code(caught), "memory_limit") == 0);
  toto_error_free(caught);
  toto_forecaster_free(forecaster);
  toto_model_free(model);
}

void test_request_errors(void) {
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast* forecast = NULL;
  const toto_series series = wave_series("a", 0);
  const toto_forecast_options good = TOTO_FORECAST_OPTIONS_INIT;
  toto_forecast_options options = good;
  static const double bad_levels[] = {0.0, 1.0, -0.5, 2.0, NAN};
  toto_warmup_shape shape = TOTO_WARMUP_SHAPE_INIT;

#define REFUSED(code, where)                                                                  \
  CHECK_FAILS(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &caught), \
              TOTO_USAGE, code, where);                                                       \
  options = good
  options.horizon = 0;
  REFUSED("invalid_horizon", "");
  options.horizon = SIZE_MAX;
  REFUSED("invalid_horizon", "");
  options.num_samples = 0;
  REFUSED("invalid_samples", "");
  options.num_samples = 65537;
  REFUSED("invalid_samples", "");
  for (size_t i = 0; i < sizeof bad_levels / sizeof bad_levels[0]; ++i) {
    options.levels = &bad_levels[i];
    options.num_levels = 1;
    REFUSED("invalid_quantile", "");
  }
  options.decode = 2;
  REFUSED("invalid_choice", "options.decode");
  options.quantiles_from = -1;
  REFUSED("invalid_choice", "options.quantiles_from");
  options.align = 7;
  REFUSED("invalid_choice", "options.align");
  options.tails = 4;
  REFUSED("invalid_choice", "options.tails");
  options.paths = 3;
  REFUSED("invalid_choice", "options.paths");
#undef REFUSED
  CHECK(forecast == NULL);

  CHECK_FAILS(toto_forecaster_warm_up(forecaster, &shape, 1, NULL, &caught), TOTO_USAGE,
              "invalid_warmup", "shapes[0]");
  toto_forecaster_free(forecaster);
}

void test_series_errors(void) {
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast* forecast = NULL;
  float values[kSteps];
  uint8_t mask[kSteps];
  int32_t groups[kSteps];
  toto_series two[2];

#define REFUSED(series, count, code, where)                                                      \
  CHECK_FAILS(toto_forecaster_forecast(forecaster, (series), (count), NULL, &forecast, &caught), \
              TOTO_BAD_DATA, code, where)
  two[0] = wave_series("a", 0);
  two[1] = wave_series("a", 1);
  REFUSED(two, 2, "duplicate_id", "series 'a'");
  two[0].steps = 0;
  REFUSED(two, 1, "invalid_series", "series 'a'");
  two[0].steps = SIZE_MAX / 2;
  two[0].variates = 5;
  REFUSED(two, 1, "invalid_series", "series[0]");
  two[0] = wave_series("a", 0);
  two[0].exogenous = 2;
  REFUSED(two, 1, "invalid_series", "series 'a'");

  memcpy(values, wave(0), sizeof values);
  values[5] = NAN;
  two[0] = wave_series("a", 0);
  two[0].values = values;
  REFUSED(two, 1, "not_finite", "series 'a'");
  memset(mask, 0, sizeof mask);
  two[0] = wave_series("a", 0);
  two[0].mask = mask;
  REFUSED(two, 1, "no_observations", "series 'a'");
  for (int t = 0; t < kSteps; ++t) groups[t] = t;  // changes inside a patch
  two[0] = wave_series("a", 0);
  two[0].groups = groups;
  two[0].num_groups = kSteps;
  REFUSED(two, 1, "invalid_series", "series 'a'");
  two[0].num_groups = 3;
  REFUSED(two, 1, "invalid_series", "series 'a'");
#undef REFUSED
  CHECK(forecast == NULL);
  toto_forecaster_free(forecaster);
}

// Callers that were built with an older header, or with a newer one.
void test_struct_sizes(void) {
  toto_error* caught = NULL;
  toto_model* model = tiny_model();
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast* forecast = NULL;
  struct {
    toto_forecast_options known;
    uint64_t later;
  } newer = {TOTO_FORECAST_OPTIONS_INIT, 0};
  struct {
    toto_series known;
    const char* later;
  } series[2];
  struct {
    toto_counters known;
    uint64_t later;
  } counters = {TOTO_COUNTERS_INIT, 77};
  toto_model_options model_options = TOTO_MODEL_OPTIONS_INIT;
  toto_forecaster_options forecaster_options = TOTO_FORECASTER_OPTIONS_INIT;
  toto_parameters parameters = TOTO_PARAMETERS_INIT;
  toto_warmup_shape shape = TOTO_WARMUP_SHAPE_INIT;

  memset(series, 0, sizeof series);
  series[0].known = wave_series("a", 0);
  series[1].known = wave_series("b", 1);
  series[0].known.struct_size = series[1].known.struct_size = sizeof series[0];
  newer.known.struct_size = sizeof newer;
  newer.known.horizon = 4;
  CHECK_OK(
      toto_forecaster_forecast(forecaster, &series[0].known, 2, &newer.known, &forecast, &caught));
  CHECK(toto_forecast_count(forecast) == 2);
  CHECK(strcmp(toto_forecast_id(forecast, 1), "b") == 0);

  newer.later = 1;  // asks for what this library does not know
  CHECK_FAILS(
      toto_forecaster_forecast(forecaster, &series[0].known, 2, &newer.known, &forecast, &caught),
      TOTO_USAGE, "invalid_struct_size", "options");
  CHECK(toto_forecast_count(forecast) == 0);
  newer.known.struct_size = 0;
  CHECK_FAILS(
      toto_forecaster_forecast(forecaster, &series[0].known, 2, &newer.known, &forecast, &caught),
      TOTO_USAGE, "invalid_struct_size", "options");
  newer.known.struct_size = (size_t)-1;
  CHECK_FAILS(
      toto_forecaster_forecast(forecaster, &series[0].known, 2, &newer.known, &forecast, &caught),
      TOTO_USAGE, "invalid_struct_size", "options");
  series[1].later = "x";
  CHECK_FAILS(toto_forecaster_forecast(forecaster, &series[0].known, 2, NULL, &forecast, &caught),
              TOTO_USAGE, "invalid_struct_size", "series[1]");
  series[1].later = NULL;
  series[1].known.struct_size = sizeof series[1].known;
  CHECK_FAILS(toto_forecaster_forecast(forecaster, &series[0].known, 2, NULL, &forecast, &caught),
              TOTO_USAGE, "invalid_struct_size", "series[1]");
  series[0].known.struct_size = 8;
  CHECK_FAILS(toto_forecaster_forecast(forecaster, &series[0].known, 1, NULL, &forecast, &caught),
              TOTO_USAGE, "invalid_struct_size", "series[0]");

  counters.known.struct_size = sizeof counters;
  CHECK_OK(toto_forecaster_counters(forecaster, &counters.known, &caught));
  CHECK(counters.known.forecasts == 1 && counters.known.struct_size == sizeof counters);
  CHECK(counters.later == 0);
  counters.known.struct_size = 3;
  CHECK_FAILS(toto_forecaster_counters(forecaster, &counters.known, &caught), TOTO_USAGE,
              "invalid_struct_size", "counters");

  model_options.struct_size = 1;
  toto_model* none = NULL;
  CHECK_FAILS(toto_model_load(&model_options, &none, &caught), TOTO_USAGE, "invalid_struct_size",
              "options");
  forecaster_options.struct_size = 1;
  toto_forecaster* no_forecaster = NULL;
  CHECK_FAILS(toto_forecaster_new(model, &forecaster_options, &no_forecaster, &caught), TOTO_USAGE,
              "invalid_struct_size", "options");
  shape.struct_size = 1;
  CHECK_FAILS(toto_forecaster_warm_up(forecaster, &shape, 1, NULL, &caught), TOTO_USAGE,
              "invalid_struct_size", "shapes[0]");
  newer.later = 0;
  newer.known.struct_size = sizeof newer;
  newer.known.keep_parameters = 1;
  series[0].known.struct_size = sizeof series[0];
  CHECK_OK(
      toto_forecaster_forecast(forecaster, &series[0].known, 1, &newer.known, &forecast, &caught));
  parameters.struct_size = 0;
  CHECK_FAILS(toto_forecast_parameters(forecast, 0, &parameters, &caught), TOTO_USAGE,
              "invalid_struct_size", "parameters");
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
  toto_model_free(model);
}
