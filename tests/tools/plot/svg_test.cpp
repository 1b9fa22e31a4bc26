// SPDX-License-Identifier: Apache-2.0
// Whole figures: well-formed, complete, and everything in its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "support/figures.h"
#include "support/in_place.h"

namespace toto::plot {
namespace {

using test::count;
using test::Element;
using test::elements;
using test::expect_in_place;
using test::figure_of;
using test::texts;
using test::wave;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Svg, AnyNumberOfPanels) {
  for (const std::size_t panels : {0U, 1U, 2U, 3U, 4U, 5U, 7U, 12U, 13U, 24U, 40U}) {
    SCOPED_TRACE(panels);
    const Figure figure = figure_of(panels, 200, 24);
    expect_in_place(figure);
    const auto all = texts(figure);
    for (std::size_t i = 0; i < panels; ++i) {
      EXPECT_EQ(count(all, "series " + std::to_string(i)), 1U);
    }
  }
}

TEST(Svg, PanelsDoNotOverlap) {
  const Figure figure = figure_of(30, 100, 10);
  const Drawing drawing = draw(figure);
  for (std::size_t i = 0; i < drawing.frames.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const Rect& a = drawing.frames[i].cell;
      const Rect& b = drawing.frames[k].cell;
      EXPECT_TRUE(a.left >= b.right || b.left >= a.right || a.top >= b.bottom || b.top >= a.bottom);
    }
  }
}

TEST(Svg, ManySeriesAreCutAndCounted) {
  const Figure figure = figure_of(75, 50, 5);
  const auto all = texts(figure);
  EXPECT_EQ(count(all, "series 59"), 1U);
  EXPECT_EQ(count(all, "series 60"), 0U);
  EXPECT_THAT(all, Contains(HasSubstr("The first 60 of 75 series.")));
}

TEST(Svg, RingsMarkValues) {
  Figure figure = figure_of(1, 50, 10);
  figure.panels[0].actual = figure.panels[0].median;
  figure.panels[0].marks.assign(10, 0);
  EXPECT_EQ(to_svg(figure).find("class=\"x\""), std::string::npos);
  figure.panels[0].marks[3] = 1;
  figure.panels[0].marks[7] = 1;
  const std::string svg = to_svg(figure);
  EXPECT_NE(svg.find(">Anomaly</text>"), std::string::npos);
  const std::size_t at = svg.rfind("class=\"x\"");
  const std::string path = svg.substr(at, svg.find("/>", at) - at);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2);
  figure.panels[0].marks.pop_back();
  EXPECT_THROW((void)to_svg(figure), Error);
}

TEST(Svg, TheSameFigureGivesTheSameBytes) {
  EXPECT_EQ(to_svg(figure_of(7, 333, 48)), to_svg(figure_of(7, 333, 48)));
}

TEST(Svg, TheLegendAppearsOnceAndNamesWhatIsThere) {
  Figure figure = figure_of(4, 100, 10);
  auto all = texts(figure);
  for (const char* entry :
       {"History", "Forecast (median)", "50 % interval", "80 % interval", "95 % interval"}) {
    EXPECT_EQ(count(all, entry), 1U) << entry;
  }
  for (const char* entry : {"Forecast (mean)", "Actual", "Filled in"}) {
    EXPECT_EQ(count(all, entry), 0U) << entry;
  }
  figure.panels[2].mean = figure.panels[2].median;
  figure.panels[2].actual = figure.panels[2].median;
  figure.panels[2].observed.assign(100, 1);
  figure.panels[2].observed[50] = 0;  // not among the last 40, which are shown
  EXPECT_EQ(count(texts(figure), "Filled in"), 0U);
  figure.panels[2].observed[70] = 0;
  figure.panels[1].bands[0].level = 0.999;
  all = texts(figure);
  for (const char* entry : {"Forecast (mean)", "Actual", "Filled in", "99.9 % interval"}) {
    EXPECT_EQ(count(all, entry), 1U) << entry;
  }
}

TEST(Svg, SaysThatWeightsAreSyntheticAndWhichModel) {
  Figure figure = figure_of(1, 100, 10);
  EXPECT_THAT(texts(figure), Not(Contains(HasSubstr("Synthetic"))));
  figure.synthetic = true;
  EXPECT_THAT(texts(figure), Contains(HasSubstr("Synthetic weights")));
  EXPECT_THAT(texts(figure), Contains("Model: test"));
}

TEST(Svg, ShowsAsMuchHistoryAsKeepsTheForecastReadable) {
  Figure figure = figure_of(1, 1000, 50);
  EXPECT_EQ(draw(figure).frames[0].shown, 150U);
  EXPECT_EQ(draw(figure).frames[0].first_shown, 850U);
  figure.panels[0] = wave("short horizon", 1000, 5);
  EXPECT_EQ(draw(figure).frames[0].shown, 40U);
  figure.history_steps = 700;
  EXPECT_EQ(draw(figure).frames[0].shown, 700U);
  figure.history_steps = 0;
  EXPECT_EQ(draw(figure).frames[0].shown, 0U);
  expect_in_place(figure);
  figure.history_steps = 5000;
  EXPECT_EQ(draw(figure).frames[0].shown, 1000U);
  figure.history_steps.reset();
  figure.panels[0] = wave("no forecast", 1000, 0);
  EXPECT_EQ(draw(figure).frames[0].shown, 1000U);
  expect_in_place(figure);
}

TEST(Svg, TheForecastContinuesTheHistory) {
  const Figure figure = figure_of(1, 100, 10);
  const Drawing drawing = draw(figure);
  const Frame& frame = drawing.frames[0];
  const double x = frame.axis.x(frame.shown - 1);
  const double y = frame.y(figure.panels[0].history.back());
  std::size_t joined = 0;
  for (const Element& element : elements(figure)) {
    if (element.name != "path" || !element.attributes.contains("d")) continue;
    const std::string& kind = element.attributes.at("class");
    const auto points = test::path_points(element.attributes.at("d"));
    if (kind == "now") {
      EXPECT_NEAR(points[0].x, x, 0.06);
    }
    if ((kind != "m" && kind[0] != 'b') || points.size() < 5) continue;
    EXPECT_NEAR(points[0].x, x, 0.06);
    EXPECT_NEAR(points[0].y, y, 0.06);
    ++joined;
  }
  EXPECT_EQ(joined, 4U);
}

TEST(Svg, BandsAreDrawnWidestFirst) {
  Figure figure = figure_of(1, 100, 10);
  std::reverse(figure.panels[0].bands.begin(), figure.panels[0].bands.end());
  std::vector<std::string> order;
  for (const Element& element : elements(figure)) {
    if (element.name == "path" && element.attributes.at("class")[0] == 'b') {
      order.push_back(element.attributes.at("class"));
    }
  }
  EXPECT_THAT(order, testing::ElementsAre("b0", "b1", "b2"));
}

TEST(Svg, CrossedLimitsArePutInOrder) {
  Figure figure = figure_of(1, 100, 10);
  const std::string straight = to_svg(figure);
  for (Band& band : figure.panels[0].bands) std::swap(band.lower[4], band.upper[4]);
  EXPECT_EQ(to_svg(figure), straight);
}

TEST(Svg, LargeInputsStaySmall) {
  Figure dense = figure_of(12, 60'000, 20'000);
  for (Panel& panel : dense.panels) panel.actual = panel.median;
  EXPECT_LT(to_svg(dense).size(), 200'000U);
  EXPECT_LT(to_html(dense).size(), 350'000U);  // two drawings: for wide and for narrow windows
  expect_in_place(dense);
}

TEST(Svg, SaysThatBandsGoOnBeyondTheEdge) {
  Figure figure = figure_of(1, 100, 10);
  EXPECT_THAT(texts(figure), Not(Contains(HasSubstr("beyond"))));
  figure.panels[0].bands[2].upper[3] = 1e9;
  EXPECT_THAT(texts(figure), Contains(HasSubstr("Intervals that touch the edge")));
}

void expect_invalid(const Panel& panel, const char* message) {
  Figure figure;
  figure.panels = {panel};
  for (const auto& render : {to_svg, to_html}) {
    try {
      (void)render(figure);
      ADD_FAILURE() << "accepted: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "invalid_figure");
      EXPECT_EQ(error.status(), ExitStatus::bad_data);
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
}

TEST(Svg, RejectsWhatDoesNotFitTogether) {
  const Panel good = wave("x", 10, 3);
  Panel bad = good;
  bad.history_time.pop_back();
  expect_invalid(bad, "timestamps are given for some steps");
  bad = good;
  bad.future_time.clear();
  expect_invalid(bad, "timestamps are given for some steps");
  bad = good;
  bad.history_time[4] = bad.history_time[5];
  expect_invalid(bad, "timestamps do not increase");
  bad = good;
  bad.future_time[0] = 0;
  expect_invalid(bad, "timestamps do not increase");
  bad = good;
  bad.median.push_back(1);
  expect_invalid(bad, "3");
  bad = good;
  bad.actual = {1, 2};
  expect_invalid(bad, "parts of the forecast have 3 and 2 steps");
  bad = good;
  bad.bands[0].lower.pop_back();
  expect_invalid(bad, "limits of two lengths");
  bad = good;
  bad.bands[0].level = 80;
  expect_invalid(bad, "not in (0, 1)");
  bad = good;
  bad.bands[0].level = kNaN;
  expect_invalid(bad, "not in (0, 1)");
  bad = good;
  bad.observed = {1, 0};
  expect_invalid(bad, "10 values and 2 marks");
}

}  // namespace
}  // namespace toto::plot
