// SPDX-License-Identifier: Apache-2.0
// Calendars of markets: a file, and the times that follow from it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "data/sessions.h"
#include "toto/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace toto::data;
  try {
    TimeSeries series;
    series.calendar = std::make_shared<const Sessions>(
        Sessions::parse({reinterpret_cast<const char*>(data), size}, "fuzz"));
    series.style.form = TimeStyle::Form::datetime;
    series.interval = {Interval::Unit::milliseconds, 3'600'000, 1, true};
    series.times = {1'704'100'000'000};
    const auto times = future_times(series, 50);
    for (std::size_t i = 1; i < times.size(); ++i) {
      if (times[i] <= times[i - 1]) __builtin_trap();
    }
  } catch (const toto::Error&) {
    return 0;
  }
  return 0;
}
