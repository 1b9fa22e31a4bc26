// SPDX-License-Identifier: Apache-2.0
// The memory that reading takes, beside the size of the file.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "support/test_files.h"
#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

#ifndef TOTO_SANITIZED  // whose own memory would be counted

constexpr std::size_t kSize = std::size_t{24} << 20;  // so that what the process has does not count

/// A line of /proc/self/status, in bytes; 0 where there is none.
std::size_t status(const std::string& name) {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) return std::stoul(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

/// Lets the kernel count the peak anew; false where it does not.
bool reset_peak() {
  std::ofstream to("/proc/self/clear_refs");
  to << 5 << std::flush;
  return to.good();
}

using Row = std::function<std::string(std::size_t)>;

std::string made(const std::string& head, const Row& row, const std::string& between = "",
                 const std::string& tail = "") {
  std::string text = head;
  text.reserve(kSize + 4096);
  for (std::size_t i = 0; text.size() < kSize; ++i) {
    if (i > 0) text += between;
    text += row(i);
  }
  return text + tail;
}

std::string value(std::size_t i) { return fmt::format("{}.{}", i * 7919 % 900 + 100, i % 90 + 10); }

std::string second(std::size_t i) { return std::to_string(1'700'000'000 + i * 60); }

/// 2,000 cells of one digit.
std::string row_of_digits(std::size_t i) {
  std::string row = fmt::format("s{}", i);
  for (std::size_t t = 0; t < 2000; ++t) {
    row += ',';
    row += std::to_string(i * 7919 % 97 * t % 10);
  }
  return row + '\n';
}

class ReadingMemory : public testing::Test {
 protected:
  struct Peak {
    double file = 0, above = 0;  // bytes; `above` what the process had
    std::size_t series = 0;
  };

  /// Reads such a file. Nothing where the kernel does not reset the peak.
  std::optional<Peak> measure(const std::string& name, std::string text,
                              const CsvOptions& options = {}) {
    Peak peak;
    peak.file = static_cast<double>(text.size());
    folder_.write(name, text);
    text = {};
    ::malloc_trim(0);  // what was freed for good is not there to be used again
    if (!reset_peak()) return std::nullopt;
    const std::size_t before = status("VmRSS");
    const Dataset data = read_csv(folder_.path(name), options);
    peak.above = static_cast<double>(status("VmHWM") - before);
    peak.series = data.series.size();
    EXPECT_FALSE(data.series.empty());
    EXPECT_GE(peak.above / peak.file, 0.5) << "nothing was measured";
    std::printf("%s: %.2f times the file\n", name.c_str(), peak.above / peak.file);
    return peak;
  }

  void expect_at_most_three_times(const std::string& name, std::string text,
                                  const CsvOptions& options = {}) {
    const auto peak = measure(name, std::move(text), options);
    if (!peak) GTEST_SKIP() << "the kernel does not reset the peak";
    EXPECT_LE(peak->above / peak->file, 3) << name;
  }

  /// Of a table of short series, whose own size counts.
  void expect_little_for_each(const std::string& name, std::string text) {
    const auto peak = measure(name, std::move(text));
    if (!peak) GTEST_SKIP() << "the kernel does not reset the peak";
    const double each = (peak->above - peak->file) / static_cast<double>(peak->series);
    EXPECT_LE(each, kMostForASeries) << name;
  }

  static constexpr double kMostForASeries = 1500;  // bytes, with its few values

 private:
  test::TempFolder folder_;
};

TEST_F(ReadingMemory, OneSeries) {
  expect_at_most_three_times("one.csv", made("ds,y\n", [](std::size_t i) {
                               return fmt::format("{},{}\n", second(i), value(i));
                             }));
}

// Read twice, and kept as differences.
TEST_F(ReadingMemory, ValuesThatNeedAnOffset) {
  expect_at_most_three_times("high.csv", made("ds,y\n", [](std::size_t i) {
                               return fmt::format("{},1234567{}\n", second(i), value(i));
                             }));
}

TEST_F(ReadingMemory, StampsThatWaver) {
  expect_at_most_three_times("wavers.csv", made("ds,y\n", [](std::size_t i) {
                               return fmt::format("{}.{},{}\n", second(i), i * 37 % 900 + 100,
                                                  value(i));
                             }));
}

TEST_F(ReadingMemory, NewestFirst) {
  expect_at_most_three_times("turned.csv", made("ds,y\n", [](std::size_t i) {
                               return fmt::format("{},{}\n", 1'900'000'000 - i * 60, value(i));
                             }));
}

TEST_F(ReadingMemory, Shuffled) {
  constexpr std::size_t kPrime = 2'000'003;  // more than there are rows, so no time is there twice
  expect_at_most_three_times("shuffled.csv", made("ds,y\n", [](std::size_t i) {
                               return fmt::format("{},{}\n", 1'700'000'000 + i * 7919 % kPrime * 60,
                                                  value(i));
                             }));
}

TEST_F(ReadingMemory, ManyColumns) {
  std::string head = "ds";
  for (int v = 0; v < 20; ++v) head += fmt::format(",v{}", v);
  expect_at_most_three_times("wide.csv", made(head + "\n", [](std::size_t i) {
                               std::string row = second(i);
                               for (std::size_t v = 0; v < 20; ++v) row += ',' + value(i + 31 * v);
                               return row + '\n';
                             }));
}

TEST_F(ReadingMemory, ManySeries) {
  expect_at_most_three_times("long.csv", made("unique_id,ds,y\n", [](std::size_t i) {
                               return fmt::format("series{},{},{}\n", i / 500, second(i % 500),
                                                  value(i));
                             }));
}

TEST_F(ReadingMemory, Bars) {
  expect_at_most_three_times(
      "bars.csv", made("timestamp,open,high,low,close,volume\n", [](std::size_t i) {
        return fmt::format("{0},{1},{1},{1},{1},1000\n", second(i), value(i));
      }));
}

TEST_F(ReadingMemory, CountersAsRates) {
  CsvOptions options;
  options.rate = true;
  expect_at_most_three_times(
      "counter_total.csv",
      made("ds,y_total\n",
           [](std::size_t i) { return fmt::format("{},{}\n", second(i), i * 3 + 100'000); }),
      options);
}

TEST_F(ReadingMemory, JsonOfPrometheus) {
  const std::string head =
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":)"
      R"({"__name__":"up"},"values":[)";
  expect_at_most_three_times(
      "query_range.json",
      made(
          head, [](std::size_t i) { return fmt::format("[{},\"{}\"]", second(i), value(i)); }, ",",
          "]}]}}"));
}

TEST_F(ReadingMemory, JsonLines) {
  expect_at_most_three_times("lines.jsonl", made("", [](std::size_t i) {
                               return fmt::format("{{\"ds\":{},\"y\":{}}}\n", second(i), value(i));
                             }));
}

TEST_F(ReadingMemory, SeriesInRows) {
  std::string head = "id";
  for (int t = 1; t <= 800; ++t) head += fmt::format(",d_{}", t);
  expect_at_most_three_times("rows.csv", made(head + "\n", [](std::size_t i) {
                               std::string row = fmt::format("series{}", i);
                               for (std::size_t t = 0; t < 800; ++t) row += ',' + value(i + 31 * t);
                               return row + '\n';
                             }));
}

// A value takes more than its digits, so rows must share their times and give back their text.
TEST_F(ReadingMemory, DigitsInRows) {
  std::string head = "id";
  for (int t = 1; t <= 2000; ++t) head += fmt::format(",d_{}", t);
  expect_at_most_three_times("digits.csv", made(head + "\n", row_of_digits));
}

TEST_F(ReadingMemory, DigitsInRowsNewestFirst) {
  std::string head = "id";
  for (int t = 2000; t > 0; --t) head += fmt::format(",{}-{:02}", 1800 + t / 12, t % 12 + 1);
  expect_at_most_three_times("newest.csv", made(head + "\n", row_of_digits));
}

TEST_F(ReadingMemory, ShortSeriesInRows) {
  std::string head = "id";
  for (int t = 1; t <= 12; ++t) head += fmt::format(",d_{}", t);
  expect_little_for_each("months.csv", made(head + "\n", [](std::size_t i) {
                           std::string row = fmt::format("s{}", i);
                           for (std::size_t t = 0; t < 12; ++t) {
                             row += ',' + std::to_string(1000 + (i * 7919 + t * 31) % 900);
                           }
                           return row + '\n';
                         }));
}

TEST_F(ReadingMemory, ShortSeries) {
  for (const std::size_t rows : {std::size_t{3}, std::size_t{10}}) {
    expect_little_for_each(
        fmt::format("long{}.csv", rows), made("unique_id,ds,y\n", [rows](std::size_t i) {
          return fmt::format("series{},{},{}\n", i / rows, second(i % rows), value(i));
        }));
  }
}

#endif

}  // namespace
}  // namespace toto::data
