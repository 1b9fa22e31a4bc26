// SPDX-License-Identifier: Apache-2.0
// What a caller can rely on: bits that depend on the series alone, exactness, order, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/philox.h"
#include "engine/forecast_writer.h"
#include "statistics/mixture.h"
#include "support/requests.h"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;

ForecastOptions sampled(std::size_t horizon, std::size_t samples) {
  ForecastOptions options;
  options.horizon = horizon;
  options.num_samples = samples;
  options.keep_samples = true;
  options.seed = 7;
  return options;
}

std::vector<Forecast> run(const Model& model, const std::vector<OwnedSeries>& owned,
                          const ForecastOptions& options) {
  std::vector<Series> series;
  for (const OwnedSeries& s : owned) series.push_back(s.view());
  return Forecaster(model).forecast(series, options);
}

void expect_same(const Forecast& a, const Forecast& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.median, b.median);
  EXPECT_EQ(test::bits_of(a.std), test::bits_of(b.std));  // may be NaN
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(a.samples, b.samples);
}

class ForecasterTest : public testing::TestWithParam<bool> {
 protected:
  Model model_ =
      test::make_model(test::spec_config(), false, GetParam() ? Execution::eager() : Execution{});
};

TEST_P(ForecasterTest, TwiceTheSameBits) {
  const std::vector<OwnedSeries> series = {wave(0, 50)};
  expect_same(run(model_, series, sampled(20, 16)).front(),
              run(model_, series, sampled(20, 16)).front());
}

TEST_P(ForecasterTest, ASeriesDoesNotFeelItsNeighbours) {
  std::vector<OwnedSeries> all;
  for (std::size_t i = 0; i < 9; ++i) all.push_back(wave(i, 9 + 13 * i, 1 + i % 3));
  const auto together = run(model_, all, sampled(20, 5));
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect_same(run(model_, {all[i]}, sampled(20, 5)).front(), together[i]);
  }
  std::reverse(all.begin(), all.end());
  const auto reversed = run(model_, all, sampled(20, 5));
  for (std::size_t i = 0; i < all.size(); ++i)
    expect_same(reversed[i], together[all.size() - 1 - i]);
}

TEST_P(ForecasterTest, MoreSamplesChangeNoEarlierOne) {
  const std::vector<OwnedSeries> series = {wave(1, 40, 2)};
  const auto few = run(model_, series, sampled(20, 16)).front();
  const auto many = run(model_, series, sampled(20, 64)).front();
  ASSERT_EQ(many.samples.size(), 4 * few.samples.size());
  EXPECT_TRUE(std::equal(few.samples.begin(), few.samples.end(), many.samples.begin()));
}

TEST_P(ForecasterTest, ChunkingChangesNothing) {
  const std::vector<OwnedSeries> owned = {wave(0, 50, 2), wave(1, 30), wave(2, 77)};
  std::vector<Series> series;
  for (const OwnedSeries& s : owned) series.push_back(s.view());
  ForecastOptions options = sampled(20, 23);
  as_reference(options);  // as the writer below gives them
  const auto whole = run(model_, owned, options);
  for (const std::int64_t rows : {1, 40, 200}) {
    std::vector<Forecast> out(series.size());
    const Network& net = *model_.impl().net;
    ForecastWriter writer(net, {});
    std::vector<ForecastJob> jobs;
    for (std::size_t i = 0; i < series.size(); ++i) jobs.push_back({&series[i], &options, &out[i]});
    std::vector<SeriesRequest> requests;
    writer.start(jobs, nullptr, requests);
    PlanTable plans(net, {});
    Limits limits;
    limits.rows = rows;
    Engine(net, plans).run(requests, writer.generation_of(options), limits, writer);
    for (std::size_t i = 0; i < out.size(); ++i) expect_same(out[i], whole[i]);
  }
}

TEST_P(ForecasterTest, SeedsAndIdsAddressTheDraws) {
  OwnedSeries a = wave(3, 40);
  ForecastOptions options = sampled(12, 8);
  const auto first = run(model_, {a}, options).front();
  options.seed = 8;
  EXPECT_NE(run(model_, {a}, options).front().samples, first.samples);
  options.seed = 7;
  a.id = "another";
  EXPECT_NE(run(model_, {a}, options).front().samples, first.samples);
}

TEST_P(ForecasterTest, FirstPatchIsExactAndNeedsNoSamples) {
  ForecastOptions options;
  options.horizon = 8;
  const auto f = run(model_, {wave(0, 50)}, options).front();
  EXPECT_EQ(f.exact_steps, 8U);
  EXPECT_EQ(f.num_samples, 0U);
  options.num_samples = 20000;
  options.quantiles_from = QuantilesFrom::samples;
  const auto drawn = run(model_, {wave(0, 50)}, options).front();
  EXPECT_EQ(drawn.exact_steps, 0U);
  EXPECT_EQ(drawn.num_samples, 20000U);
  for (std::size_t t = 0; t < 8; ++t) {
    // The median's standard error is about 1.25 sigma / sqrt(N); half the central 80 % interval is
    // about 1.3 sigma.
    const double spread =
        static_cast<double>(f.quantiles[8 * 8 + t]) - static_cast<double>(f.quantiles[t]);
    EXPECT_NEAR(drawn.median[t], f.median[t], 6 * spread / 2.6 * 1.25 / std::sqrt(20000.0));
  }
}

/// A level is a double all the way: what float32 makes of 0.999999 lies elsewhere in the tail.
TEST_P(ForecasterTest, LevelsFarOutAreThoseAskedFor) {
  ForecastOptions options;
  options.horizon = 8;
  options.levels = {1e-9, 0.999999, 0.99999999};
  options.keep_parameters = true;
  const auto f = run(model_, {wave(0, 50)}, options).front();
  EXPECT_EQ(f.levels, options.levels);
  const Parameters& p = f.parameters;
  Mixture mixture(p.components);
  for (std::size_t cell = 0; cell < f.horizon; ++cell) {
    const auto part = [&](const std::vector<double>& all) {
      return std::span(all).subspan(cell * p.components, p.components);
    };
    mixture.assign(part(p.df), part(p.loc), part(p.scale), part(p.probability));
    for (std::size_t q = 0; q < f.levels.size(); ++q) {
      const double scaled = mixture.quantile(f.levels[q]);
      EXPECT_EQ(f.quantiles[q * f.horizon + cell],
                static_cast<float>(scaled * p.affine_scale[cell] + p.affine_loc[cell]))
          << "level " << f.levels[q] << ", step " << cell;
    }
  }
}

TEST_P(ForecasterTest, QuantilesAscendAndTheMedianIsOneOfThem) {
  for (const std::size_t horizon : {5U, 30U}) {
    const auto f = run(model_, {wave(2, 45, 2)}, sampled(horizon, 50)).front();
    const std::size_t cells = 2 * horizon;
    ASSERT_EQ(f.quantiles.size(), 9 * cells);
    for (std::size_t i = 0; i < cells; ++i) {
      EXPECT_EQ(f.quantiles[4 * cells + i], f.median[i]);
      for (std::size_t q = 1; q < 9; ++q) {
        EXPECT_LE(f.quantiles[(q - 1) * cells + i], f.quantiles[q * cells + i]);
      }
    }
  }
}

TEST_P(ForecasterTest, GroupsSeparateVariates) {
  OwnedSeries together = wave(0, 40, 2);
  OwnedSeries apart = together;
  apart.groups = {0, 1};
  OwnedSeries alone = together;
  alone.variates = 1;
  alone.values.resize(40);
  ForecastOptions options;
  options.horizon = 8;
  const auto t = run(model_, {together}, options).front();
  const auto a = run(model_, {apart}, options).front();
  const auto one = run(model_, {alone}, options).front();
  EXPECT_NE(t.mean, a.mean);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(a.mean[i], one.mean[i]);
}

TEST_P(ForecasterTest, CovariatesThatAreNotKnownAreForecast) {
  test::expect_unknown_covariates_are_forecast(model_, sampled(20, 5));
}

TEST_P(ForecasterTest, TrimmingDropsTheOldestSteps) {
  const OwnedSeries longer = wave(0, 45);
  OwnedSeries cut = longer;
  cut.values.erase(cut.values.begin(), cut.values.begin() + 5);
  ForecastOptions options;
  options.horizon = 8;
  options.align = Align::trim;
  expect_same(run(model_, {longer}, options).front(), run(model_, {cut}, options).front());
  options.align = Align::pad;
  EXPECT_NE(run(model_, {longer}, options).front().mean, run(model_, {cut}, options).front().mean);
}

TEST_P(ForecasterTest, ProgressCountsUpAndCanStop) {
  ForecastOptions options = sampled(20, 4);
  std::size_t last = 0;
  std::size_t total = 0;
  options.progress = [&](std::size_t done, std::size_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
    return true;
  };
  run(model_, {wave(0, 30), wave(1, 60)}, options);
  EXPECT_EQ(last, total);
  options.progress = [](std::size_t done, std::size_t) { return done == 0; };
  try {
    run(model_, {wave(0, 30)}, options);
    FAIL() << "not stopped";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "interrupted");
    EXPECT_EQ(e.status(), ExitStatus::interrupted);
  }
}

/// Ids that a table of their number would put into one place.
std::vector<std::string> crowded_ids(std::size_t count) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; ids.size() < count; ++i) {
    std::string id = "id " + std::to_string(i);
    if (series_key(id) % 128 == 5) ids.push_back(std::move(id));
  }
  return ids;
}

TEST_P(ForecasterTest, TheSameIdTwiceIsRefusedAmongManyToo) {
  const auto code_of = [&](const std::vector<OwnedSeries>& all) -> std::string {
    ForecastOptions options;
    options.horizon = 1;
    try {
      run(model_, all, options);
      return {};
    } catch (const Error& e) {
      return e.code() + " " + e.where();
    }
  };
  for (const bool crowded : {false, true}) {
    std::vector<OwnedSeries> all;
    for (std::size_t i = 0; i < 45; ++i) all.push_back(wave(i, 8));
    const auto ids = crowded_ids(all.size());
    for (std::size_t i = 0; crowded && i < all.size(); ++i) all[i].id = ids[i];
    EXPECT_EQ(code_of(all), "");
    const std::string twice = all[3].id;
    all.back().id = twice;
    EXPECT_EQ(code_of(all), "duplicate_id series '" + twice + "'");
    all.resize(2);
    EXPECT_EQ(code_of(all), "");
    all[1].id = all[0].id;
    EXPECT_EQ(code_of(all), "duplicate_id series '" + all[0].id + "'");
  }
}

TEST_P(ForecasterTest, ErrorsHaveCodes) {
  const auto expect = [&](const OwnedSeries& s, const ForecastOptions& options,
                          std::string_view code, ExitStatus status) {
    try {
      run(model_, {s}, options);
      ADD_FAILURE() << "no error, expected " << code;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code);
      EXPECT_EQ(e.status(), status);
    }
  };
  ForecastOptions bad;
  bad.horizon = 0;
  expect(wave(0, 20), bad, "invalid_horizon", ExitStatus::usage);
  bad.horizon = 1000000000;
  expect(wave(0, 20), bad, "invalid_horizon", ExitStatus::usage);
  bad = {};
  bad.num_samples = 0;
  expect(wave(0, 20), bad, "invalid_samples", ExitStatus::usage);
  for (const double level : {0.0, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    bad = {};
    bad.levels = {level};
    expect(wave(0, 20), bad, "invalid_quantile", ExitStatus::usage);
  }
  OwnedSeries s = wave(0, 20);
  s.values[3] = std::numeric_limits<float>::quiet_NaN();
  expect(s, {}, "not_finite", ExitStatus::bad_data);
  s = wave(0, 20);
  s.mask.assign(20, 0);
  expect(s, {}, "no_observations", ExitStatus::bad_data);
  s = wave(0, 20);
  s.mask.assign(19, 1);
  expect(s, {}, "invalid_series", ExitStatus::bad_data);
  s = wave(0, 20);
  s.groups.assign(20, 0);
  s.groups[15] = 1;  // inside the last patch
  expect(s, {}, "invalid_series", ExitStatus::bad_data);
  s = wave(0, 20, 2);
  s.exogenous = 1;
  s.future = {1, 2, 3};
  expect(s, {}, "invalid_series", ExitStatus::bad_data);
  s.future.assign(ForecastOptions().horizon, 1.0F);
  s.future_mask.assign(s.future.size(), 1);
  s.future_mask.back() = 0;
  expect(s, {}, "missing_covariate", ExitStatus::bad_data);
  const auto two = [&] { run(model_, {wave(0, 20), wave(0, 20)}, {}); };
  EXPECT_THROW(two(), Error);
}

INSTANTIATE_TEST_SUITE_P(Execution, ForecasterTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Eager" : "Planned"; });

}  // namespace
}  // namespace toto
