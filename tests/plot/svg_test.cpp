// SPDX-License-Identifier: Apache-2.0
// Whole figures: well-formed, everything in its place, whatever the data and the names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "core/printable.h"
#include "plot/drawing.h"
#include "plot/figures.h"
#include "plot/path_points.h"
#include "plot/text.h"
#include "plot/xml.h"

namespace toto::plot {
namespace {

using test::Element;
using test::figure_of;
using test::wave;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Element> elements(const Figure& figure) { return test::parse_xml(to_svg(figure)); }

std::vector<std::string> texts(const Figure& figure) {
  std::vector<std::string> all;
  for (const Element& element : elements(figure)) {
    if (element.name == "text") all.push_back(element.text);
  }
  return all;
}

std::size_t count(const std::vector<std::string>& all, const std::string& text) {
  return static_cast<std::size_t>(std::count(all.begin(), all.end(), text));
}

bool draws_data(const std::string& classes) {
  const std::string first = classes.substr(0, classes.find(' '));
  return first == "h" || first == "f" || first == "m" || first == "e" || first == "a" ||
         (first.size() > 1 && first[0] == 'b' && first != "bg");
}

// Every data point of a panel lies within its plot (dots and bars of one step stick out sideways by
// half their width), and every text within the figure.
void expect_in_place(const Figure& figure) {
  const Drawing drawing = draw(figure);
  const Grid grid = grid_for(drawing.frames.size());
  const auto levels = band_levels(figure);
  for (const Frame& frame : drawing.frames) {
    for (const Element& element : test::parse_xml(draw_panel(frame, grid, levels))) {
      if (element.name != "path" || !draws_data(element.attributes.at("class"))) continue;
      for (const Point& point : test::path_points(element.attributes.at("d"))) {
        EXPECT_GE(point.x, frame.plot.left - 3.1);
        EXPECT_LE(point.x, frame.plot.right + 3.1);
        EXPECT_GE(point.y, frame.plot.top - 0.06);
        EXPECT_LE(point.y, frame.plot.bottom + 0.06);
      }
    }
  }
  for (const Element& element : elements(figure)) {
    if (element.name != "text") continue;
    const auto& a = element.attributes;
    const double x = std::stod(a.at("x"));
    const std::string& classes = a.at("class");
    const double width = text_width(element.text, std::stod(a.at("font-size")),
                                    classes.find('k') != std::string::npos);
    const double left = classes.ends_with(" r")                   ? x - width
                        : classes.find(" c") != std::string::npos ? x - width / 2
                                                                  : x;
    EXPECT_GE(left, 0) << element.text;
    EXPECT_LE(left + width, drawing.width) << element.text;
    EXPECT_LE(std::stod(a.at("y")), drawing.height) << element.text;
  }
}

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
  EXPECT_LT(to_html(dense).size(), 200'000U);
  expect_in_place(dense);
}

TEST(Svg, HostileTextStaysText) {
  const std::string hostile =
      "<script>alert(1)</script>&amp;\"'\x01\x1b\xff\xc0\xaf]]><!-- \u202e \u6f22 -->";
  Figure figure = figure_of(2, 50, 5);
  figure.title = figure.subtitle = figure.footnote = hostile;
  for (Panel& panel : figure.panels) panel.name = panel.y_label = hostile;
  const std::string svg = to_svg(figure);
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<!--"))));
  const std::string shown = to_utf8(printable(hostile));
  EXPECT_THAT(texts(figure), Contains(shown).Times(7));
  EXPECT_EQ(elements(figure)[0].attributes.at("aria-label"), shown);
  expect_in_place(figure);
}

TEST(Svg, LongTextIsCutOrBroken) {
  Figure figure = figure_of(9, 50, 5);
  figure.title = std::string(5000, 'W');
  figure.subtitle = std::string(300, 'x') + " words " + std::string(3000, 'y');
  figure.footnote = std::string(100'000, 'z');
  for (Panel& panel : figure.panels) {
    panel.name = std::string(100'000, 'M');
    panel.y_label = std::string(1000, 'u');
  }
  expect_in_place(figure);
  EXPECT_LT(to_svg(figure).size(), 100'000U);
}

Panel bare(std::vector<double> history, std::vector<double> median = {}) {
  Panel panel;
  panel.name = "bare";
  panel.history = std::move(history);
  panel.median = std::move(median);
  return panel;
}

TEST(Svg, DegenerateData) {
  Figure figure;
  figure.panels = {Panel{},
                   bare({}),
                   bare({kNaN, kNaN, kNaN}, {kNaN}),
                   bare({5}),
                   bare({5}, {6}),
                   bare({}, {6}),
                   bare({}, {6, 7}),
                   bare(std::vector<double>(100, 3.25), std::vector<double>(10, 3.25)),
                   bare({1e30, 2e30, -1e30}, {1e30}),
                   bare({1e-30, 2e-30}, {-1e-30}),
                   bare({-5, -6, -7}, {-8}),
                   bare({kInf, 1, -kInf, 2, kNaN}, {kInf, -kInf, kNaN, 1}),
                   bare({1e300, -1e300, 1e308}, {1.7e308}),
                   bare({0, 5e-324, 0}, {0})};
  Panel limits = bare({1, 2, 3}, {2, 2, 2});
  limits.bands = {{0.95, {-kInf, kNaN, -1e30}, {kInf, 5, 1e308}},
                  {0.5, {3, 1, kNaN}, {1, 3, kNaN}}};
  figure.panels.push_back(limits);
  limits.median = {kNaN, kNaN, kNaN};
  limits.history.clear();
  figure.panels.push_back(limits);
  for (const Panel& panel : figure.panels) {
    Figure alone;
    alone.panels = {panel};
    expect_in_place(alone);
  }
  expect_in_place(figure);
  EXPECT_THAT(to_svg(figure), AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf "))));
  EXPECT_EQ(count(texts(figure), "no values"), 3U);
}

// Values of all magnitudes, gaps and lengths, drawn at random from a fixed seed.
class RandomPanels {
 public:
  Panel panel() {
    Panel p;
    const std::size_t steps = number(4) == 0 ? number(3) : number(300);
    const std::size_t horizon = number(4) == 0 ? number(3) : number(80);
    scale_ = std::pow(10.0, static_cast<double>(number(41)) - 20);
    odd_ = number(3) == 0;
    p.history = values(steps);
    p.median = values(horizon);
    if (number(3) == 0) p.mean = values(horizon);
    if (number(3) == 0) p.actual = values(horizon);
    for (std::size_t i = number(5); i > 0 && horizon > 0; --i) {
      p.bands.push_back({0.19 * static_cast<double>(i), values(horizon), values(horizon)});
    }
    for (std::size_t i = 0; i < steps && steps % 3 == 0; ++i) p.observed.push_back(number(5) > 0);
    if (number(5) == 0) return p;
    constexpr std::array<std::int64_t, 8> kSteps = {
        1, 250, 1000, 60'000, 3'600'000, 86'400'000, 7 * 86'400'000LL, 365 * 86'400'000LL};
    const std::int64_t step = kSteps[number(kSteps.size())];
    auto time = static_cast<std::int64_t>(number(2'000'000'000)) * 1000 - 1'000'000'000'000;
    for (std::size_t i = 0; i < steps + horizon; ++i) {
      (i < steps ? p.history_time : p.future_time).push_back(time);
      time += number(6) == 0 ? step * static_cast<std::int64_t>(1 + number(9)) : step;
    }
    return p;
  }
  std::size_t number(std::size_t below) { return random_() % below; }

 private:
  std::vector<double> values(std::size_t count) {
    constexpr std::array<double, 8> kOdd = {kNaN, kInf, -kInf, 0, 1e300, -1e308, 1e-300, 5e-324};
    std::vector<double> all;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = scale_ * (static_cast<double>(number(2001)) - 700) / 1000;
      all.push_back(odd_ && number(8) == 0 ? kOdd[number(kOdd.size())] : value);
    }
    return all;
  }

  std::mt19937 random_{20240229};
  double scale_ = 1;
  bool odd_ = false;
};

TEST(Svg, AnyFigureIsInPlace) {
  RandomPanels random;
  for (int i = 0; i < 80; ++i) {
    SCOPED_TRACE(i);
    Figure figure;
    for (std::size_t k = 1 + random.number(8); k > 0; --k) figure.panels.push_back(random.panel());
    expect_in_place(figure);
    EXPECT_FALSE(to_html(figure).empty());
    if (HasFailure()) return;
  }
}

TEST(Svg, SaysThatBandsGoOnBeyondTheEdge) {
  Figure figure = figure_of(1, 100, 10);
  EXPECT_THAT(texts(figure), Not(Contains(HasSubstr("beyond"))));
  figure.panels[0].bands[2].upper[3] = 1e9;
  EXPECT_THAT(texts(figure), Contains(HasSubstr("Intervals that touch the edge")));
}

TEST(Svg, TimesBeyondTheCalendarAreDrawnAsSteps) {
  Figure figure = figure_of(1, 100, 10);
  figure.panels[0].future_time.back() = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(texts(figure), Contains("step"));
  figure.panels[0].history_time.front() = std::numeric_limits<std::int64_t>::min();
  expect_in_place(figure);
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
