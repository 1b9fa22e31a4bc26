// SPDX-License-Identifier: Apache-2.0
// Hostile names, degenerate numbers and figures drawn at random.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "core/printable.h"
#include "support/figures.h"
#include "support/in_place.h"

namespace toto::plot {
namespace {

using test::count;
using test::elements;
using test::expect_in_place;
using test::figure_of;
using test::texts;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(OddFigures, HostileTextStaysText) {
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

TEST(OddFigures, LongTextIsCutOrBroken) {
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

TEST(OddFigures, DegenerateData) {
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

TEST(OddFigures, AnyFigureIsInPlace) {
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

TEST(OddFigures, TimesBeyondTheCalendarAreDrawnAsSteps) {
  Figure figure = figure_of(1, 100, 10);
  figure.panels[0].future_time.back() = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(texts(figure), Contains("step"));
  figure.panels[0].history_time.front() = std::numeric_limits<std::int64_t>::min();
  expect_in_place(figure);
}

}  // namespace
}  // namespace toto::plot
