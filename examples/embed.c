// SPDX-License-Identifier: Apache-2.0
// The library inside a program in C: load a model, describe two series, read the forecasts.
//   embed_c [MODEL]    a folder, a .safetensors file or a Hub id; without it the model that ships
//   with toto
#include <math.h>
#include <stdio.h>

#include "toto/toto.h"

enum { kSteps = 384, kHorizon = 12 };  // hours of history, hours ahead

// A daily rhythm on a slow trend, in requests per second.
static void daily_rhythm(double level, double swing, float* values) {
  for (int hour = 0; hour < kSteps; ++hour) {
    values[hour] = (float)(level + 0.02 * hour + swing * sin(2 * 3.14159265 * hour / 24));
  }
}

static void print(const toto_forecast* forecast) {
  for (size_t i = 0; i < toto_forecast_count(forecast); ++i) {
    const float* mean = toto_forecast_mean(forecast, i);            // [variates][horizon]
    const float* quantiles = toto_forecast_quantiles(forecast, i);  // [levels][variates][horizon]
    printf("%s\n  step       mean        80 %% interval\n", toto_forecast_id(forecast, i));
    for (size_t step = 0; step < kHorizon; ++step) {
      printf("  %4zu %10.4f  %10.4f %10.4f\n", step + 1, (double)mean[step],
             (double)quantiles[step], (double)quantiles[kHorizon + step]);
    }
  }
}

int main(int argc, char** argv) {
  if (argc > 2) {
    fprintf(stderr, "usage: %s [MODEL]\n", argv[0]);
    return 2;
  }
  // A series is a view: the values stay ours.
  float web[kSteps];
  float api[kSteps];
  daily_rhythm(120, 35, web);
  daily_rhythm(40, 12, api);
  toto_series series[2] = {TOTO_SERIES_INIT, TOTO_SERIES_INIT};
  series[0].id = "web";
  series[0].steps = kSteps;
  series[0].values = web;
  series[1].id = "api";
  series[1].steps = kSteps;
  series[1].values = api;

  const double levels[] = {0.1, 0.9};  // the ends of the 80 % interval
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  options.horizon = kHorizon;
  options.levels = levels;
  options.num_levels = 2;
  toto_model_options model_options = TOTO_MODEL_OPTIONS_INIT;
  if (argc == 2) model_options.model = argv[1];

  toto_model* model = NULL;
  toto_forecaster* forecaster = NULL;
  toto_forecast* forecast = NULL;
  toto_error* error = NULL;
  // Each call is made if those before it succeeded.
  toto_status status = toto_model_load(&model_options, &model, &error);
  if (status == TOTO_OK) status = toto_forecaster_new(model, NULL, &forecaster, &error);
  if (status == TOTO_OK) {
    status = toto_forecaster_forecast(forecaster, series, 2, &options, &forecast, &error);
  }
  if (status == TOTO_OK) {
    printf("model %s\n", toto_model_name(model));
    if (toto_model_is_synthetic(model)) puts("synthetic weights: these forecasts mean nothing");
    print(forecast);
  } else {
    fprintf(stderr, "embed_c: %s\n", toto_error_message(error));
  }
  toto_error_free(error);
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
  toto_model_free(model);
  return (int)status;
}
