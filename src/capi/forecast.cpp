// SPDX-License-Identifier: Apache-2.0
// toto_forecast: reading results.
#include <fmt/format.h>

#include <vector>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"

namespace {

const toto::Forecast* find(const toto_forecast* forecast, size_t index) {
  return index < toto_forecast_count(forecast) ? &forecast->all[index] : nullptr;
}

template <typename T>
const T* data_of(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

const float* array_of(const toto_forecast* forecast, size_t index,
                      std::vector<float> toto::Forecast::*array) {
  const toto::Forecast* const one = find(forecast, index);
  return one == nullptr ? nullptr : data_of(one->*array);
}

size_t size_of(const toto_forecast* forecast, size_t index, std::size_t toto::Forecast::*size) {
  const toto::Forecast* const one = find(forecast, index);
  return one == nullptr ? 0 : one->*size;
}

}  // namespace

using toto::Forecast;

void toto_forecast_free(toto_forecast* forecast) { delete forecast; }

size_t toto_forecast_count(const toto_forecast* forecast) {
  return forecast == nullptr ? 0 : forecast->count;
}
const char* toto_forecast_id(const toto_forecast* forecast, size_t index) {
  const Forecast* const one = find(forecast, index);
  return one == nullptr ? nullptr : one->id.c_str();
}
size_t toto_forecast_variates(const toto_forecast* forecast, size_t index) {
  return size_of(forecast, index, &Forecast::variates);
}
size_t toto_forecast_horizon(const toto_forecast* forecast, size_t index) {
  return size_of(forecast, index, &Forecast::horizon);
}
size_t toto_forecast_exact_steps(const toto_forecast* forecast, size_t index) {
  return size_of(forecast, index, &Forecast::exact_steps);
}
size_t toto_forecast_num_samples(const toto_forecast* forecast, size_t index) {
  return size_of(forecast, index, &Forecast::num_samples);
}
size_t toto_forecast_num_levels(const toto_forecast* forecast, size_t index) {
  const Forecast* const one = find(forecast, index);
  return one == nullptr || one->quantiles.empty() ? 0 : one->levels.size();
}
const double* toto_forecast_levels(const toto_forecast* forecast, size_t index) {
  if (toto_forecast_num_levels(forecast, index) == 0) return nullptr;
  return forecast->all[index].levels.data();
}
const float* toto_forecast_mean(const toto_forecast* forecast, size_t index) {
  return array_of(forecast, index, &Forecast::mean);
}
const float* toto_forecast_median(const toto_forecast* forecast, size_t index) {
  return array_of(forecast, index, &Forecast::median);
}
const float* toto_forecast_std(const toto_forecast* forecast, size_t index) {
  return array_of(forecast, index, &Forecast::std);
}
const float* toto_forecast_quantiles(const toto_forecast* forecast, size_t index) {
  return array_of(forecast, index, &Forecast::quantiles);
}
const float* toto_forecast_samples(const toto_forecast* forecast, size_t index) {
  return array_of(forecast, index, &Forecast::samples);
}

toto_status toto_forecast_parameters(const toto_forecast* forecast, size_t index,
                                     toto_parameters* parameters, toto_error** error) {
  using toto::capi::refuse;
  return toto::capi::guard(error, [&] {
    toto::capi::required(forecast, "forecast");
    toto::capi::required(parameters, "parameters");
    const Forecast* const one = find(forecast, index);
    if (one == nullptr) {
      refuse("index_out_of_range", "index",
             fmt::format("expected less than the {} series of the forecast, found {}",
                         toto_forecast_count(forecast), index));
    }
    const toto::Parameters& own = one->parameters;
    if (own.components == 0) {
      refuse("not_kept", "options.keep_parameters", "the forecast was made without parameters",
             "set keep_parameters to 1");
    }
    toto_parameters out = TOTO_PARAMETERS_INIT;
    out.components = own.components;
    out.df = own.df.data();
    out.loc = own.loc.data();
    out.scale = own.scale.data();
    out.probability = own.probability.data();
    out.affine_loc = own.affine_loc.data();
    out.affine_scale = own.affine_scale.data();
    toto::capi::write_struct(out, parameters, "parameters");
  });
}
