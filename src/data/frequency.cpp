// SPDX-License-Identifier: Apache-2.0
#include "data/frequency.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/json.h"
#include "data/calendar.h"

namespace toto::data {
namespace {

struct Word {
  std::string_view word;
  Interval::Unit unit;
  std::int64_t size;  // of one: milliseconds, days or months
  int day = 1;        // of the month
};

constexpr int kLastDay = 31;
constexpr auto kMs = Interval::Unit::milliseconds;
constexpr auto kMonth = Interval::Unit::month;
constexpr auto kWords = std::to_array<Word>({{"ms", kMs, 1},
                                             {"s", kMs, 1'000},
                                             {"sec", kMs, 1'000},
                                             {"min", kMs, 60'000},
                                             {"T", kMs, 60'000},
                                             {"h", kMs, 3'600'000},
                                             {"H", kMs, 3'600'000},
                                             {"d", kMs, kDayMs},
                                             {"D", kMs, kDayMs},
                                             {"w", kMs, 7 * kDayMs},
                                             {"W", kMs, 7 * kDayMs},
                                             {"B", Interval::Unit::business_day, 1},
                                             {"M", kMonth, 1, kLastDay},
                                             {"ME", kMonth, 1, kLastDay},
                                             {"MS", kMonth, 1},
                                             {"Q", kMonth, 3, kLastDay},
                                             {"QE", kMonth, 3, kLastDay},
                                             {"QS", kMonth, 3},
                                             {"Y", kMonth, 12, kLastDay},
                                             {"YE", kMonth, 12, kLastDay},
                                             {"YS", kMonth, 12}});

}  // namespace

Interval parse_frequency(std::string_view text, std::string_view flag) {
  constexpr std::int64_t kMaxCount = 1'000'000;
  std::int64_t count = 1;
  const auto number = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit = text.substr(static_cast<std::size_t>(number.ptr - text.data()));
  const auto word = std::ranges::find(kWords, unit, &Word::word);
  const bool counted = number.ec == std::errc() || number.ptr == text.data();
  if (word == kWords.end() || !counted || count < 1 || count > kMaxCount ||
      (word->unit == Interval::Unit::business_day && count != 1)) {
    throw Error(ExitStatus::usage, "invalid_frequency", quote(text) + " is no step of time", flag,
                "write a number and ms, s, min, h, D, W, B (business days), MS or ME (months), QS, "
                "YS: 5min, 1h, D");
  }
  Interval out;
  out.unit = word->unit;
  out.count = word->unit == Interval::Unit::business_day ? 1 : count * word->size;
  out.day = word->day;
  return out;
}

}  // namespace toto::data
