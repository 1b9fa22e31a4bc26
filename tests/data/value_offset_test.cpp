// SPDX-License-Identifier: Apache-2.0
// Values that float32 has too few digits for: kept as differences from an exact offset.
#include "data/value_offset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "read.h"

namespace toto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Thousandths of a season with noise, between -2.5 and 2.5.
std::int64_t thousandths(std::size_t t) {
  const double noise = static_cast<double>((t * 7919 + 13) % 101) / 101 - 0.5;
  return std::llround(1000 * (2 * std::sin(static_cast<double>(t) / 5) + noise));
}

/// level + thousandths, in decimal digits that are exact.
std::string digits(std::int64_t level, std::int64_t more) {
  const std::int64_t all = level * 1000 + more;
  const std::int64_t size = all < 0 ? -all : all;
  return fmt::format("{}{}.{:03}", all < 0 ? "-" : "", size / 1000, size % 1000);
}

constexpr std::size_t kRows = 300;

std::string table_at(std::int64_t level) {
  std::string text = "ds,y\n";
  for (std::size_t t = 0; t < kRows; ++t) {
    text += fmt::format("{},{}\n", t, digits(level, thousandths(t)));
  }
  return text;
}

/// How far offset + value may be off what the digits say: a rounding of the difference to float32,
/// and one of the number itself to double.
double allowed(double exact, double difference) {
  return std::ldexp(std::abs(exact), -52) + std::ldexp(std::abs(difference), -24) + 1e-12;
}

class AtALevel : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Levels, AtALevel,
                         testing::Values(1'000'000, 10'000'000, 1'000'000'000, 1'000'000'000'000,
                                         -1'000'000'000));

TEST_P(AtALevel, ValuesKeepTheirDigits) {
  const std::int64_t level = GetParam();
  const TimeSeries series = only(table_at(level));
  ASSERT_EQ(series.value_offsets.size(), 1U);
  const double offset = series.value_offsets[0];
  EXPECT_EQ(offset, std::nearbyint(offset));
  EXPECT_NEAR(offset, static_cast<double>(level), 20);
  for (std::size_t t = 0; t < kRows; ++t) {
    const double exact = static_cast<double>(level) + static_cast<double>(thousandths(t)) / 1000;
    const double value = series.values[t];
    EXPECT_NEAR(offset + value, exact, allowed(exact, value)) << t;
  }
  EXPECT_THAT(series.view().value_offsets, ElementsAre(offset));
}

TEST_P(AtALevel, OneLineSaysIt) {
  const Dataset data = read(table_at(GetParam()));
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("kept as differences from")));
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("--value-offset none")));
}

TEST_P(AtALevel, SwitchedOffTheValuesAreThoseOfFloat) {
  CsvOptions options;
  options.value_offset = false;
  const Dataset data = read(table_at(GetParam()), options);
  EXPECT_THAT(data.series[0].value_offsets, IsEmpty());
  for (std::size_t t = 0; t < kRows; ++t) {
    const double exact = std::stod(digits(GetParam(), thousandths(t)));
    EXPECT_EQ(data.series[0].values[t], static_cast<float>(exact));
  }
  if (std::abs(GetParam()) < 10'000'000) return;  // float32 tells some of them apart
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("leave out --value-offset none")));
}

TEST(ValueOffset, OrdinaryTablesKeepTheirBits) {
  for (const std::int64_t level : {0, 5, 100, 2'000}) {
    const Dataset data = read(table_at(level));
    EXPECT_THAT(data.warnings, IsEmpty());
    EXPECT_THAT(data.series[0].value_offsets, IsEmpty());
    for (std::size_t t = 0; t < kRows; ++t) {
      const double exact = std::stod(digits(level, thousandths(t)));
      EXPECT_EQ(data.series[0].values[t], static_cast<float>(exact));
    }
  }
}

TEST(ValueOffset, WhatFloatHoldsExactlyStaysAsItIs) {
  std::string whole = "ds,y\n";
  std::string constant = "ds,y\n";
  for (int t = 0; t < 40; ++t) {
    whole += fmt::format("{},{}\n", t, 10'000'000 + t % 3);
    constant += fmt::format("{},10000000.3\n", t);
  }
  EXPECT_THAT(only(whole).value_offsets, IsEmpty());
  EXPECT_THAT(only(constant).value_offsets, IsEmpty());
}

// A walk whose whole range float32 tells apart well enough, and its steps not.
TEST(ValueOffset, SmallStepsOfALongWayCount) {
  std::string text = "ds,y\n";
  std::int64_t at = 5'000'000'000'000;  // no time in milliseconds
  for (int t = 0; t < 6000; ++t) {
    at += 100'000 + t * 7919 % 1000;
    text += fmt::format("{},{}\n", t, at);
  }
  const TimeSeries series = only(text);
  ASSERT_EQ(series.value_offsets.size(), 1U);
  // Near the end, where the forecast begins.
  EXPECT_NEAR(series.value_offsets[0], static_cast<double>(at), 1e8);
  EXPECT_NEAR(series.value_offsets[0] + double{series.values.back()}, static_cast<double>(at), 8);
}

TEST(ValueOffset, OneOutlierTakesNothingAway) {
  std::string text = "ds,y\n";
  for (int t = 0; t < 400; ++t) {
    text += fmt::format("{},{}\n", t, t == 399 ? "1000000000000.5" : digits(10, thousandths(3)));
  }
  const TimeSeries series = only(text);
  EXPECT_NEAR(series.offset_of(0) + double{series.values[7]}, 10 + 0.001 * thousandths(3), 1e-5);
}

TEST(ValueOffset, ACodeForMissingStaysMissing) {
  std::string text = table_at(10'000'000);
  text += fmt::format("{},-9999\n{},{}\n", kRows, kRows + 1, digits(10'000'000, 1));
  const TimeSeries series = only(text);
  ASSERT_EQ(series.value_offsets.size(), 1U);
  EXPECT_EQ(series.mask.at(kRows), 0);
  EXPECT_EQ(series.mask.at(kRows + 1), 1);
  EXPECT_NEAR(series.offset_of(0) + double{series.values.back()}, 10'000'000.001, 1e-5);
}

TEST(ValueOffset, EachVariateHasItsOwn) {
  std::string text = "ds,a,b,c\n";
  for (std::size_t t = 0; t < kRows; ++t) {
    text += fmt::format("{},{},{},{}\n", t, digits(10'000'000, thousandths(t)),
                        digits(3, thousandths(t + 9)), digits(1'000'000'000, thousandths(t + 5)));
  }
  CsvOptions options;
  options.joint = true;
  const Dataset data = read(text, options);
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("(and 1 more)")));
  const TimeSeries& series = data.series.at(0);
  ASSERT_EQ(series.value_offsets.size(), 3U);
  EXPECT_NEAR(series.value_offsets[0], 1e7, 20);
  EXPECT_EQ(series.value_offsets[1], 0);
  EXPECT_NEAR(series.value_offsets[2], 1e9, 20);
  EXPECT_EQ(series.values[kRows], static_cast<float>(3 + 0.001 * thousandths(9)));
  EXPECT_EQ(last_steps(series, 10).value_offsets, series.value_offsets);

  const std::vector<TimeSeries> apart = read(text).series;
  EXPECT_NEAR(apart[0].offset_of(0), 1e7, 20);
  EXPECT_THAT(apart[1].value_offsets, IsEmpty());
  EXPECT_NEAR(apart[2].offset_of(0), 1e9, 20);
}

// Rows of two series, one of which needs it, in any order, some twice, some without a value.
TEST(ValueOffset, OfLongTablesInAnyOrder) {
  std::vector<std::string> rows;
  for (std::size_t t = 0; t < kRows; ++t) {
    const bool missing = t % 50 == 17;
    const std::string y = missing ? "" : digits(10'000'000, thousandths(t));
    rows.push_back(fmt::format("high,{},{}\n", 1'700'000'000 + 60 * t, y));
    rows.push_back(fmt::format("low,{},{}\n", 1'700'000'000 + 60 * t, digits(0, thousandths(t))));
  }
  const auto check = [&](const std::vector<std::string>& all) {
    std::string text = "# a comment\nunique_id,ds,y\n";
    for (const std::string& row : all) text += row;
    const Dataset data = read(text);
    ASSERT_EQ(data.series.size(), 2U);
    for (const TimeSeries& series : data.series) {
      EXPECT_EQ(series.value_offsets.empty(), series.id == "low");
      const double level = series.id == "low" ? 0 : 1e7;
      for (std::size_t t = 0; t < kRows; ++t) {
        if (series.mask[t] == 0) continue;
        const double exact = level + 0.001 * static_cast<double>(thousandths(t));
        EXPECT_NEAR(series.offset_of(0) + double{series.values[t]}, exact, 1e-6) << series.id;
      }
    }
  };
  check(rows);
  std::vector<std::string> newest_first(rows.rbegin(), rows.rend());
  check(newest_first);
  std::vector<std::string> shuffled;
  for (std::size_t i = 0; i < rows.size(); ++i) shuffled.push_back(rows[i * 7 % rows.size()]);
  shuffled.push_back(rows[4]);
  check(shuffled);
}

// The text of rows that float32 holds is given back as they are read; the others are read again.
TEST(ValueOffset, OfSeriesInRowsBehindManyThatNeedNone) {
  constexpr std::size_t kExact = 4000;  // of 2.4 MB
  std::string text = "id";
  for (std::size_t t = 1; t <= kRows; ++t) text += fmt::format(",d_{}", t);
  text += '\n';
  const auto add = [&](const std::string& id, const auto& cell) {
    text += id;
    for (std::size_t t = 0; t < kRows; ++t) text.append(",").append(cell(t));
    text += '\n';
  };
  const auto digit = [](std::size_t i, std::size_t t) { return (i * 31 + t * 7) % 10; };
  for (std::size_t i = 0; i < kExact; ++i) {
    add(fmt::format("s{}", i),
        [&](std::size_t t) { return i == 7 && t == 9 ? "-9999" : std::to_string(digit(i, t)); });
  }
  text += "# a comment\n\n";
  add("high", [](std::size_t t) { return digits(10'000'000, thousandths(t)); });
  add("low", [](std::size_t t) { return digits(0, thousandths(t)); });
  add("higher", [](std::size_t t) { return digits(1'000'000'000, thousandths(t)); });
  const Dataset data = read(text);
  ASSERT_EQ(data.series.size(), kExact + 3);
  for (std::size_t i = 0; i < kExact; ++i) {
    const TimeSeries& series = data.series[i];
    ASSERT_EQ(series.id, fmt::format("s{}", i));
    ASSERT_THAT(series.value_offsets, IsEmpty());
    for (std::size_t t = 0; t < kRows; ++t) {
      const bool missing = i == 7 && t == 9;
      ASSERT_EQ(series.mask[t], missing ? 0 : 1) << i << " " << t;
      if (missing) continue;
      ASSERT_EQ(series.values[t], static_cast<float>(digit(i, t))) << i << " " << t;
    }
  }
  const auto check = [&](const TimeSeries& series, const std::string& id, double level) {
    EXPECT_EQ(series.id, id);
    EXPECT_EQ(series.value_offsets.empty(), level == 0);
    for (std::size_t t = 0; t < kRows; ++t) {
      const double exact = level + 0.001 * static_cast<double>(thousandths(t));
      EXPECT_NEAR(series.offset_of(0) + double{series.values[t]}, exact, 1e-6) << id << " " << t;
    }
  };
  check(data.series[kExact], "high", 1e7);
  check(data.series[kExact + 1], "low", 0);
  check(data.series[kExact + 2], "higher", 1e9);
}

TEST(ValueOffset, OfJsonAndDecimalCommas) {
  std::string lines, result, commas = "ds;y\n";
  for (std::size_t t = 0; t < kRows; ++t) {
    const std::string y = digits(10'000'000, thousandths(t));
    lines += fmt::format("{{\"ds\":{},\"y\":{}}}\n", 1'700'000'000 + 60 * t, y);
    result += fmt::format("{}[{},\"{}\"]", t == 0 ? "" : ",", 1'700'000'000 + 60 * t, y);
    std::string comma = y;
    comma[comma.find('.')] = ',';
    commas += fmt::format("{};{}\n", 1'700'000'000 + 60 * t, comma);
  }
  const std::string prometheus =
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":)"
      R"({"__name__":"up"},"values":[)" +
      result + "]}]}}";
  for (const std::string& text : {lines, prometheus, commas}) {
    const TimeSeries series = only(text);
    ASSERT_EQ(series.value_offsets.size(), 1U);
    for (std::size_t t = 0; t < kRows; ++t) {
      EXPECT_NEAR(series.value_offsets[0] + double{series.values[t]},
                  1e7 + 0.001 * static_cast<double>(thousandths(t)), 1e-6);
    }
  }
}

TEST(ValueOffset, MissingAsZeroIsZero) {
  std::string text = table_at(10'000'000) + fmt::format("{},\n", kRows);
  text += fmt::format("{},10000001.5\n", kRows + 1);
  CsvOptions options;
  options.missing = Missing::zero;
  const TimeSeries series = only(text, options);
  EXPECT_EQ(series.mask[kRows], 0);
  EXPECT_EQ(series.value_offsets.at(0) + double{series.values[kRows]}, 0);
}

TEST(ValueOffset, WholeNumbersHaveWholeDifferences) {
  std::string text = "ds,y\n";
  for (int t = 0; t < 300; ++t) text += fmt::format("{},{}\n", t, 987'654'321 + t * 37 % 11);
  const TimeSeries series = only(text);
  ASSERT_EQ(series.value_offsets.size(), 1U);
  for (std::size_t t = 0; t < 300; ++t) {
    EXPECT_EQ(series.value_offsets[0] + double{series.values[t]},
              static_cast<double>(987'654'321 + t * 37 % 11));
  }
}

TEST(ValueOffset, OfRowsThatAreGathered) {
  std::string text = "ds,y\n";
  double sum = 0;
  std::size_t t = 0;
  for (; t < 240; ++t) {
    if (t == 130) continue;  // one row less in the third hour
    if (t >= 60 && t < 120) sum += 1e7 + 0.001 * static_cast<double>(thousandths(t));
    text += fmt::format("{},{}\n", 1'700'006'400 + 60 * t, digits(10'000'000, thousandths(t)));
  }
  CsvOptions options;
  options.resample = "1h:mean";
  const TimeSeries means = only(text, options);
  EXPECT_NEAR(means.offset_of(0) + double{means.values[1]}, sum / 60, 1e-6);
  options.resample = "1h:sum";
  const TimeSeries sums = only(text, options);
  EXPECT_NEAR(sums.offset_of(0) + double{sums.values[1]}, sum, 1e-4);
  EXPECT_NEAR(sums.offset_of(0) + double{sums.values[2]}, 59e7, 200);
  options.resample = "1h:max";
  const TimeSeries most = only(text, options);
  EXPECT_NEAR(most.offset_of(0) + double{most.values[1]}, 1e7 + 2.5, 0.6);
}

TEST(ValueOffset, RatesOfACounterNeedNone) {
  std::string text = "ds,bytes_total\n";
  std::int64_t total = 5'000'000'000'000;  // no time in milliseconds
  for (std::size_t t = 0; t < 100; ++t) {
    text += fmt::format("{},{}\n", 1'700'000'000 + 60 * t, total);
    total += 600 + static_cast<std::int64_t>(t % 7) * 60;
  }
  CsvOptions options;
  options.rate = true;
  const TimeSeries series = only(text, options);
  EXPECT_THAT(series.value_offsets, IsEmpty());
  for (std::size_t t = 0; t < series.steps; ++t) {
    EXPECT_FLOAT_EQ(series.values[t], 10.0F + static_cast<float>(t % 7));
  }
}

CovariateTable covariates(const std::string& text) {
  std::istringstream in(text);
  return read_covariates(in, "future.csv");
}

// One offset for the past and the future of a covariate, wherever it was found.
TEST(ValueOffset, OfCovariatesKnownAhead) {
  std::string main = "ds,y,u\n", bare = "ds,y\n", ahead = "ds,u\n", all = "ds,u\n";
  for (std::size_t t = 0; t < kRows + 20; ++t) {
    const std::string u = digits(1'000'000'000, thousandths(t));
    all += fmt::format("{},{}\n", t, u);
    if (t >= kRows) {
      ahead += fmt::format("{},{}\n", t, u);
      continue;
    }
    main += fmt::format("{},{},{}\n", t, digits(10'000'000, thousandths(t + 3)), u);
    bare += fmt::format("{},{}\n", t, digits(4, thousandths(t + 3)));
  }
  const auto check = [&](const std::string& table, const std::string& future, double level) {
    const CovariateTable known = covariates(future);
    CsvOptions options;
    options.covariates = known.columns;
    Dataset data = read(table, options);
    add_future(data, known, 20, 0);
    ASSERT_EQ(data.series.size(), 1U);
    const TimeSeries& series = data.series[0];
    ASSERT_EQ(series.value_offsets.size(), 2U);
    EXPECT_NEAR(series.value_offsets[0], level, 20);
    EXPECT_NEAR(series.value_offsets[1], 1e9, 20);
    for (std::size_t t = 0; t < kRows + 20; ++t) {
      const float u = t < kRows ? series.values[kRows + t] : series.future_covariates[t - kRows];
      EXPECT_NEAR(series.value_offsets[1] + double{u},
                  1e9 + 0.001 * static_cast<double>(thousandths(t)), 1e-6);
    }
  };
  check(main, ahead, 1e7);
  check(main, all, 1e7);
  check(bare, all, 0);
}

TEST_P(AtALevel, ArraysAreKeptAsTables) {
  const std::string text = table_at(GetParam());
  const TimeSeries series = only(text);
  std::vector<double> values;
  for (std::size_t t = 0; t < kRows; ++t) {
    values.push_back(std::stod(digits(GetParam(), thousandths(t))));
  }
  std::vector<float> kept(kRows);
  EXPECT_EQ(keep_digits(values, {}, kept), series.value_offsets.at(0));
  EXPECT_EQ(kept, series.values);
  // What is not observed counts for nothing.
  std::vector<std::uint8_t> mask(kRows, 1);
  mask[7] = mask[kRows - 1] = 0;
  std::vector<double> holes = values;
  holes[7] = holes[kRows - 1] = std::nan("");
  std::vector<double> garbage = values;
  garbage[7] = 0;
  garbage[kRows - 1] = 1e30;
  std::vector<float> one(kRows);
  std::vector<float> other(kRows);
  EXPECT_EQ(keep_digits(holes, {}, one), keep_digits(garbage, mask, other));
  for (std::size_t t = 0; t < kRows; ++t) {
    EXPECT_TRUE(mask[t] == 0 ? std::isnan(one[t]) : one[t] == other[t]) << t;
  }
}

TEST(ValueOffset, ArraysThatFloatHoldsAreRounded) {
  const std::vector<double> values = {0.1, std::nan(""), 0.3, -7, 1e300, 2.5};
  std::vector<float> kept(values.size());
  EXPECT_EQ(keep_digits(values, {}, kept), 0.0);
  EXPECT_EQ(kept[0], 0.1F);
  EXPECT_TRUE(std::isnan(kept[1]));
  EXPECT_TRUE(std::isinf(kept[4]));
  const std::vector<double> constant(5, 10'000'000.3);
  kept.resize(5);
  EXPECT_EQ(keep_digits(constant, {}, kept), 0.0);
  EXPECT_EQ(keep_digits({}, {}, {}), 0.0);
}

TEST(ValueOffset, AddsNoDigits) {
  EXPECT_EQ(with_offset(1e7, 0.3F), 10'000'000.3);
  EXPECT_EQ(with_offset(-1e7, 0.3F), -9'999'999.7);
  EXPECT_EQ(with_offset(1e12, 12.5F), 1'000'000'000'012.5);
  EXPECT_EQ(with_offset(0, 0.3F), double{0.3F});
  EXPECT_TRUE(std::isnan(with_offset(1e7, std::nanf(""))));
}

TEST(ValueOffset, DifferencesMove) {
  EXPECT_EQ(moved(0.25F, 1e7, 1e7), 0.25F);
  EXPECT_EQ(moved(0.25F, 1e7 + 8, 1e7), 8.25F);
  EXPECT_EQ(moved(1e7F, 0, 1e7), 0.0F);
  EXPECT_TRUE(std::isnan(moved(std::nanf(""), 1, 2)));
}

}  // namespace
}  // namespace toto::data
