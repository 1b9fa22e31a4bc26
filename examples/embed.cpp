// SPDX-License-Identifier: Apache-2.0
// The library inside a program of your own: load a model, describe two series, read the forecasts.
//   embed [MODEL]    a folder, a .safetensors file or a Hub id; without it the model that ships
//   with toto
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/model.hpp"

namespace {

constexpr std::size_t kSteps = 384;  // hours of history

// A daily rhythm on a slow trend, in requests per second.
std::vector<float> daily_rhythm(double level, double swing) {
  std::vector<float> values(kSteps);
  for (std::size_t hour = 0; hour < kSteps; ++hour) {
    const double at = static_cast<double>(hour);
    values[hour] =
        static_cast<float>(level + 0.02 * at + swing * std::sin(2 * 3.14159265 * at / 24));
  }
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: %s [MODEL]\n", argv[0]);
    return 2;
  }
  try {
    toto::ModelQuery query;
    if (argc == 2) query.model = argv[1];
    toto::Forecaster forecaster(toto::Model::load(query));
    std::printf("model %s\n", forecaster.model().info().name.c_str());
    if (forecaster.model().info().synthetic) {
      std::puts("synthetic weights: these forecasts mean nothing");
    }

    // A series is a view: the values stay ours and must outlive the call.
    const std::vector<float> web = daily_rhythm(120, 35);
    const std::vector<float> api = daily_rhythm(40, 12);
    toto::Series series[2];
    series[0].id = "web";
    series[0].steps = web.size();
    series[0].values = web;
    series[1].id = "api";
    series[1].steps = api.size();
    series[1].values = api;

    toto::ForecastOptions options;
    options.horizon = 12;         // steps
    options.levels = {0.1, 0.9};  // the ends of the 80 % interval
    for (const toto::Forecast& f : forecaster.forecast(series, options)) {
      std::printf("%s\n  step       mean        80 %% interval\n", f.id.c_str());
      for (std::size_t step = 0; step < f.horizon; ++step) {
        const double low = f.quantiles[step];               // [levels][variates][horizon]
        const double high = f.quantiles[f.horizon + step];  // the second level
        std::printf("  %4zu %10.4f  %10.4f %10.4f\n", step + 1, static_cast<double>(f.mean[step]),
                    low, high);
      }
    }
  } catch (const toto::Error& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return static_cast<int>(error.status());
  }
  return 0;
}
