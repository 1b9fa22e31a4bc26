// SPDX-License-Identifier: Apache-2.0
#include "server/time_axis.h"

#include <gtest/gtest.h>

#include "toto/error.hpp"

namespace toto::server {
namespace {

std::string again(std::string_view text) {
  const auto time = parse_iso_time(text);
  return time ? data::format_time(time->time, time->style) : "none";
}

TEST(TimeAxis, ReadsEveryFormOfIso8601) {
  EXPECT_EQ(again("2026-01-31"), "2026-01-31");
  EXPECT_EQ(again("20260131"), "2026-01-31");
  EXPECT_EQ(again("2026-01"), "2026-01-01");
  EXPECT_EQ(again("2026"), "2026-01-01");
  EXPECT_EQ(again("2026-W05"), "2026-01-26");
  EXPECT_EQ(again("2026-W05-3"), "2026-01-28");
  EXPECT_EQ(again("2026W053"), "2026-01-28");
  EXPECT_EQ(again("2020-W53-7"), "2021-01-03");
  EXPECT_EQ(again("2026-031"), "2026-01-31");
  EXPECT_EQ(again("2026031"), "2026-01-31");
  EXPECT_EQ(again("2024-366"), "2024-12-31");
  EXPECT_EQ(again("2026-01-31T12:34:56"), "2026-01-31T12:34:56");
  EXPECT_EQ(again("2026-01-31 12:34"), "2026-01-31T12:34");
  EXPECT_EQ(again("2026-01-31T12"), "2026-01-31T12:00");
  EXPECT_EQ(again("20260131T123456Z"), "2026-01-31T12:34:56Z");
  EXPECT_EQ(again("2026-01-31T12:34:56Z"), "2026-01-31T12:34:56Z");
  EXPECT_EQ(again("2026-01-31T12:34:56+01:00"), "2026-01-31T12:34:56+01:00");
  EXPECT_EQ(again("2026-01-31T12:34:56-0530"), "2026-01-31T12:34:56-0530");
  EXPECT_EQ(again("2026-01-31T12:34:56+02"), "2026-01-31T12:34:56+02");
  EXPECT_EQ(again("2026-01-31T12:34:56.125Z"), "2026-01-31T12:34:56.125Z");
  EXPECT_EQ(again("2026-01-31T12:34:56,5"), "2026-01-31T12:34:56.5");
  EXPECT_EQ(again("2026-01-31T12:30.5"), "2026-01-31T12:30:30");
  EXPECT_EQ(again("2026-01-31T24:00"), "2026-02-01T00:00");
}

TEST(TimeAxis, RefusesWhatIsNone) {
  for (const char* text :
       {"", "x", "2026-13", "2026-02-30", "2026-W54", "2025-W53", "2026-000", "2025-366",
        "26-01-01", "2026-01-31T", "2026-01-31T25", "2026-01-31T24:01", "2026-01-31T12:60",
        "2026-01-31T12:00+25", "2026-01-31T12:00:00.", "2026-01-31T12:00Zx", "0000-01-01",
        "2026-1-1", "1767225600"}) {
    EXPECT_EQ(again(text), "none") << text;
  }
}

std::string at(const char* start, const char* frequency, std::size_t step) {
  return make_axis(start, frequency, "here").at(step);
}

TEST(TimeAxis, StepsInEveryFrequency) {
  EXPECT_EQ(at("2026-01-01T00:00:00Z", "second", 61), "2026-01-01T00:01:01Z");
  EXPECT_EQ(at("2026-01-01T00:00Z", "S", 61), "2026-01-01T00:01:01Z");
  EXPECT_EQ(at("2026-01-01T00:00", "T", 61), "2026-01-01T01:01");
  EXPECT_EQ(at("2026-01-01", "H", 25), "2026-01-02T01:00:00");
  EXPECT_EQ(at("2026-01-01", "15min", 5), "2026-01-01T01:15:00");
  EXPECT_EQ(at("2026-01-01", "D", 31), "2026-02-01");
  EXPECT_EQ(at("2026-01-02", "B", 1), "2026-01-05");
  EXPECT_EQ(at("2026-01-01", "week", 2), "2026-01-15");
  EXPECT_EQ(at("2026-01-31", "month", 1), "2026-02-28");
  EXPECT_EQ(at("2026-01-31", "M", 2), "2026-03-31");
  EXPECT_EQ(at("2026-01-31", "quarter", 1), "2026-04-30");
  EXPECT_EQ(at("2024-02-29", "Y", 1), "2025-02-28");
  EXPECT_EQ(at("2026-01-01T00:00:00", "250ms", 1), "2026-01-01T00:00:00.250");
  // Days are those of the zone's clock.
  EXPECT_EQ(at("2026-01-31T23:30:00-05:00", "month", 1), "2026-02-28T23:30:00-05:00");
}

TEST(TimeAxis, LeavesOutWhatTheContextDoes) {
  TimeAxis axis = make_axis("2026-01-01", "D", "here");
  axis.skip(9);
  EXPECT_EQ(axis.at(1), "2026-01-11");
}

std::string code_of(const char* start, const char* frequency, std::size_t step) {
  try {
    (void)at(start, frequency, step);
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

TEST(TimeAxis, EndsWithTheYear9999) {
  EXPECT_EQ(at("9999-12-30", "D", 1), "9999-12-31");
  EXPECT_EQ(code_of("9999-12-30", "D", 2), "timestamp_overflow");
  EXPECT_EQ(code_of("2026-01-01", "999999week", 1'000'000'000), "timestamp_overflow");
  EXPECT_EQ(code_of("2026-01-01", "999999Y", 1'000'000'000), "timestamp_overflow");
  EXPECT_EQ(code_of("0001-01-01", "B", 1'000'000'000), "timestamp_overflow");
  EXPECT_EQ(code_of("soon", "D", 1), "invalid_timestamp");
  EXPECT_EQ(code_of("2026", "0D", 1), "invalid_frequency");
  EXPECT_EQ(code_of("2026", "fortnight", 1), "invalid_frequency");
}

}  // namespace
}  // namespace toto::server
