// SPDX-License-Identifier: Apache-2.0
// The shared library from C++: the C interface gives the bits of that of C++, exceptions can be
// caught outside the library, and those of callbacks do not leave it.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "support/paths.h"
#include "toto/toto.h"
#include "toto/toto.hpp"

namespace toto {
namespace {

std::string tiny() { return test::data_path("golden/toto1-tiny-a"); }

std::vector<float> wave() {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 13);
  return values;
}

TEST(SharedLibrary, CAndCxxGiveTheSameBits) {
  const std::vector<float> values = wave();
  Forecaster forecaster(Model::load({.model = tiny()}));
  Series series;
  series.id = "a";
  series.steps = values.size();
  series.values = values;
  ForecastOptions options;
  options.horizon = 20;
  options.seed = 3;
  options.num_samples = 32;
  options.keep_samples = true;
  const Forecast expected = forecaster.forecast({&series, 1}, options).front();

  const std::string name = tiny();
  toto_model_options model_options = TOTO_MODEL_OPTIONS_INIT;
  model_options.model = name.c_str();
  toto_model* model = nullptr;
  ASSERT_EQ(toto_model_load(&model_options, &model, nullptr), TOTO_OK);
  toto_forecaster* c_forecaster = nullptr;
  ASSERT_EQ(toto_forecaster_new(model, nullptr, &c_forecaster, nullptr), TOTO_OK);
  toto_series c_series = TOTO_SERIES_INIT;
  c_series.id = "a";
  c_series.steps = values.size();
  c_series.values = values.data();
  toto_forecast_options c_options = TOTO_FORECAST_OPTIONS_INIT;
  c_options.horizon = 20;
  c_options.seed = 3;
  c_options.num_samples = 32;
  c_options.keep_samples = 1;
  toto_forecast* forecast = nullptr;
  ASSERT_EQ(toto_forecaster_forecast(c_forecaster, &c_series, 1, &c_options, &forecast, nullptr),
            TOTO_OK);
  const auto array = [](const float* data, const std::vector<float>& like) {
    return data == nullptr ? std::vector<float>() : std::vector<float>(data, data + like.size());
  };
  EXPECT_EQ(array(toto_forecast_mean(forecast, 0), expected.mean), expected.mean);
  EXPECT_EQ(array(toto_forecast_median(forecast, 0), expected.median), expected.median);
  const std::vector<float> deviations = array(toto_forecast_std(forecast, 0), expected.std);
  ASSERT_EQ(deviations.size(), expected.std.size());  // may hold NaN
  EXPECT_EQ(std::memcmp(deviations.data(), expected.std.data(), deviations.size() * sizeof(float)),
            0);
  EXPECT_EQ(array(toto_forecast_quantiles(forecast, 0), expected.quantiles), expected.quantiles);
  EXPECT_EQ(array(toto_forecast_samples(forecast, 0), expected.samples), expected.samples);
  toto_forecast_free(forecast);
  toto_forecaster_free(c_forecaster);
  toto_model_free(model);
}

TEST(SharedLibrary, ErrorsAreCaughtOutsideIt) {
  EXPECT_THROW((void)Model::load({.model = "/no/such/model"}), Error);
  try {
    (void)Model::load({.model = "/no/such/model"});
  } catch (const std::runtime_error& error) {
    EXPECT_NE(dynamic_cast<const Error*>(&error), nullptr);
  }
}

TEST(SharedLibrary, AnExceptionOfACallbackStaysInside) {
  const std::string name = tiny();
  const std::vector<float> values = wave();
  toto_model_options model_options = TOTO_MODEL_OPTIONS_INIT;
  model_options.model = name.c_str();
  toto_model* model = nullptr;
  ASSERT_EQ(toto_model_load(&model_options, &model, nullptr), TOTO_OK);
  toto_forecaster* forecaster = nullptr;
  ASSERT_EQ(toto_forecaster_new(model, nullptr, &forecaster, nullptr), TOTO_OK);
  toto_series series = TOTO_SERIES_INIT;
  series.steps = values.size();
  series.values = values.data();
  toto_forecast_options options = TOTO_FORECAST_OPTIONS_INIT;
  toto_forecast* forecast = nullptr;
  const auto code = [&] {
    toto_error* error = nullptr;
    EXPECT_EQ(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, &error),
              TOTO_INTERNAL);
    std::string text = toto_error_code(error);
    toto_error_free(error);
    return text;
  };
  options.progress = [](void*, std::size_t, std::size_t) -> int { throw 7; };
  EXPECT_EQ(code(), "internal");
  options.progress = [](void*, std::size_t, std::size_t) -> int { throw std::logic_error("x"); };
  EXPECT_EQ(code(), "internal");
  options.progress = [](void*, std::size_t, std::size_t) -> int { throw std::bad_alloc(); };
  EXPECT_EQ(code(), "out_of_memory");
  options.progress = nullptr;  // and it goes on as if nothing had been
  EXPECT_EQ(toto_forecaster_forecast(forecaster, &series, 1, &options, &forecast, nullptr),
            TOTO_OK);
  toto_forecast_free(forecast);
  toto_forecaster_free(forecaster);
  toto_model_free(model);
}

template <typename Call>
std::string code_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    return error.code();
  }
  return "no error";
}

TEST(MovedFrom, IsAClearError) {
  const std::vector<float> values = wave();
  Series series;
  series.steps = values.size();
  series.values = values;
  Model model = Model::load({.model = tiny()});
  Forecaster from(model);
  Forecaster to = std::move(from);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tried
  EXPECT_EQ(code_of([&] { (void)from.forecast({&series, 1}, {}); }), "moved_from");
  EXPECT_EQ(code_of([&] { from.warm_up({}, {}); }), "moved_from");
  EXPECT_EQ(code_of([&] { (void)from.counters(); }), "moved_from");
  EXPECT_EQ(code_of([&] { (void)from.known_shapes(); }), "moved_from");
  EXPECT_EQ(code_of([&] { (void)from.model(); }), "moved_from");
  EXPECT_EQ(to.forecast({&series, 1}, {}).size(), 1U);
  from = std::move(to);  // it can be assigned to
  EXPECT_EQ(from.forecast({&series, 1}, {}).size(), 1U);

  const Model other = std::move(model);
  EXPECT_EQ(code_of([&] { (void)model.info(); }), "moved_from");
  EXPECT_EQ(code_of([&] { const Forecaster none(model); }), "moved_from");
  model = other;
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(model.info().patch_size, 8);
}

}  // namespace
}  // namespace toto
