// SPDX-License-Identifier: Apache-2.0
// Forecasts as text.
#include "toto/tools/output.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "read.h"

namespace toto::data {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// V variates over H steps; element i of an array is start + i.
Forecast make_forecast(const std::string& id, std::size_t variates, std::size_t horizon) {
  Forecast forecast;
  forecast.id = id;
  forecast.variates = variates;
  forecast.horizon = horizon;
  forecast.exact_steps = 1;
  forecast.num_samples = 2;
  forecast.levels = {0.1, 0.5, 0.975};
  const auto count_up = [](float start, std::size_t size) {
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = start + static_cast<float>(i);
    return values;
  };
  const std::size_t size = variates * horizon;
  forecast.mean = count_up(100, size);
  forecast.median = count_up(200, size);
  forecast.std = count_up(300, size);
  forecast.quantiles = count_up(400, 3 * size);
  forecast.samples = count_up(500, 2 * size);
  return forecast;
}

struct Written {
  std::vector<TimeSeries> series;
  std::vector<Forecast> forecasts;
  std::vector<SeriesError> errors;
  RunInfo run{"Some/Model", false, 7, "cached"};

  std::string csv() const {
    std::string text;
    write_csv([&](std::string_view piece) { text += piece; }, series, forecasts, run);
    return text;
  }
  std::string samples() const {
    std::string text;
    write_samples_csv([&](std::string_view piece) { text += piece; }, series, forecasts, run);
    return text;
  }
  std::string json() const {
    std::string text;
    write_json([&](std::string_view piece) { text += piece; }, series, forecasts, errors, run);
    return text;
  }
};

Written one_series() {
  Written out;
  out.series =
      read("unique_id,ds,y\n\"a,\"\"b\"\"\",2020-01-31,1\n\"a,\"\"b\"\"\",2020-02-29,2\n").series;
  out.forecasts = {make_forecast("a,\"b\"", 1, 2)};
  return out;
}

Written two_variates() {
  CsvOptions options;
  options.joint = true;
  Written out;
  out.series = read("ds,temp,load\n0,1,1\n5,2,2\n", options).series;
  out.forecasts = {make_forecast("table", 2, 2)};
  return out;
}

/// What a column of a level is called, and the key of the same level in JSON.
TEST(Output, LevelsAreNamedWithoutAnExponent) {
  Written out = one_series();
  out.forecasts.front().levels = {0.0000005, 0.0005, 0.999999};
  EXPECT_TRUE(out.csv().starts_with("unique_id,ds,mean,q0.0000005,q0.0005,q0.999999\n"))
      << out.csv();
  const auto keys = nlohmann::json::parse(out.json())["series"][0]["variates"][0]["quantiles"];
  EXPECT_TRUE(keys.contains("0.999999")) << keys;
  EXPECT_TRUE(keys.contains("0.0005")) << keys;
}

TEST(Output, CsvOfOneVariate) {
  EXPECT_EQ(one_series().csv(),
            "unique_id,ds,mean,q0.1,q0.5,q0.975\n"
            "\"a,\"\"b\"\"\",2020-03-31,100,400,402,404\n"
            "\"a,\"\"b\"\"\",2020-04-30,101,401,403,405\n");
  EXPECT_EQ(one_series().samples(),
            "unique_id,ds,sample,value\n"
            "\"a,\"\"b\"\"\",2020-03-31,0,500\n"
            "\"a,\"\"b\"\"\",2020-04-30,0,501\n"
            "\"a,\"\"b\"\"\",2020-03-31,1,502\n"
            "\"a,\"\"b\"\"\",2020-04-30,1,503\n");
}

TEST(Output, CsvOfSeveralVariates) {
  EXPECT_EQ(two_variates().csv(),
            "unique_id,variate,ds,mean,q0.1,q0.5,q0.975\n"
            "table,temp,10,100,400,404,408\n"
            "table,temp,15,101,401,405,409\n"
            "table,load,10,102,402,406,410\n"
            "table,load,15,103,403,407,411\n");
  EXPECT_EQ(two_variates().samples(),
            "unique_id,variate,ds,sample,value\n"
            "table,temp,10,0,500\ntable,temp,15,0,501\n"
            "table,temp,10,1,504\ntable,temp,15,1,505\n"
            "table,load,10,0,502\ntable,load,15,0,503\n"
            "table,load,10,1,506\ntable,load,15,1,507\n");
}

/// What is a difference from an offset is written as their sum; a deviation is none.
TEST(Output, AnOffsetIsAddedWithTheDigitsOfTheDifference) {
  Written out = two_variates();
  out.series.front().value_offsets = {1e7, 0};
  for (float& x : out.forecasts.front().mean) x += 0.3F;
  out.forecasts.front().quantiles.front() = kNaN;
  EXPECT_EQ(out.csv(),
            "unique_id,variate,ds,mean,q0.1,q0.5,q0.975\n"
            "table,temp,10,10000100.3,,10000404,10000408\n"
            "table,temp,15,10000101.3,10000401,10000405,10000409\n"
            "table,load,10,102.3,402,406,410\n"
            "table,load,15,103.3,403,407,411\n");
  EXPECT_THAT(out.samples(), testing::HasSubstr("table,temp,10,0,10000500\n"));
  EXPECT_THAT(out.samples(), testing::HasSubstr("table,load,10,0,502\n"));
  out.forecasts.front().applied.input_scale = {1, 1};
  const auto series = nlohmann::json::parse(out.json())["series"][0];
  EXPECT_EQ(series["value_offset"], (nlohmann::json{1e7, 0.0}));
  EXPECT_EQ(series["variates"][0]["mean"], (nlohmann::json{10000100.3, 10000101.3}));
  EXPECT_EQ(series["variates"][0]["std"][0], 300);
}

TEST(Output, CovariatesAreNotWritten) {
  Written out;
  CsvOptions options;
  options.covariates = {"u"};
  out.series = read("ds,y,u\n1,1,9\n2,2,9\n", options).series;
  out.forecasts = {make_forecast("y", 2, 1)};
  EXPECT_EQ(out.csv(), "unique_id,ds,mean,q0.1,q0.5,q0.975\ny,3,100,400,402,404\n");
  EXPECT_EQ(nlohmann::json::parse(out.json())["series"][0]["variates"].size(), 1U);
}

TEST(Output, MeanModeHasNoQuantiles) {
  Written out = one_series();
  Forecast& forecast = out.forecasts[0];
  forecast.num_samples = 0;
  for (auto* array : {&forecast.median, &forecast.std, &forecast.quantiles, &forecast.samples}) {
    array->clear();
  }
  EXPECT_EQ(out.csv(),
            "unique_id,ds,mean\n\"a,\"\"b\"\"\",2020-03-31,100\n"
            "\"a,\"\"b\"\"\",2020-04-30,101\n");
  EXPECT_EQ(out.samples(), "unique_id,ds,sample,value\n");
  const auto json = nlohmann::json::parse(out.json());
  EXPECT_FALSE(json["series"][0]["variates"][0].contains("quantiles"));
  EXPECT_EQ(json["series"][0]["variates"][0]["mean"], nlohmann::json({100, 101}));
}

TEST(Output, SyntheticWeightsAreLabelled) {
  Written out = one_series();
  out.run.synthetic = true;
  EXPECT_EQ(out.csv().substr(0, out.csv().find('\n')),
            "unique_id,ds,mean,q0.1,q0.5,q0.975,weights");
  EXPECT_NE(out.csv().find(",404,synthetic\n"), std::string::npos);
  EXPECT_NE(out.samples().find(",500,synthetic\n"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(out.json())["synthetic_weights"], true);
}

TEST(Output, WhatIsNotFiniteIsEmptyOrNull) {
  Written out = two_variates();
  out.forecasts[0].mean = {kNaN, kInfinity, -kInfinity, -0.0F};
  EXPECT_NE(out.csv().find("table,temp,10,,400"), std::string::npos);
  EXPECT_NE(out.csv().find("table,load,10,,402"), std::string::npos);
  EXPECT_NE(out.csv().find("table,load,15,-0,403"), std::string::npos);
  const auto json = nlohmann::json::parse(out.json());
  EXPECT_TRUE(json["series"][0]["variates"][0]["mean"][0].is_null());
  EXPECT_TRUE(json["series"][0]["variates"][1]["mean"][0].is_null());
}

TEST(Output, JsonSaysWhatWasRun) {
  Written out = two_variates();
  out.errors.push_back({"bad\n\"id\"\\", Error(ExitStatus::bad_data, "too_short", "only \t3")});
  const auto json = parse_json(out.json(), ExitStatus::bad_data, "output");  // the strict one
  EXPECT_EQ(json["model"], "Some/Model");
  EXPECT_EQ(json["synthetic_weights"], false);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["decode"], "cached");
  const auto& series = json["series"][0];
  EXPECT_EQ(series["id"], "table");
  EXPECT_EQ(series["interval"], "5 steps");
  EXPECT_EQ(series["context"], 2);
  EXPECT_EQ(series["horizon"], 2);
  EXPECT_EQ(series["exact_steps"], 1);
  EXPECT_EQ(series["num_samples"], 2);
  EXPECT_EQ(series["ds"], nlohmann::json({"10", "15"}));
  const auto& load = series["variates"][1];
  EXPECT_EQ(load["name"], "load");
  EXPECT_EQ(load["mean"], nlohmann::json({102, 103}));
  EXPECT_EQ(load["median"], nlohmann::json({202, 203}));
  EXPECT_EQ(load["std"], nlohmann::json({302, 303}));
  EXPECT_EQ(load["quantiles"]["0.1"], nlohmann::json({402, 403}));
  EXPECT_EQ(load["quantiles"]["0.975"], nlohmann::json({410, 411}));
  EXPECT_EQ(json["errors"][0]["id"], "bad\n\"id\"\\");
  EXPECT_EQ(json["errors"][0]["code"], "too_short");
  EXPECT_EQ(json["errors"][0]["message"], "only \t3");
  out.series.clear();
  out.forecasts.clear();
  EXPECT_TRUE(parse_json(out.json(), ExitStatus::bad_data, "output")["series"].empty());
}

// Every float comes back from the text, and the same forecasts give the same bytes.
TEST(Output, WhatIsWrittenReadsBack) {
  Written out;
  out.series = read(
                   "unique_id,ds,y\n\" x\ny\",2020-01-01T00:00:00+01:00,1\n"
                   "\" x\ny\",2020-01-01T06:00:00+01:00,2\nz,2020-01-01T00:00:00+01:00,1\n"
                   "z,2020-01-01T00:00:01+01:00,1\n")
                   .series;
  std::uint32_t bits = 1;
  for (const TimeSeries& series : out.series) {
    out.forecasts.push_back(make_forecast(series.id, 1, 5000));
    for (float& value : out.forecasts.back().mean) {
      do {
        bits = bits * 1664525U + 1013904223U;
        value = std::bit_cast<float>(bits);
      } while (!std::isfinite(value));
    }
  }
  EXPECT_EQ(out.csv(), out.csv());
  CsvOptions options;
  options.values = {"mean"};
  options.context = 5000;
  const Dataset back = read(out.csv(), options);
  ASSERT_EQ(back.series.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.series[i].values, out.forecasts[i].mean);
    EXPECT_EQ(back.series[i].times, future_times(out.series[i], 5000));
    EXPECT_EQ(back.series[i].style, out.series[i].style);
    EXPECT_EQ(back.series[i].interval, out.series[i].interval);
  }
  const auto json = nlohmann::json::parse(out.json());
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(json["series"][i]["variates"][0]["mean"].get<std::vector<float>>(),
              out.forecasts[i].mean);
  }
}

TEST(Output, RefusesWhatDoesNotFit) {
  Written out = one_series();
  out.forecasts[0].quantiles.pop_back();
  EXPECT_THROW((void)out.csv(), Error);
  out.forecasts.clear();
  EXPECT_THROW((void)out.json(), Error);
}

}  // namespace
}  // namespace toto::data
