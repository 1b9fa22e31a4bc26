// SPDX-License-Identifier: Apache-2.0
// The forecast table of the command line.
#include "cli/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "core/printable.h"

namespace toto::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TableSeries series(std::string name, std::size_t steps, double level = 100.0) {
  TableSeries s;
  s.name = std::move(name);
  for (std::size_t i = 0; i < steps; ++i) {
    s.times.push_back(fmt::format("2024-01-{:02}", i + 1));
    s.centre.push_back(level + static_cast<double>(i));
    s.lower.push_back(s.centre.back() - 1.25);
    s.upper.push_back(s.centre.back() + 10.5);
  }
  return s;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

TEST(Table, AlignsColumns) {
  TableSeries s = series("sales", 3, 1000);
  s.upper[2] = 12345.5;
  s.lower[0] = -7;
  EXPECT_EQ(forecast_table(std::vector{s}),
            "sales\n"
            "  time          median   80 % interval\n"
            "  2024-01-01   1,000.0      -7.0 \u2026  1,010.5\n"
            "  2024-01-02   1,001.0     999.8 \u2026  1,011.5\n"
            "  2024-01-03   1,002.0   1,000.8 \u2026 12,345.5\n");
}

TEST(Table, LeavesOutTheMiddle) {
  const std::string text = forecast_table(std::vector{series("a", 30)});
  const std::vector<std::string> all = lines(text);
  EXPECT_EQ(all.size(), 2U + 12U + 1U);
  EXPECT_THAT(all[11], HasSubstr("2024-01-10"));
  EXPECT_EQ(all[12], "  \u2026 18 more");
  EXPECT_THAT(all[13], HasSubstr("2024-01-29"));
  EXPECT_THAT(all[14], HasSubstr("2024-01-30"));
  EXPECT_THAT(forecast_table(std::vector{series("a", 12)}), Not(HasSubstr("more")));
}

TEST(Table, CountsTheSeriesItLeavesOut) {
  const std::string text = forecast_table(std::vector<TableSeries>(500, series("a", 30)));
  EXPECT_THAT(text, HasSubstr("and 492 more series"));
  EXPECT_LT(lines(text).size(), 80U);
  EXPECT_EQ(forecast_table({}), "");
}

TEST(Table, RespectsTheWidth) {
  TableSeries s = series("a name of some length, as ids from files tend to be", 20, 1e6);
  s.history.assign(100, 5.0);
  for (const std::size_t width : {30U, 40U, 60U, 80U, 120U}) {
    TableLook look;
    look.width = width;
    for (const std::string& line : lines(forecast_table(std::vector{s}, look))) {
      EXPECT_LE(printable(line).size(), width) << line;
    }
  }
  TableLook narrow;
  narrow.width = 30;
  EXPECT_THAT(forecast_table(std::vector{s}, narrow), Not(HasSubstr("interval")));
}

TEST(Table, WithoutAnInterval) {
  TableSeries s = series("a", 2);
  s.lower.clear();
  s.upper.clear();
  TableLook look;
  look.centre_name = "mean";
  EXPECT_EQ(forecast_table(std::vector{s}, look),
            "a\n  time           mean\n  2024-01-01   100.00\n  2024-01-02   101.00\n");
}

TEST(Table, WritesAnyMagnitude) {
  for (const double level : {0.0, 1e-30, 1e-5, 0.02, 1e14, 1e30, -1e30}) {
    TableSeries s;
    s.name = "x";
    s.times = {"1"};
    s.centre = {level};
    const std::string text = forecast_table(std::vector{s});
    EXPECT_LT(text.size(), 80U);
    std::string written = lines(text)[2].substr(4);
    std::erase(written, ',');
    EXPECT_NEAR(std::stod(written), level, std::abs(level) * 1e-3);
  }
  TableSeries odd = series("odd", 3);
  odd.centre[1] = std::nan("");
  odd.upper[2] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(forecast_table(std::vector{odd}), HasSubstr("nan"));
  EXPECT_THAT(forecast_table(std::vector{odd}), HasSubstr("inf"));
}

TEST(Table, DrawsASparkline) {
  TableSeries s = series("ramp", 4, 8.0);
  for (int i = 0; i < 8; ++i) s.history.push_back(i);
  EXPECT_THAT(forecast_table(std::vector{s}),
              HasSubstr("ramp   \u2581\u2581\u2582\u2583\u2583\u2584\u2585\u2586 \u2192 "
                        "\u2586\u2587\u2588\u2588\n"));
  s.history = {100.0001, 99.9998, 100.0002, 99.9999, 100.0001, 99.9999, 100.0, 100.0002};
  s.centre = {100.0001, 100.0, 99.9999, 100.0};
  const std::string noise = forecast_table(std::vector{s});
  EXPECT_THAT(noise, Not(HasSubstr("\u2581")));  // noise of a millionth does not leap
  EXPECT_THAT(noise, Not(HasSubstr("\u2588")));
  s.history.assign(8, std::nan(""));
  s.centre.assign(4, 3.0);
  EXPECT_THAT(forecast_table(std::vector{s}), HasSubstr("\u2585\u2585\u2585\u2585\n"));
}

TEST(Table, HostileNamesDoNotReachTheTerminal) {
  const std::string text =
      forecast_table(std::vector{series("\x1b]0;title\x07\x1b[2J\xff\n\r<b>", 2)});
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  }
  EXPECT_EQ(lines(text).size(), 4U);
}

}  // namespace
}  // namespace toto::cli
