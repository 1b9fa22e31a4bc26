// SPDX-License-Identifier: Apache-2.0
// Views: averages of forecasts that are made one by one here.
#include <gmock/gmock.h>

#include <cmath>

#include "support/requests.h"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;

constexpr std::size_t kHorizon = 20;

ForecastOptions options_with(const std::string& views) {
  ForecastOptions options;
  options.horizon = kHorizon;
  options.num_samples = 16;
  options.levels = {0.1, 0.25, 0.5, 0.9};
  options.guards.clamp = 0;
  options.views = parse_views(views);
  return options;
}

OwnedSeries positive(std::size_t index, std::size_t steps, std::size_t variates = 1) {
  OwnedSeries s = wave(index, steps, variates);
  for (float& x : s.values) x = 20 + std::abs(x);
  return s;
}

OwnedSeries changed(OwnedSeries s, float (*change)(float)) {
  for (float& x : s.values) x = change(x);
  return s;
}

OwnedSeries last_part(const OwnedSeries& s, std::size_t steps) {
  OwnedSeries out = s;
  const std::size_t all = s.values.size() / s.variates;
  out.values.clear();
  for (std::size_t v = 0; v < s.variates; ++v) {
    const auto end = s.values.begin() + static_cast<std::ptrdiff_t>((v + 1) * all);
    out.values.insert(out.values.end(), end - static_cast<std::ptrdiff_t>(steps), end);
  }
  return out;
}

float average(std::initializer_list<double> values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return static_cast<float>(sum / static_cast<double>(values.size()));
}

class ViewsTest : public testing::Test {
 protected:
  Forecast forecast(const OwnedSeries& owned, const ForecastOptions& options) {
    const Series series = owned.view();
    return forecaster_.forecast({&series, 1}, options).front();
  }
  std::string refusal(const ForecastOptions& options) {
    try {
      (void)forecast(positive(1, 60), options);
    } catch (const Error& error) {
      return error.code();
    }
    return "";
  }
  Forecaster forecaster_{test::make_model(test::spec_config())};
};

TEST_F(ViewsTest, WordsAreReadAndRefused) {
  EXPECT_EQ(to_text(parse_views("context/4,season,log,flip,context/2")),
            "flip,log,season,context/2,context/4");
  EXPECT_FALSE(parse_views("none").any());
  EXPECT_FALSE(parse_views("").any());
  EXPECT_EQ(parse_views("flip,context/3").passes(), 3U);
  EXPECT_EQ(parse_views("season").passes(), 2U);
  EXPECT_EQ(to_text(parse_views("season,flip").without(parse_views("flip"))), "season");
  for (const char* text :
       {"flop", "flip,", "flip,flip", "context/1", "context/1025", "context/", "context/2x",
        "context/2,context/2", " flip", "context/-2", "season,season", "season/2", "seasonal"}) {
    try {
      (void)parse_views(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "invalid_views") << text;
      EXPECT_EQ(error.status(), ExitStatus::usage);
    }
  }
}

TEST_F(ViewsTest, EachIsAForecastOfItsOwnAndTheirResultIsTheAverage) {
  const OwnedSeries y = positive(3, 71, 2);
  const ForecastOptions plain = options_with("");
  ForecastOptions mirrored = plain;
  mirrored.levels = {0.1, 0.5, 0.75, 0.9};
  ForecastOptions of_log = plain;
  of_log.select.mean = false;
  for (std::size_t i = 0; i < 10; ++i) {
    of_log.levels.push_back((static_cast<double>(i) + 0.5) / 10.0);
  }
  const Forecast a = forecast(y, plain);
  const Forecast b = forecast(changed(y, [](float x) { return -x; }), mirrored);
  const Forecast c = forecast(changed(y, [](float x) { return std::log(x); }), of_log);
  const Forecast d = forecast(last_part(y, 24), plain);  // the greater part of 71 / 3
  const Forecast found = forecast(y, options_with("flip,log,context/3"));

  EXPECT_EQ(found.applied.passes, 4U);
  EXPECT_EQ(found.applied.views_left_out, "");
  EXPECT_EQ(found.exact_steps, a.exact_steps);
  EXPECT_EQ(found.num_samples, a.num_samples);
  EXPECT_EQ(found.applied.input_scale, a.applied.input_scale);
  const std::size_t cells = 2 * kHorizon;
  const auto row = [&](const Forecast& f, double level) {
    const auto at = std::ranges::lower_bound(f.levels, level) - f.levels.begin();
    return f.quantiles.data() + static_cast<std::size_t>(at) * cells;
  };
  const auto back = [](float x) { return double{static_cast<float>(std::exp(double{x}))}; };
  for (std::size_t cell = 0; cell < cells; ++cell) {
    for (const double level : plain.levels) {
      const double other = level == 0.25 ? 0.75 : level == 0.5 ? 0.5 : level == 0.1 ? 0.9 : 0.1;
      // Double rounding of the logarithm: the engine's is of a double.
      EXPECT_NEAR(row(found, level)[cell],
                  average({row(a, level)[cell], -row(b, other)[cell], back(row(c, level)[cell]),
                           row(d, level)[cell]}),
                  1e-5F * std::abs(row(found, level)[cell]));
    }
    EXPECT_NEAR(found.median[cell],
                average({a.median[cell], -b.median[cell], back(c.median[cell]), d.median[cell]}),
                1e-5F * std::abs(found.median[cell]));
    double mean = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      mean += back(row(c, (static_cast<double>(i) + 0.5) / 10.0)[cell]) / 10;
    }
    EXPECT_NEAR(found.mean[cell], average({a.mean[cell], -b.mean[cell], mean, d.mean[cell]}),
                1e-5F * std::abs(found.mean[cell]));
    const float std = average({a.std[cell], b.std[cell], d.std[cell]});
    EXPECT_EQ(std::isnan(found.std[cell]), std::isnan(std));
    if (!std::isnan(std)) {
      EXPECT_EQ(found.std[cell], std);
    }
  }
}

/// Two views commute, and symmetric levels are mirrored onto themselves: to the last bit.
TEST_F(ViewsTest, TheFlippedSeriesHasTheFlippedForecast) {
  ForecastOptions options = options_with("flip");
  options.levels = {0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9};
  const OwnedSeries y = wave(2, 90, 2);
  const Forecast one = forecast(y, options);
  const Forecast other = forecast(changed(y, [](float x) { return -x; }), options);
  const std::size_t cells = 2 * kHorizon;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    EXPECT_EQ(one.mean[cell], -other.mean[cell]);
    EXPECT_EQ(one.median[cell], -other.median[cell]);
    for (std::size_t l = 0; l < 7; ++l) {
      EXPECT_EQ(one.quantiles[l * cells + cell], -other.quantiles[(6 - l) * cells + cell]);
    }
  }
  EXPECT_EQ(test::bits_of(one.std), test::bits_of(other.std));
}

TEST_F(ViewsTest, BitsDoNotDependOnTheBatch) {
  const char* const kinds[] = {"flip,log", "", "context/2", "log", "flip,log,context/2,context/4"};
  std::vector<OwnedSeries> owned;
  std::vector<ForecastOptions> options;
  for (std::size_t i = 0; i < 40; ++i) {
    owned.push_back(i % 3 == 0 ? wave(i, 20 + 7 * i, 1 + i % 2) : positive(i, 20 + 7 * i, 1));
    options.push_back(options_with(kinds[i % 5]));
    options.back().horizon = 5 + i % 16;
  }
  std::vector<Series> series = test::views(owned);
  std::vector<Forecast> together(series.size());
  forecaster_.forecast(series, options, together);
  std::vector<Forecast> again(series.size());
  forecaster_.forecast(series, options, again);
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Forecast alone = forecast(owned[i], options[i]);
    test::expect_same(alone, together[i]);
    test::expect_same(alone, again[i]);
    EXPECT_EQ(alone.median, together[i].median);
    EXPECT_EQ(alone.applied, together[i].applied);
  }
}

TEST_F(ViewsTest, WhatASeriesCannotHaveIsLeftOutAndSaid) {
  OwnedSeries zero = positive(1, 90);
  zero.values[40] = 0;
  const Forecast some = forecast(zero, options_with("flip,log,context/8"));
  EXPECT_EQ(some.applied.passes, 2U);
  EXPECT_EQ(some.applied.views_left_out, "log,context/8");
  test::expect_same(some, forecast(zero, options_with("flip")));
  zero.mask.assign(90, 1);
  zero.mask[40] = 0;  // what nobody has observed does not matter
  EXPECT_EQ(forecast(zero, options_with("log")).applied.passes, 2U);

  const OwnedSeries negative = changed(positive(1, 90), [](float x) { return -x; });
  const Forecast none = forecast(negative, options_with("log"));
  EXPECT_EQ(none.applied.passes, 1U);
  test::expect_same(none, forecast(negative, options_with("")));
}

TEST_F(ViewsTest, AMissingEndIsForecastAcrossInEveryView) {
  OwnedSeries series = positive(4, 96);
  series.mask.assign(96, 1);
  for (std::size_t t = 90; t < 96; ++t) series.mask[t] = 0;
  const Forecast found = forecast(series, options_with("flip,log,context/2"));
  EXPECT_EQ(found.applied.missing_end, 6U);
  EXPECT_EQ(found.applied.passes, 4U);
  const Forecast shorter = forecast(last_part(positive(4, 90), 45), options_with(""));
  EXPECT_EQ(found.horizon, kHorizon);
  EXPECT_EQ(shorter.horizon, kHorizon);
}

TEST_F(ViewsTest, IntoAnArrayTheSame) {
  const OwnedSeries owned[] = {positive(1, 60, 2), wave(2, 80, 1)};
  const ForecastOptions options = options_with("flip,log,context/2");
  std::size_t size = 0;
  std::vector<Series> series;
  for (const OwnedSeries& one : owned) {
    series.push_back(one.view());
    size += array_size(one.variates, options);
  }
  std::vector<float> array(size);
  forecaster_.forecast(series, options, array);
  const float* at = array.data();
  for (const OwnedSeries& one : owned) {
    const Forecast f = forecast(one, options);
    for (std::size_t v = 0; v < one.variates; ++v) {
      for (const auto* row : {&f.mean, &f.median, &f.std}) {
        for (std::size_t t = 0; t < kHorizon; ++t, ++at) {
          EXPECT_EQ(std::bit_cast<std::uint32_t>(*at),
                    std::bit_cast<std::uint32_t>((*row)[v * kHorizon + t]));
        }
      }
      for (std::size_t l = 0; l < f.levels.size(); ++l) {
        for (std::size_t t = 0; t < kHorizon; ++t, ++at) {
          EXPECT_EQ(*at, f.quantiles[(l * one.variates + v) * kHorizon + t]);
        }
      }
    }
  }
}

TEST_F(ViewsTest, BoundsAreOfTheAverage) {
  ForecastOptions options = options_with("flip,log");
  const OwnedSeries y = positive(5, 80);
  const Forecast free = forecast(y, options);
  options.guards.integer = true;
  options.guards.min = 21;
  const Forecast bound = forecast(y, options);
  for (std::size_t t = 0; t < kHorizon; ++t) {
    EXPECT_EQ(bound.median[t], std::max(21.0F, std::nearbyint(free.median[t])));
    EXPECT_EQ(bound.mean[t], std::max(21.0F, free.mean[t]));
  }
}

/// The exponential of far quantiles stays where --clamp keeps sampled steps.
TEST_F(ViewsTest, ALogViewStaysInReach) {
  ForecastOptions options = options_with("log");
  options.levels = {0.5, 0.9999999};
  options.guards.clamp = 4;
  OwnedSeries y = positive(6, 80);
  for (std::size_t t = 0; t < 80; ++t) y.values[t] = t % 2 == 0 ? 1e-3F : 1e3F;
  const Forecast found = forecast(y, options);
  for (const float x : found.quantiles) EXPECT_TRUE(std::isfinite(x));
}

TEST_F(ViewsTest, ValueOffsetsAreOfTheWholeValue) {
  const OwnedSeries y = positive(7, 80);
  const OwnedSeries moved = changed(y, [](float x) { return x - 16; });
  const double offset[] = {16};
  Series series = moved.view();
  series.value_offsets = offset;
  const ForecastOptions options = options_with("flip,log");
  const Forecast found = forecaster_.forecast({&series, 1}, options).front();
  const Forecast whole = forecast(y, options);
  EXPECT_EQ(found.applied.passes, 3U);
  for (std::size_t t = 0; t < kHorizon; ++t) {
    EXPECT_NEAR(16 + found.median[t], whole.median[t], 1e-3);
  }
}

TEST_F(ViewsTest, WhatHasNoAverageIsRefused) {
  ForecastOptions options = options_with("flip");
  options.keep_samples = true;
  EXPECT_EQ(refusal(options), "invalid_views");
  options = options_with("flip");
  options.keep_parameters = true;
  EXPECT_EQ(refusal(options), "invalid_views");
  options = options_with("flip");
  options.mean_only = true;
  EXPECT_EQ(refusal(options), "invalid_views");
  options = options_with("");
  options.views.shorter = {2, 2};
  EXPECT_EQ(refusal(options), "invalid_views");
  options.views.shorter = {1};
  EXPECT_EQ(refusal(options), "invalid_views");
}

TEST_F(ViewsTest, TheReferenceHasNone) {
  ForecastOptions options = options_with("flip,log");
  options.gaps_by_model = true;
  as_reference(options);
  EXPECT_FALSE(options.views.any());
  EXPECT_FALSE(options.gaps_by_model);
}

}  // namespace
}  // namespace toto
