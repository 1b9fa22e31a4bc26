// SPDX-License-Identifier: Apache-2.0
// Statistics that are selected, and statistics in one array of the caller's: the bits of a
// Forecast.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/requests.h"
#include "support/test_files.h"
#include "toto/service.hpp"

namespace toto {
namespace {

using test::OwnedSeries;

/// The array that a Forecast with everything in it amounts to.
std::vector<float> array_of(const std::vector<Forecast>& forecasts, const Select& select,
                            bool mean_only) {
  std::vector<float> all;
  for (const Forecast& f : forecasts) {
    for (std::size_t v = 0; v < f.variates; ++v) {
      const auto add = [&](const std::vector<float>& rows, std::size_t row) {
        const auto first = rows.begin() + static_cast<std::ptrdiff_t>(row * f.horizon);
        all.insert(all.end(), first, first + static_cast<std::ptrdiff_t>(f.horizon));
      };
      if (mean_only || select.mean) add(f.mean, v);
      if (mean_only) continue;
      if (select.median) add(f.median, v);
      if (select.std) add(f.std, v);
      for (std::size_t l = 0; l < f.levels.size(); ++l) add(f.quantiles, l * f.variates + v);
    }
  }
  return all;
}

std::vector<Select> selections() {
  return {
      {}, {true, false, false}, {false, true, false}, {false, false, true}, {false, false, false}};
}

void expect_array(const Model& model, const std::vector<OwnedSeries>& owned,
                  const ForecastOptions& asked, const ForecasterOptions& how = {}) {
  const std::vector<Series> series = test::views(owned);
  Forecaster forecaster(model, how);
  const std::vector<Forecast> whole = forecaster.forecast(series, asked);
  for (const Select& select : selections()) {
    ForecastOptions options = asked;
    options.select = select;
    const std::vector<float> expected = array_of(whole, select, asked.mean_only);
    std::vector<float> found(expected.size() + 2, -1.5F);
    forecaster.forecast(series, options, std::span(found).subspan(1, expected.size()));
    EXPECT_EQ(found.front(), -1.5F);
    EXPECT_EQ(found.back(), -1.5F);
    found.erase(found.begin());
    found.pop_back();
    EXPECT_EQ(test::bits_of(found), test::bits_of(expected));

    const std::vector<Forecast> selected = forecaster.forecast(series, options);
    EXPECT_EQ(test::bits_of(array_of(selected, select, asked.mean_only)), test::bits_of(expected));
    const bool mean = asked.mean_only || select.mean;
    EXPECT_EQ(selected[0].mean.empty(), !mean);
    EXPECT_EQ(selected[0].median.empty(), asked.mean_only || !select.median);
    EXPECT_EQ(selected[0].std.empty(), asked.mean_only || !select.std);
  }
}

ForecastOptions few(std::size_t horizon) {
  ForecastOptions o;
  o.horizon = horizon;
  o.num_samples = 5;
  o.levels = {0.9, 0.1, 0.9};
  return o;
}

TEST(ForecasterArray, HoldsWhatAForecastHolds) {
  for (const Mode mode : {Mode::eager, Mode::reduce_overhead}) {
    LoadOptions load;
    load.mode = mode;
    const Model model(test::make_impl(test::odd_config(), false,
                                      mode == Mode::eager ? Execution::eager() : Execution{}, 3,
                                      load));
    expect_array(model, test::many(7), few(20));
    expect_array(model, test::many(7), few(3));
    ForecastOptions mean = few(20);
    mean.mean_only = true;
    expect_array(model, test::many(7), mean);
    ForecastOptions none = few(20);
    none.levels = {};
    expect_array(model, test::many(7), none);
    ForecastOptions sampled = few(20);
    sampled.quantiles_from = QuantilesFrom::samples;
    expect_array(model, test::many(7), sampled);
  }
}

TEST(ForecasterArray, HoldsWhatAForecastOfToto2Holds) {
  const Model model = Model::load({.model = test::golden("toto2-tiny-multi")});
  expect_array(model, test::many(5), few(40));
}

TEST(ForecasterArray, CovariatesStayWhatTheyAre) {
  const Model model = test::make_model(test::spec_config());
  std::vector<OwnedSeries> owned = {test::wave(1, 40, 3)};
  owned[0].exogenous = 1;
  for (int t = 0; t < 20; ++t) owned[0].future.push_back(static_cast<float>(t) * 0.25F);
  expect_array(model, owned, few(20));
}

TEST(ForecasterArray, ComputedTwiceIsComparedToo) {
  ForecasterOptions how;
  how.deterministic_checks = true;
  expect_array(test::make_model(test::spec_config()), test::many(4), few(20), how);
}

std::string code_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return "";
}

TEST(ForecasterArray, OtherSizesAndSamplesAreRefused) {
  const Model model = test::make_model(test::spec_config());
  const std::vector<OwnedSeries> owned = test::many(2);
  const std::vector<Series> series = test::views(owned);
  Forecaster forecaster(model);
  ForecastOptions o = few(4);
  std::size_t size = 0;
  for (const Series& s : series) size += array_size(s.variates, o);
  EXPECT_EQ(statistic_rows(o), 5U);
  std::vector<float> out(size);
  EXPECT_EQ(code_of([&] { forecaster.forecast(series, o, std::span(out).first(size - 1)); }),
            "invalid_output");
  EXPECT_EQ(code_of([&] { forecaster.forecast(series, o, std::span<float>()); }), "invalid_output");
  o.keep_samples = true;
  EXPECT_EQ(code_of([&] { forecaster.forecast(series, o, std::span(out)); }), "invalid_output");
}

TEST(ForecasterArray, SeriesMayHaveOptionsOfTheirOwn) {
  const Model model = test::make_model(test::spec_config());
  const std::vector<OwnedSeries> owned = test::many(9);
  const std::vector<Series> series = test::views(owned);
  std::vector<ForecastOptions> options;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    options.push_back(few(2 + 5 * (i % 4)));
    options[i].mean_only = i % 3 == 1;
    options[i].keep_parameters = i % 2 == 1;
    options[i].seed = i;
  }
  std::vector<std::pair<std::size_t, std::size_t>> told;
  options[0].progress = [&](std::size_t done, std::size_t total) {
    told.emplace_back(done, total);
    return true;
  };
  Forecaster forecaster(model);
  std::vector<Forecast> found(owned.size());
  forecaster.forecast(series, options, found);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back().first, told.back().second);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    const Forecast alone = forecaster.forecast({&series[i], 1}, options[i]).front();
    test::expect_same(found[i], alone);
    EXPECT_EQ(found[i].parameters.loc, alone.parameters.loc);
  }
  options.pop_back();
  EXPECT_EQ(code_of([&] { forecaster.forecast(series, options, found); }), "invalid_output");
}

TEST(ForecasterArray, ARequestOfAServiceHasOneOfItsOwn) {
  const Model model = test::make_model(test::spec_config());
  const std::vector<OwnedSeries> owned = test::many(9);
  Service service(model);
  std::vector<std::vector<float>> arrays;
  std::vector<Future> futures;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    Request request{owned[i].view(), few(3 + i)};
    request.options.keep_samples = i % 2 == 0;
    if (i % 3 != 2) {
      request.out = arrays.emplace_back(array_size(owned[i].variates, request.options));
    } else {
      arrays.emplace_back();
    }
    futures.push_back(service.submit(request));
  }
  for (std::size_t i = 0; i < owned.size(); ++i) {
    ForecastOptions options = few(3 + i);
    options.keep_samples = i % 2 == 0;
    const Series series = owned[i].view();
    const auto alone = Forecaster(model).forecast({&series, 1}, options);
    const Forecast found = futures[i].get();
    EXPECT_EQ(found.id, alone[0].id);
    EXPECT_EQ(found.samples, alone[0].samples);
    if (i % 3 == 2) {
      EXPECT_EQ(found.mean, alone[0].mean);
    } else {
      EXPECT_TRUE(found.mean.empty());
      EXPECT_TRUE(found.quantiles.empty());
      EXPECT_EQ(test::bits_of(arrays[i]), test::bits_of(array_of(alone, {}, false)));
    }
  }
  std::vector<float> small(3);
  Request wrong{owned[0].view(), few(3)};
  wrong.out = small;
  EXPECT_EQ(service.submit(wrong).error()->code(), "invalid_output");
}

}  // namespace
}  // namespace toto
