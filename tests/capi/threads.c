// SPDX-License-Identifier: Apache-2.0
// Many threads: one model with a forecaster each, and all with one forecaster.
#include <pthread.h>

#include "check.h"

enum { kThreads = 4, kRounds = 20, kHorizon = 20 };

struct worker {
  toto_model* model;
  toto_forecaster* shared;
  toto_series series;
  int failures;
  float mean[kHorizon];
};

static void forecast_often(struct worker* worker, toto_forecaster* forecaster) {
  toto_forecast* forecast = NULL;
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  options.horizon = kHorizon;
  options.num_samples = 8;
  for (int round = 0; round < kRounds; ++round) {
    toto_error* caught = NULL;
    toto_counters counters = TOTO_COUNTERS_INIT;
    // An error of one thread is its own.
    options.horizon = 0;
    if (toto_forecaster_forecast(forecaster, &worker->series, 1, &options, &forecast, &caught) !=
            TOTO_USAGE ||
        strcmp(toto_error_code(caught), "invalid_horizon") != 0) {
      ++worker->failures;
    }
    toto_error_free(caught);
    options.horizon = kHorizon;
    if (toto_forecaster_forecast(forecaster, &worker->series, 1, &options, &forecast, NULL) !=
        TOTO_OK) {
      ++worker->failures;
      continue;
    }
    const float* mean = toto_forecast_mean(forecast, 0);
    if (round == 0) memcpy(worker->mean, mean, sizeof worker->mean);
    if (memcmp(worker->mean, mean, sizeof worker->mean) != 0) ++worker->failures;
    if (toto_forecaster_counters(forecaster, &counters, NULL) != TOTO_OK) ++worker->failures;
  }
  toto_forecast_free(forecast);
}

static void* run(void* argument) {
  struct worker* worker = argument;
  toto_forecaster* own = NULL;
  if (worker->shared != NULL) {
    forecast_often(worker, worker->shared);
  } else if (toto_forecaster_new(worker->model, NULL, &own, NULL) != TOTO_OK) {
    ++worker->failures;
  } else {
    forecast_often(worker, own);
    toto_forecaster_free(own);
  }
  return NULL;
}

static void run_all(int share) {
  toto_error* caught = NULL;
  toto_model* model = tiny_model();
  toto_forecaster* shared = NULL;
  pthread_t threads[kThreads];
  struct worker workers[kThreads];
  memset(workers, 0, sizeof workers);
  if (share) CHECK_OK(toto_forecaster_new(model, NULL, &shared, &caught));
  for (int i = 0; i < kThreads; ++i) {
    workers[i].model = model;
    workers[i].shared = shared;
    workers[i].series = wave_series("a", i / 2);  // two threads ask for the same
  }
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], NULL, run, &workers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    CHECK(workers[i].failures == 0);
  }
  CHECK(memcmp(workers[0].mean, workers[1].mean, sizeof workers[0].mean) == 0);
  CHECK(memcmp(workers[0].mean, workers[2].mean, sizeof workers[0].mean) != 0);
  toto_forecaster_free(shared);
  toto_model_free(model);
}

void test_threads(void) { run_all(0); }
void test_one_forecaster_many_threads(void) { run_all(1); }
