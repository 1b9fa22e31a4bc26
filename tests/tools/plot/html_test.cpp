// SPDX-License-Identifier: Apache-2.0
// The page: self-contained, safe against names, and with the right numbers behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "support/figures.h"
#include "support/xml.h"
#include "tools/plot/drawing.h"

namespace toto::plot {
namespace {

using test::figure_of;
using test::wave;
using ::testing::HasSubstr;
using ::testing::Not;

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return {};
  const std::size_t to = text.find(end, from + begin.size());
  return text.substr(from + begin.size(), to - from - begin.size());
}

std::string data_text(const std::string& page) {
  return between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
}

nlohmann::json data_of(const Figure& figure) {
  return nlohmann::json::parse(data_text(to_html(figure)));
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Html, OpensWithoutANetwork) {
  const std::string page = to_html(figure_of(3, 200, 24));
  for (const char* part :
       {"src=", "href", "url(", "@import", "fetch(", "XMLHttpRequest", "import("}) {
    EXPECT_THAT(page, Not(HasSubstr(part)));
  }
  // The only addresses are names of the SVG namespace.
  EXPECT_EQ(occurrences(page, "http"), occurrences(page, "http://www.w3.org/2000/svg"));
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
}

TEST(Html, HoldsTheSameDrawingAsTheImage) {
  const Figure figure = figure_of(3, 200, 24);
  const std::string drawing = draw(figure).content;
  EXPECT_THAT(to_html(figure), HasSubstr(drawing));
  EXPECT_THAT(to_svg(figure), HasSubstr(drawing));
}

/// On a telephone the page shows a drawing of 360 px, whose text is not made smaller.
TEST(Html, HasADrawingForNarrowWindows) {
  for (const std::size_t panels : {1, 3, 8}) {
    Figure figure = figure_of(panels, 200, 24);
    figure.subtitle = "A subtitle that is longer than a telephone is wide, and so goes on below";
    const std::string page = to_html(figure);
    EXPECT_THAT(page, HasSubstr("@media (max-width:599px){.wide{display:none}"));
    EXPECT_THAT(page, HasSubstr(".narrow{display:none}"));
    const std::string narrow = between(page, "class=\"narrow\" ", "</svg>");
    EXPECT_THAT(narrow, HasSubstr("width=\"360\""));
    EXPECT_EQ(occurrences(page, "<svg "), 2U);
    const nlohmann::json data = data_of(figure);
    ASSERT_EQ(data.size(), panels);
    double below = 0;
    for (const auto& panel : data) {  // one below the other, inside the width
      const auto n = panel.at("n").get<std::vector<double>>();
      EXPECT_GE(n[0], 24);
      EXPECT_LE(n[2], 360 - 24 + 1e-9);
      EXPECT_GT(n[2] - n[0], 220);
      EXPECT_GT(n[1], below);
      below = n[3];
    }
    // Text is 11 px or more, and what is not anchored at its end ends inside.
    std::size_t texts = 0;
    for (std::size_t at = narrow.find("<text "); at != std::string::npos;
         at = narrow.find("<text ", at + 1)) {
      const std::string text = narrow.substr(at, narrow.find("</text>", at) - at);
      EXPECT_GE(std::stod(between(text, "font-size=\"", "\"")), 10) << text;
      ++texts;
    }
    EXPECT_GT(texts, 10U);
  }
}

TEST(Html, TheSameFigureGivesTheSameBytes) {
  EXPECT_EQ(to_html(figure_of(5, 100, 24)), to_html(figure_of(5, 100, 24)));
}

TEST(Html, NamesCannotBecomeMarkupOrScript) {
  Figure figure = figure_of(2, 50, 5);
  const std::string hostile = "</script><script>alert(1)</script></title><img onerror=x>\x01\xff";
  figure.title = figure.subtitle = figure.footnote = hostile;
  for (Panel& panel : figure.panels) panel.name = panel.y_label = hostile;
  const std::string page = to_html(figure);
  EXPECT_EQ(occurrences(page, "<script"), 2U);
  EXPECT_EQ(occurrences(page, "</script>"), 2U);
  EXPECT_EQ(occurrences(page, "</title>"), 1U);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(data_text(page), Not(HasSubstr("alert")));
  const std::string svg = "<svg " + between(page, "<svg ", "</svg>") + "</svg>";
  EXPECT_FALSE(test::parse_xml(svg).empty());
}

TEST(Html, TheReadoutHasTheNumbersOfEveryStep) {
  Figure figure = figure_of(1, 100, 10);
  Panel& panel = figure.panels[0];
  panel.mean = panel.median;
  panel.observed.assign(100, 1);
  panel.observed[99] = 0;
  const nlohmann::json data = data_of(figure);
  ASSERT_EQ(data.size(), 1U);
  const auto& p = data[0];
  ASSERT_EQ(p["h"].size(), 40U);
  ASSERT_EQ(p["m"].size(), 10U);
  ASSERT_EQ(p["x"].size(), 50U);
  ASSERT_EQ(p["t"].size(), 50U);
  EXPECT_EQ(p["s"], 2);
  EXPECT_EQ(p["f"], nlohmann::json::array({39}));
  std::int64_t time = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    time += p["t"][i].get<std::int64_t>();
    EXPECT_EQ(time, i < 40 ? panel.history_time[60 + i] : panel.future_time[i - 40]);
  }
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_NEAR(p["h"][i].get<double>(), panel.history[60 + i], 1e-3);
  }
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(p["m"][i].get<double>(), panel.median[i], 1e-3);
    EXPECT_NEAR(p["e"][i].get<double>(), panel.mean[i], 1e-3);
    EXPECT_NEAR(p["b"][1][1][i].get<double>(), panel.bands[1].lower[i], 1e-3);
    EXPECT_NEAR(p["b"][1][2][i].get<double>(), panel.bands[1].upper[i], 1e-3);
  }
  EXPECT_EQ(p["b"][1][0], "80 %");
  EXPECT_TRUE(p["a"].empty());
}

TEST(Html, TheReadoutOfDenseDataKeepsTheLastStep) {
  const Figure figure = figure_of(1, 40'000, 10'000);
  const nlohmann::json p = data_of(figure)[0];
  EXPECT_LT(p["x"].size(), 700U);
  EXPECT_NEAR(p["m"].back().get<double>(), figure.panels[0].median.back(), 1e-3);
  EXPECT_NEAR(p["h"].back().get<double>(), figure.panels[0].history.back(), 1e-3);
}

TEST(Html, ExtremeNumbersAreStillJson) {
  Figure figure;
  Panel panel = wave("x", 20, 3, false);
  for (double& value : panel.history) value *= 1e-30;
  panel.history[5] = std::nan("");
  panel.median = {1e-30, 2e-30, std::nan("")};
  panel.bands = {{0.8, {-1e30, 0, 0}, {1e-300, 1e-31, 1e30}}};
  figure.panels = {panel};
  const nlohmann::json p = data_of(figure)[0];
  EXPECT_TRUE(p["h"][5].is_null());
  EXPECT_NEAR(p["m"][1].get<double>(), 2e-30, 1e-34);
  EXPECT_EQ(p["b"][0][1][0].get<double>(), -1e30);
  // Infinity is written as a number that JavaScript reads as infinity.
  figure.panels[0].bands[0].upper[0] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(data_text(to_html(figure)), HasSubstr("[1e999,"));
}

}  // namespace
}  // namespace toto::plot
