// SPDX-License-Identifier: Apache-2.0
// What comes back: shapes, bits, ownership.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "check.h"

void test_version(void) {
  char text[64];
  snprintf(text, sizeof text, "%d.%d.%d", TOTO_VERSION_MAJOR, TOTO_VERSION_MINOR,
           TOTO_VERSION_PATCH);
  CHECK(strcmp(toto_version(), text) == 0);
  CHECK(toto_version_number() == TOTO_VERSION_NUMBER);
}

void test_model(void) {
  toto_model* model = tiny_model();
  CHECK(strcmp(toto_model_architecture(model), "toto-1.0") == 0);
  CHECK(strstr(toto_model_name(model), "toto1-tiny-a") != NULL);
  CHECK(strstr(toto_model_folder(model), "toto1-tiny-a") != NULL);
  CHECK(toto_model_patch_size(model) == kTinyPatch);
  CHECK(toto_model_parameters(model) > 1000);
  CHECK(toto_model_is_synthetic(model) == 0 || toto_model_is_synthetic(model) == 1);
  toto_model_free(model);
}

void test_shipped_model(void) {
  toto_error* caught = NULL;
  toto_model* model = NULL;
  unsetenv("TOTO_MODEL_ID");
  CHECK_OK(toto_model_load(NULL, &model, &caught));
  CHECK(strcmp(toto_model_name(model), "toto-nano-2") == 0);
  CHECK(toto_model_is_synthetic(model) == 0);
  toto_model_free(model);
}

static int same(const float* a, const float* b, size_t count) {
  return a != NULL && b != NULL && memcmp(a, b, count * sizeof *a) == 0;
}

void test_results(void) {
  enum { kHorizon = 20, kSamples = 16 };
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast *first = NULL, *again = NULL, *other = NULL;
  toto_series series[2];
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  const double levels[] = {0.95, 0.1, 0.5};
  float joint[2 * kSteps];
  memcpy(joint, wave(1), sizeof joint / 2);
  memcpy(joint + kSteps, wave(2), sizeof joint / 2);
  series[0] = wave_series("one", 0);
  series[1] = wave_series("two", 1);
  series[1].variates = 2;
  series[1].values = joint;
  options.horizon = kHorizon;
  options.num_samples = kSamples;
  options.levels = levels;
  options.num_levels = 3;
  options.seed = 7;
  options.keep_samples = 1;

  CHECK_OK(toto_forecaster_forecast(forecaster, series, 2, &options, &first, &caught));
  CHECK(toto_forecast_count(first) == 2);
  CHECK(strcmp(toto_forecast_id(first, 0), "one") == 0);
  CHECK(strcmp(toto_forecast_id(first, 1), "two") == 0);
  for (size_t i = 0; i < 2; ++i) {
    const size_t cells = (i + 1) * kHorizon;
    const float* quantiles = toto_forecast_quantiles(first, i);
    CHECK(toto_forecast_variates(first, i) == i + 1);
    CHECK(toto_forecast_horizon(first, i) == kHorizon);
    CHECK(toto_forecast_exact_steps(first, i) == kTinyPatch);
    CHECK(toto_forecast_num_samples(first, i) == kSamples);
    CHECK(toto_forecast_num_levels(first, i) == 3);
    CHECK(toto_forecast_levels(first, i)[0] == 0.1);  // ascending, and the doubles asked for
    CHECK(toto_forecast_levels(first, i)[1] == 0.5);
    CHECK(toto_forecast_levels(first, i)[2] == 0.95);
    CHECK(same(quantiles + cells, toto_forecast_median(first, i), cells));
    for (size_t c = 0; c < cells; ++c) {
      CHECK(isfinite(toto_forecast_mean(first, i)[c]));
      CHECK(toto_forecast_std(first, i)[c] >= 0 || isnan(toto_forecast_std(first, i)[c]));
      CHECK(quantiles[c] <= quantiles[cells + c]);
      CHECK(quantiles[cells + c] <= quantiles[2 * cells + c]);
    }
    for (size_t c = 0; c < kSamples * cells; ++c)
      CHECK(isfinite(toto_forecast_samples(first, i)[c]));
  }
  CHECK(toto_forecast_id(first, 2) == NULL && toto_forecast_mean(first, 2) == NULL);
  CHECK(toto_forecast_horizon(first, 2) == 0 && toto_forecast_levels(first, 2) == NULL);

  // The same seed gives the same bits, alone and in a batch; another seed gives others.
  CHECK_OK(toto_forecaster_forecast(forecaster, &series[1], 1, &options, &again, &caught));
  CHECK(same(toto_forecast_samples(first, 1), toto_forecast_samples(again, 0),
             (size_t)kSamples * 2 * kHorizon));
  CHECK(same(toto_forecast_mean(first, 1), toto_forecast_mean(again, 0), 2 * kHorizon));
  options.seed = 8;
  CHECK_OK(toto_forecaster_forecast(forecaster, series, 2, &options, &other, &caught));
  CHECK(!same(toto_forecast_samples(first, 1), toto_forecast_samples(other, 1),
              (size_t)kSamples * 2 * kHorizon));
  toto_forecast_free(first);
  toto_forecast_free(again);
  toto_forecast_free(other);
  toto_forecaster_free(forecaster);
}

void test_result_reuse(void) {
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast* forecast = NULL;
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  toto_series series[2];
  series[0] = wave_series("a", 0);
  series[1] = wave_series("b", 1);
  options.horizon = 4;
  CHECK_OK(toto_forecaster_forecast(forecaster, series, 2, &options, &forecast, &caught));
  toto_forecast* const handle = forecast;
  const float* const mean = toto_forecast_mean(forecast, 0);
  CHECK_OK(toto_forecaster_forecast(forecaster, series, 1, &options, &forecast, &caught));
  CHECK(forecast == handle && toto_forecast_mean(forecast, 0) == mean);
  CHECK(toto_forecast_count(forecast) == 1 && toto_forecast_mean(forecast, 1) == NULL);
  options.horizon = 0;  // a failure leaves the handle, without results
  CHECK_FAILS(toto_forecaster_forecast(forecaster, series, 2, &options, &forecast, &caught),
              TOTO_USAGE, "invalid_horizon", "");
  CHECK(forecast == handle && toto_forecast_count(forecast) == 0);
  CHECK(toto_forecast_mean(forecast, 0) == NULL);
  options.horizon = 4;
  CHECK_OK(toto_forecaster_forecast(forecaster, NULL, 0, &options, &forecast, &caught));
  CHECK(toto_forecast_count(forecast) == 0);
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
}

void test_mean_only(void) {
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast* forecast = NULL;
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  const toto_series series = wave_series("a", 0);
  options.horizon = 12;
  options.mean_only = 1;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &caught));
  CHECK(toto_forecast_mean(forecast, 0) != NULL);
  CHECK(toto_forecast_median(forecast, 0) == NULL && toto_forecast_std(forecast, 0) == NULL);
  CHECK(toto_forecast_quantiles(forecast, 0) == NULL && toto_forecast_samples(forecast, 0) == NULL);
  CHECK(toto_forecast_num_levels(forecast, 0) == 0 && toto_forecast_levels(forecast, 0) == NULL);
  CHECK(toto_forecast_num_samples(forecast, 0) == 0);
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
}

/// What a model names is taken where nothing is said, and paths and tails where they are named.
void test_defaults(void) {
  enum { kHorizon = 40, kSamples = 8, kNumbers = kHorizon * kSamples };
  toto_error* caught = NULL;
  toto_model* model = NULL;
  toto_forecaster* forecaster = NULL;
  toto_forecast *first = NULL, *second = NULL;
  const toto_series series = wave_series("a", 0);
  const double levels[] = {0.02, 0.5};
  unsetenv("TOTO_MODEL_ID");
  CHECK_OK(toto_model_load(NULL, &model, &caught));
  CHECK_OK(toto_forecaster_new(model, NULL, &forecaster, &caught));
  for (int32_t paths = TOTO_PATHS_AUTO; paths <= TOTO_PATHS_COHERENT; ++paths) {
    for (int32_t tails = TOTO_TAILS_CLAMP; tails <= TOTO_TAILS_AUTO; ++tails) {
      toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
      options.horizon = kHorizon;
      options.num_samples = kSamples;
      options.keep_samples = 1;
      options.levels = levels;
      options.num_levels = 2;
      CHECK(options.paths == TOTO_PATHS_AUTO && options.tails == TOTO_TAILS_AUTO);
      CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &first, &caught));
      options.paths = paths;
      options.tails = tails;
      CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &second, &caught));
      const int normal = tails == TOTO_TAILS_NORMAL || tails == TOTO_TAILS_AUTO;
      CHECK(same(toto_forecast_quantiles(first, 0), toto_forecast_quantiles(second, 0), kHorizon) ==
            normal);
      CHECK(same(toto_forecast_samples(first, 0), toto_forecast_samples(second, 0), kNumbers) ==
            (normal && paths != TOTO_PATHS_INDEPENDENT));
      // A caller that does not know of paths yet leaves them to the model.
      options.struct_size = offsetof(toto_forecast_options, paths);
      CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &second, &caught));
      CHECK(same(toto_forecast_samples(first, 0), toto_forecast_samples(second, 0), kNumbers) ==
            normal);
    }
  }
  toto_forecast_free(first);
  toto_forecast_free(second);
  toto_forecaster_free(forecaster);
  toto_model_free(model);
}

void test_parameters(void) {
  enum { kHorizon = 6, kComponents = 3 };
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast* forecast = NULL;
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  toto_parameters parameters = TOTO_PARAMETERS_INIT;
  const toto_series series = wave_series("a", 0);
  options.horizon = kHorizon;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &caught));
  CHECK_FAILS(toto_forecast_parameters(forecast, 0, &parameters, &caught), TOTO_USAGE, "not_kept",
              "options.keep_parameters");
  CHECK_FAILS(toto_forecast_parameters(forecast, 1, &parameters, &caught), TOTO_USAGE,
              "index_out_of_range", "index");
  CHECK_FAILS(toto_forecast_parameters(forecast, 0, NULL, &caught), TOTO_USAGE, "null_argument",
              "parameters");
  options.keep_parameters = 1;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &caught));
  CHECK_OK(toto_forecast_parameters(forecast, 0, &parameters, &caught));
  CHECK(parameters.components == kComponents);
  for (size_t step = 0; step < kHorizon; ++step) {
    double sum = 0, mean = 0;
    for (size_t k = 0; k < kComponents; ++k) {
      const size_t i = step * kComponents + k;
      CHECK(parameters.df[i] > 2 && parameters.scale[i] > 0);
      sum += parameters.probability[i];
      mean += parameters.probability[i] * parameters.loc[i];
    }
    CHECK(fabs(sum - 1) < 1e-5);
    // The mean of the first patch is that of the mixture.
    const double value = parameters.affine_loc[step] + parameters.affine_scale[step] * mean;
    CHECK(fabs(value - (double)toto_forecast_mean(forecast, 0)[step]) < 1e-4 * (1 + fabs(value)));
  }
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
}

void test_masks_groups_covariates(void) {
  enum { kHorizon = 4 };
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast *plain = NULL, *masked = NULL, *grouped = NULL, *known = NULL;
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  toto_series series = wave_series("a", 0);
  float joint[2 * kSteps];
  uint8_t mask[2 * kSteps];
  const int32_t groups[] = {1, 2};
  const float future[kHorizon] = {900, 900, 900, 900};
  memcpy(joint, wave(0), sizeof joint / 2);
  memcpy(joint + kSteps, wave(3), sizeof joint / 2);
  memset(mask, 1, sizeof mask);
  memset(mask + 10, 0, 20);
  series.variates = 2;
  series.values = joint;
  options.horizon = kHorizon;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &plain, &caught));
  series.mask = mask;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &masked, &caught));
  CHECK(!same(toto_forecast_mean(plain, 0), toto_forecast_mean(masked, 0), kHorizon));
  series.mask = NULL;
  series.groups = groups;
  series.num_groups = 2;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &grouped, &caught));
  CHECK(!same(toto_forecast_mean(plain, 0), toto_forecast_mean(grouped, 0), kHorizon));
  series.groups = NULL;
  series.num_groups = 0;
  series.exogenous = 1;
  series.future_exogenous = future;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &known, &caught));
  CHECK(toto_forecast_variates(known, 0) == 2);
  toto_forecast_free(plain);
  toto_forecast_free(masked);
  toto_forecast_free(grouped);
  toto_forecast_free(known);
  toto_forecaster_free(forecaster);
}

struct calls {
  size_t count, last, stop_after;
};
static int count_progress(void* user, size_t done, size_t total) {
  struct calls* calls = user;
  CHECK(done <= total);
  calls->last = done;
  return ++calls->count > calls->stop_after;
}

void test_cancel(void) {
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast* forecast = NULL;
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  const toto_series series = wave_series("a", 0);
  struct calls calls = {0, 0, 0};
  options.horizon = 40;
  options.progress = count_progress;
  options.user = &calls;
  CHECK(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &caught) ==
        TOTO_INTERRUPTED);
  CHECK(strcmp(toto_error_code(caught), "interrupted") == 0);
  toto_error_free(caught);
  caught = NULL;
  CHECK(calls.count == 1 && forecast == NULL);
  calls.count = 0;
  calls.stop_after = 1000000;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &caught));
  CHECK(calls.count > 0 && calls.last > 0);
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
}

static void keep_plan_line(void* user, const char* line) {
  if (strstr(line, "plan built") != NULL) snprintf(user, 256, "%s", line);
}

void test_messages(void) {
  toto_error* caught = NULL;
  toto_model* model = tiny_model();
  toto_forecaster* forecaster = NULL;
  toto_forecaster_options options = TOTO_FORECASTER_OPTIONS_INIT;
  toto_forecast* forecast = NULL;
  const toto_series series = wave_series("a", 0);
  char line[256] = "";
  options.plan_log = keep_plan_line;
  options.user = line;
  CHECK_OK(toto_forecaster_new(model, &options, &forecaster, &caught));
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, NULL, &forecast, &caught));
  CHECK(line[0] != 0);
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
  toto_model_free(model);
}

void test_warm_up(void) {
  toto_error* caught = NULL;
  toto_forecaster* forecaster = tiny_forecaster();
  toto_forecast* forecast = NULL;
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  toto_warmup_shape shape = TOTO_WARMUP_SHAPE_INIT;
  toto_counters before = TOTO_COUNTERS_INIT, after = TOTO_COUNTERS_INIT;
  const toto_series series = wave_series("a", 0);
  shape.context = kSteps;
  shape.horizon = options.horizon = 12;
  CHECK_OK(toto_forecaster_warm_up(forecaster, &shape, 1, &options, &caught));
  CHECK_OK(toto_forecaster_counters(forecaster, &before, &caught));
  CHECK(before.plan_builds > 0 && before.forecasts == 1 && before.working_bytes > 0);
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &caught));
  CHECK_OK(toto_forecaster_counters(forecaster, &after, &caught));
  CHECK(after.forecasts == 2 && after.series == 2);
  CHECK(after.plan_builds == before.plan_builds && after.allocations == before.allocations);
  CHECK(after.latency_p50 > 0 && after.latency_p50 <= after.latency_p99);
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
}

// A forecaster keeps its model, a forecast needs neither, and series need not outlive the call.
void test_lifetimes(void) {
  toto_error* caught = NULL;
  toto_model* model = tiny_model();
  toto_forecaster* forecaster = NULL;
  toto_forecast* forecast = NULL;
  toto_series series = wave_series(NULL, 0);
  char* id = malloc(3);
  float* values = malloc(kSteps * sizeof *values);
  CHECK_OK(toto_forecaster_new(model, NULL, &forecaster, &caught));
  toto_model_free(model);
  memcpy(id, "id", 3);
  memcpy(values, wave(0), kSteps * sizeof *values);
  series.id = id;
  series.values = values;
  CHECK_OK(toto_forecaster_forecast(forecaster, &series, 1, NULL, &forecast, &caught));
  free(id);
  free(values);
  toto_forecaster_free(forecaster);
  CHECK(strcmp(toto_forecast_id(forecast, 0), "id") == 0);
  CHECK(isfinite(toto_forecast_mean(forecast, 0)[0]));
  toto_forecast_free(forecast);
}
