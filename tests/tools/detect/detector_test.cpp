// SPDX-License-Identifier: Apache-2.0
// Scores of series, with the model that ships where they must mean something.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "support/paths.h"
#include "support/small_model.h"
#include "toto/tools/detect.hpp"

namespace toto::detect {
namespace {

constexpr std::int64_t kMinute = 60'000;

/// Evenly distributed in (-1, 1), the same everywhere.
double noise(std::size_t t, std::size_t series) {
  std::uint64_t x = t * 0x9E3779B97F4A7C15ULL + series * 0xBF58476D1CE4E5B9ULL + 1;
  x ^= x >> 30U;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27U;
  x *= 0x94D049BB133111EBULL;
  x ^= x >> 31U;
  return static_cast<double>(x >> 11U) * 0x1p-52 - 1;
}

/// Five-minute values with a cycle of 48 and noise.
data::TimeSeries made(std::string id, std::size_t steps, std::size_t number = 0) {
  data::TimeSeries series;
  series.id = std::move(id);
  series.variates = {"y"};
  series.steps = steps;
  for (std::size_t t = 0; t < steps; ++t) {
    const double cycle = std::sin(static_cast<double>(t) * 2 * std::numbers::pi / 48);
    const double n = noise(3 * t, number) + noise(3 * t + 1, number) + noise(3 * t + 2, number);
    series.values.push_back(static_cast<float>(100 + 20 * cycle + 2 * n));
    series.times.edit().push_back(static_cast<std::int64_t>(t) * 5 * kMinute);
  }
  series.mask.assign(steps, 1);
  series.style.form = data::TimeStyle::Form::datetime;
  series.interval = {data::Interval::Unit::milliseconds, 5 * kMinute, 1, true};
  return series;
}

/// The first steps of a series that grows.
data::TimeSeries first_steps(const data::TimeSeries& series, std::size_t count) {
  data::TimeSeries out = series;
  out.steps = count;
  out.values.resize(count);
  out.mask.resize(count);
  out.times.edit().resize(count);
  return out;
}

Forecaster nano() {
  ModelQuery query;
  query.model = test::source_path("models/toto-nano");
  query.environment = Environment::ignored;
  return Forecaster(Model::load(query));
}

Forecaster small() { return Forecaster(test::make_model(test::spec_config())); }

std::vector<Scored> score(Forecaster& forecaster, const Options& options,
                          const std::vector<data::TimeSeries>& series) {
  return Detector(forecaster, options).update(series);
}

TEST(Detector, FindsWhatWasPutIn) {
  Forecaster forecaster = nano();
  data::TimeSeries series = made("a", 1200);
  const std::set<std::size_t> spikes = {700, 811, 995, 1103};
  for (const std::size_t t : spikes) series.values[t] += t % 2 == 0 ? 45.0F : -45.0F;
  Options options;
  options.threshold = 1e-4;
  const std::vector<Scored> scored = score(forecaster, options, {series});
  ASSERT_EQ(scored.size(), 1U);
  EXPECT_EQ(scored[0].points.size(), 1200U - 128U);  // four patches of 32 are history
  std::set<std::size_t> found;
  for (const Point& point : scored[0].points) {
    if (point.anomaly) found.insert(point.step);
  }
  for (const std::size_t t : spikes) EXPECT_TRUE(found.contains(t)) << t;
  EXPECT_LE(found.size(), spikes.size() + 1);  // one in ten thousand by chance
  EXPECT_EQ(scored[0].anomalies, found.size());
}

TEST(Detector, RaisesAsManyFalseAlarmsAsAreAllowed) {
  Forecaster forecaster = nano();
  std::vector<data::TimeSeries> series;
  for (std::size_t i = 0; i < 8; ++i) series.push_back(made(fmt::format("s{}", i), 3000, i));
  Options options;
  options.false_alarms = 4;  // of 288 a day
  options.context = 256;
  for (const std::size_t hold : {0, 24}) {
    options.hold = hold;
    double alarms = 0;
    double days = 0;
    for (const Scored& one : score(forecaster, options, series)) {
      EXPECT_DOUBLE_EQ(one.per_day, 288);
      EXPECT_DOUBLE_EQ(one.threshold, 4.0 / 288);
      alarms += static_cast<double>(one.anomalies);
      days += static_cast<double>(one.points.size()) / one.per_day;
    }
    // 80 days: 320 are expected.
    EXPECT_GT(alarms / days, 4 * 0.7);
    // With a hold the share that is held back is not quite steady.
    EXPECT_LT(alarms / days, 4 * (hold == 0 ? 1.3 : 1.5));
  }
}

TEST(Detector, RaisesOnceWhatGoesOn) {
  Forecaster forecaster = nano();
  data::TimeSeries series = made("a", 900);
  for (std::size_t t = 600; t < 630; ++t) series.values[t] += 60;  // a level that stays a while
  Options options;
  const auto raised = [&] {
    std::size_t count = 0;
    const std::vector<Scored> scored = score(forecaster, options, {series});
    for (const Point& p : scored[0].points) count += p.anomaly && p.step >= 600 && p.step < 700;
    return count;
  };
  EXPECT_GE(raised(), 6U);
  options.hold = 96;
  const std::size_t once = raised();
  EXPECT_GE(once, 1U);
  EXPECT_LE(once, 4U);  // some get higher and higher
}

TEST(Detector, LimitsAreWhereAnomaliesBegin) {
  Forecaster forecaster = nano();
  Options options;
  options.threshold = 0.05;
  for (const Side side : {Side::both, Side::above, Side::below, Side::both}) {
    options.hold = side == Side::both && options.side == Side::below ? 10 : 0;
    options.side = side;
    const std::vector<Scored> scored = score(forecaster, options, {made("a", 900)});
    EXPECT_GT(scored[0].anomalies, 5U);
    for (const Point& point : scored[0].points) {
      const bool outside = point.value < point.low || point.value > point.high;
      EXPECT_EQ(point.anomaly, outside) << point.step << ": " << point.low << " " << point.value
                                        << " " << point.high << " p " << point.p;
    }
  }
}

void expect_same(const std::vector<Point>& a, const std::vector<Point>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].time, b[i].time);
    EXPECT_EQ(a[i].p, b[i].p) << i;
    EXPECT_EQ(a[i].low, b[i].low) << i;
    EXPECT_EQ(a[i].anomaly, b[i].anomaly) << i;
  }
}

TEST(Detector, DoesNotDependOnHowManyStepsComeAtATime) {
  Forecaster forecaster = small();
  const data::TimeSeries whole = made("a", 150);
  Options options;
  options.context = 40;
  options.min_history = 30;
  options.threshold = 0.1;
  options.hold = 5;
  const std::vector<Scored> at_once = score(forecaster, options, {whole});
  for (const std::size_t piece : {1, 3, 17}) {
    Detector detector(forecaster, options);
    std::vector<Point> points;
    for (std::size_t end = piece; end < whole.steps + piece; end += piece) {
      data::TimeSeries grown = first_steps(whole, std::min(end, whole.steps));
      // What lies before all contexts need not be given again.
      grown = data::last_steps(grown, 80);
      const std::vector<Scored> scored = detector.update(std::span(&grown, 1));
      points.insert(points.end(), scored[0].points.begin(), scored[0].points.end());
    }
    expect_same(points, at_once[0].points);
  }
}

TEST(Detector, DoesNotDependOnTheOtherSeries) {
  Forecaster forecaster = small();
  Options options;
  options.context = 40;
  const std::vector<data::TimeSeries> series = {made("a", 150), made("b", 90, 1),
                                                made("c", 130, 2)};
  const std::vector<Scored> together = score(forecaster, options, series);
  for (std::size_t i = 0; i < series.size(); ++i) {
    expect_same(score(forecaster, options, {series[i]})[0].points, together[i].points);
  }
}

TEST(Detector, LooksAtNothingThatComesLater) {
  Forecaster forecaster = small();
  Options options;
  options.context = 40;
  const data::TimeSeries series = made("a", 120);
  data::TimeSeries other = series;
  for (std::size_t t = 100; t < 120; ++t) other.values[t] *= 3;
  const std::vector<Point> a = score(forecaster, options, {series})[0].points;
  const std::vector<Point> b = score(forecaster, options, {other})[0].points;
  ASSERT_EQ(a.size(), b.size());
  std::size_t before = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].step < 100) {
      ++before;
      EXPECT_EQ(a[i].p, b[i].p);
    }
  }
  EXPECT_EQ(before, 100U - 32U);
}

TEST(Detector, ScoresWhatWasObserved) {
  Forecaster forecaster = small();
  Options options;
  options.context = 40;
  data::TimeSeries series = made("a", 120);
  for (const std::size_t t : {60, 61, 62}) series.mask[t] = 0;
  std::set<std::size_t> steps;
  const std::vector<Scored> scored = score(forecaster, options, {series});
  for (const Point& point : scored[0].points) steps.insert(point.step);
  EXPECT_EQ(steps.size(), 120U - 32U - 3U);
  EXPECT_FALSE(steps.contains(61));
  // Without a patch of observations in the context there is no forecast to be held to.
  std::fill(series.mask.begin(), series.mask.begin() + 75, std::uint8_t{0});
  const std::vector<Scored> later = score(forecaster, options, {series});
  EXPECT_FALSE(later[0].points.empty());
  for (const Point& point : later[0].points) EXPECT_GE(point.step, 75U + 8U);
}

TEST(Detector, ScoresEachTargetOfASeries) {
  Forecaster forecaster = small();
  Options options;
  options.context = 40;
  data::TimeSeries series = made("a", 100);
  const data::TimeSeries second = made("a", 100, 1);
  series.variates = {"y", "z"};
  series.values.insert(series.values.end(), second.values.begin(), second.values.end());
  series.mask.assign(200, 1);
  const std::vector<Scored> scored = score(forecaster, options, {series});
  ASSERT_EQ(scored.size(), 2U);
  EXPECT_EQ(scored[1].variate, "z");
  EXPECT_EQ(scored[1].points[0].value, static_cast<double>(second.values[32]));
}

TEST(Detector, RefusesWhatCannotBe) {
  Forecaster forecaster = small();
  const auto code = [&](const Options& options, data::TimeSeries series) -> std::string {
    try {
      (void)score(forecaster, options, {std::move(series)});
    } catch (const Error& error) {
      return fmt::format("{}/{}", error.code(), static_cast<int>(error.status()));
    }
    return "none";
  };
  Options options;
  options.block = 9;  // a patch has 8 steps
  EXPECT_EQ(code(options, made("a", 90)), "invalid_block/2");
  options = {};
  options.context = 0;
  EXPECT_EQ(code(options, made("a", 90)), "invalid_context/2");
  options = {};
  options.threshold = 1;
  EXPECT_EQ(code(options, made("a", 90)), "invalid_threshold/2");
  options = {};
  options.false_alarms = 300;
  EXPECT_EQ(code(options, made("a", 90)), "invalid_false_alarms/2");
  options.false_alarms = 1;
  data::TimeSeries index = made("a", 90);
  index.interval = {};
  EXPECT_EQ(code(options, index), "invalid_false_alarms/2");
  const std::vector<data::TimeSeries> twice = {made("a", 90), made("a", 90)};
  EXPECT_THROW((void)score(forecaster, {}, twice), Error);
}

TEST(Detector, WritesLines) {
  Scored scored;
  scored.id = "a\"b";
  scored.points = {{0, 0, 1.5, 1, -1, std::numeric_limits<double>::infinity(), 0.5, 0.25, false},
                   {1, 5 * kMinute, 9, 1, -1, 3, 1e-9, 0.0009765625, true}};
  data::TimeStyle style;
  style.form = data::TimeStyle::Form::datetime;
  std::string text;
  const auto sink = [&text](std::string_view piece) { text += piece; };
  write_lines(sink, scored, style, {true, false, false});
  const nlohmann::json first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(first["id"], "a\"b");
  EXPECT_EQ(first["ds"], "1970-01-01T00:00:00");
  EXPECT_EQ(first["score"], 2.0);
  EXPECT_TRUE(first["high"].is_null());
  EXPECT_EQ(first["anomaly"], false);
  text.clear();
  write_lines(sink, scored, style, {false, true, true});
  const nlohmann::json only = nlohmann::json::parse(text);
  EXPECT_EQ(only["score"], 0.000976562);
  EXPECT_EQ(only["anomaly"], true);
  EXPECT_EQ(only["weights"], "synthetic");
}

TEST(Detector, MarksAnomaliesInAFigure) {
  Forecaster forecaster = nano();
  data::TimeSeries series = made("a", 400);
  series.values[300] += 60;
  Options options;
  options.threshold = 1e-4;
  const std::vector<data::TimeSeries> all = {series};
  const plot::Figure figure =
      make_figure(all, score(forecaster, options, all), forecaster.model().info());
  EXPECT_EQ(figure.title, "1 anomaly");
  ASSERT_EQ(figure.panels.size(), 1U);
  EXPECT_EQ(figure.panels[0].marks[300 - 128], 1);
  EXPECT_EQ(figure.panels[0].marks[299 - 128], 0);
  EXPECT_DOUBLE_EQ(figure.panels[0].bands.at(0).level, 0.9999);
}

// The last steps before a block are missing. What comes after is forecast from all that is known,
// not along a path that is drawn, so neighbours in the batch change nothing.
TEST(Detector, AMissingEndOfTheContextIsNoReasonToDraw) {
  Forecaster forecaster = nano();
  const auto patch = static_cast<std::size_t>(forecaster.model().info().patch_size);
  data::TimeSeries series = made("a", 40 * patch);
  for (std::size_t block = 20; block < 40; ++block) {
    for (std::size_t gap = 1; gap <= 1 + block % 3; ++gap) series.mask[block * patch - gap] = 0;
  }
  Options options;
  options.context = 16 * patch;
  const std::vector<Scored> alone = score(forecaster, options, {series});
  const std::vector<Scored> second = score(forecaster, options, {made("b", 30 * patch, 1), series});
  ASSERT_EQ(alone[0].points.size(), second[1].points.size());
  ASSERT_GT(alone[0].points.size(), 10 * patch);
  for (std::size_t i = 0; i < alone[0].points.size(); ++i) {
    EXPECT_EQ(alone[0].points[i].raw, second[1].points[i].raw) << i;
  }
}

TEST(Detector, RefusesASeriesOfOtherTargetsThanBefore) {
  Forecaster forecaster = small();
  Detector detector(forecaster, {});
  data::TimeSeries series = made("a", 64);
  detector.update(std::span(&series, 1));
  series.variates = {"y", "z"};
  series.values.resize(128, 1);
  series.mask.assign(128, 1);
  try {
    detector.update(std::span(&series, 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "changed_series");
  }
}

}  // namespace
}  // namespace toto::detect
