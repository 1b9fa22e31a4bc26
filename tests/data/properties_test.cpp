// SPDX-License-Identifier: Apache-2.0
// What must not matter: how a table is written, in which order its series come, what else is in it.
#include <gmock/gmock.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <random>

#include "read.h"

namespace toto::data {
namespace {

void expect_same(const TimeSeries& a, const TimeSeries& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.variates, b.variates);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.mask, b.mask);
  EXPECT_EQ(a.times, b.times);
  EXPECT_EQ(a.style, b.style);
  EXPECT_EQ(a.interval, b.interval);
}

std::string number_text(float value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

struct Row {
  std::string id, time, value;
};

/// Series with gaps and missing values, one after the other.
std::vector<Row> random_rows(std::mt19937& random) {
  std::vector<Row> rows;
  const TimeStyle date{.form = TimeStyle::Form::date};
  for (const std::string id : {"a", "b, \"c\"", "d\nd", "e"}) {
    const auto length = static_cast<int>(3 + random() % 40);
    std::int64_t day = static_cast<std::int64_t>(random() % 20000);
    for (int i = 0; i < length; ++i) {
      day += 1 + (random() % 10 == 0 ? 1 : 0);
      const float value = static_cast<float>(random() % 100000) / 7.0F - 5000.0F;
      rows.push_back(
          {id, format_time(day * 86'400'000, date), random() % 8 == 0 ? "" : number_text(value)});
    }
  }
  return rows;
}

std::string quoted(const std::string& field) {
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string write(const std::vector<Row>& rows, char delimiter = ',',
                  const std::string& line_end = "\n", bool quote_all = false) {
  const auto field = [&](const std::string& text) {
    return quote_all || text.find_first_of(",;\t\"\n") != text.npos ? quoted(text) : text;
  };
  const std::string d(1, delimiter);
  std::string text = field("unique_id") + d + field("ds") + d + field("y") + line_end;
  for (const Row& row : rows) {
    text += field(row.id) + d + field(row.time) + d + field(row.value) + line_end;
  }
  return text;
}

std::map<std::string, TimeSeries> by_id(const Dataset& data) {
  std::map<std::string, TimeSeries> out;
  for (const TimeSeries& series : data.series) out.emplace(series.id, series);
  return out;
}

TEST(Properties, TheWritingDoesNotMatter) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Row> rows = random_rows(random);
    const Dataset plain = read(write(rows));
    for (const std::string& text :
         {write(rows, ';'), write(rows, '\t'), write(rows, ',', "\r\n"), write(rows, ',', "\r"),
          write(rows, ',', "\n", true), write(rows, ';', "\r\n", true),
          "\xEF\xBB\xBF" + write(rows), "\n\n" + write(rows, ',', "\n\n")}) {
      const Dataset other = read(text);
      ASSERT_EQ(other.series.size(), plain.series.size());
      for (std::size_t i = 0; i < plain.series.size(); ++i) {
        expect_same(other.series[i], plain.series[i]);
      }
      EXPECT_EQ(other.errors.size(), plain.errors.size());
    }
  }
}

// Rows of different series in any order, as long as each series is in its own.
TEST(Properties, TheOrderOfSeriesDoesNotMatter) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Row> rows = random_rows(random);
    std::vector<std::string> order;
    std::map<std::string, std::vector<Row>> queues;
    for (const Row& row : rows) {
      order.push_back(row.id);
      queues[row.id].push_back(row);
    }
    std::ranges::shuffle(order, random);
    std::map<std::string, std::size_t> next;
    std::vector<Row> mixed;
    for (const std::string& id : order) mixed.push_back(queues[id][next[id]++]);

    const auto expected = by_id(read(write(rows)));
    const auto found = by_id(read(write(mixed)));
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [id, series] : expected) expect_same(found.at(id), series);
  }
}

TEST(Properties, OtherSeriesDoNotMatter) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Row> rows = random_rows(random);
    const auto all = by_id(read(write(rows)));
    for (const auto& [id, series] : all) {
      std::vector<Row> own;
      std::ranges::copy_if(rows, std::back_inserter(own),
                           [&id = id](const Row& r) { return r.id == id; });
      expect_same(read(write(own)).series.at(0), series);
    }
  }
}

// What was read and is written as a table again reads the same.
TEST(Properties, ReadingWhatWasWrittenGivesTheSame) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const Dataset first = read(write(random_rows(random)));
    std::vector<Row> rows;
    for (const TimeSeries& series : first.series) {
      for (std::size_t t = 0; t < series.steps; ++t) {
        rows.push_back({series.id, format_time(series.times[t], series.style),
                        series.mask[t] != 0 ? number_text(series.values[t]) : "null"});
      }
    }
    const Dataset second = read(write(rows));
    ASSERT_EQ(second.series.size(), first.series.size());
    for (std::size_t i = 0; i < first.series.size(); ++i) {
      // Gaps are steps now, so rows that were consecutive for their number of gaps stay so.
      expect_same(second.series[i], first.series[i]);
    }
  }
}

TEST(Properties, WideAndLongAgree) {
  const Dataset wide = read("ds,a,b\n2020-01-01,1,\n2020-01-02,,5\n2020-01-03,3,6\n");
  const Dataset tall = read(
      "unique_id,ds,y\na,2020-01-01,1\nb,2020-01-01,\na,2020-01-02,\nb,2020-01-02,5\n"
      "a,2020-01-03,3\nb,2020-01-03,6\n");
  ASSERT_EQ(wide.series.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(wide.series[i].id, tall.series[i].id);
    EXPECT_EQ(wide.series[i].values, tall.series[i].values);
    EXPECT_EQ(wide.series[i].mask, tall.series[i].mask);
    EXPECT_EQ(wide.series[i].times, tall.series[i].times);
  }
}

}  // namespace
}  // namespace toto::data
