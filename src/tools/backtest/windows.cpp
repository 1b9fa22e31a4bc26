// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>

#include "core/json.h"
#include "data/calendar.h"
#include "data/interval.h"
#include "data/timestamp.h"

namespace toto::backtest {
namespace {

/// How long what is written lasts beyond its first millisecond: a minute, a day, a month, a year.
std::int64_t rest_of(std::int64_t time, const data::TimeStyle& style) {
  using Form = data::TimeStyle::Form;
  if (style.form == Form::datetime && !style.seconds) return 60'000 - 1;
  if (style.form == Form::datetime && style.fraction_digits == 0) return 1'000 - 1;
  if (style.form == Form::date) return data::kDayMs - 1;
  if (style.form != Form::month && style.form != Form::year) return 0;
  data::Interval period;
  period.unit = data::Interval::Unit::month;
  period.count = style.form == Form::year ? 12 : 1;
  return data::advance(time, period, 1) - time - 1;
}

/// A time of --from or --to: the first or the last millisecond of what is written. A table whose
/// time is an index has no others.
std::int64_t parse_time(const std::string& text, const data::TimeStyle& table,
                        std::string_view flag, bool end) {
  if (table.form == data::TimeStyle::Form::index) {
    std::int64_t row = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), row);
    if (error == std::errc() && at == text.data() + text.size()) return row;
    throw Error(ExitStatus::usage, "invalid_time",
                fmt::format("{} is not a whole number, as the times of the table are", quote(text)),
                flag);
  }
  data::TimeReader reader;
  const auto stamp = reader.read(text);
  if (!stamp) {
    throw Error(ExitStatus::usage, "invalid_time",
                fmt::format("{} is not a timestamp", quote(text)), flag,
                "write a date such as 2012-06-30, or a timestamp as the table has them");
  }
  reader.finish(stamp->time, stamp->time);
  const std::int64_t time = reader.convert(stamp->time);
  return end ? time + rest_of(time, reader.style()) : time;
}

struct Range {
  std::size_t begin = 0, end = 0;  // bars
};

Range range_of(const Symbol& symbol, const Options& options) {
  Range range{0, symbol.bars};
  if (!options.from.empty()) {
    const std::int64_t from = parse_time(options.from, symbol.style, "--from", false);
    range.begin = static_cast<std::size_t>(std::ranges::lower_bound(symbol.times, from) -
                                           symbol.times.begin());
  }
  if (!options.to.empty()) {
    const std::int64_t to = parse_time(options.to, symbol.style, "--to", true);
    range.end =
        static_cast<std::size_t>(std::ranges::upper_bound(symbol.times, to) - symbol.times.begin());
  }
  return range;
}

/// The first bar at which every target has been observed `least` times within `context` bars, for
/// each bar: whether it has.
std::vector<bool> enough_observed(const Symbol& symbol, std::size_t context, std::size_t least) {
  std::vector<bool> enough(symbol.bars, true);
  for (std::size_t v = 0; v < symbol.targets.size(); ++v) {
    const auto mask = symbol.mask_of(v);
    std::size_t observed = 0;
    for (std::size_t t = 0; t < symbol.bars; ++t) {
      observed += mask[t];
      if (t >= context) observed -= mask[t - context];
      if (observed < least) enough[t] = false;
    }
  }
  return enough;
}

}  // namespace

std::vector<Window> find_windows(const Symbol& symbol, std::size_t index, const Options& options,
                                 const Parameters& parameters, std::size_t least) {
  const Range range = range_of(symbol, options);
  const std::size_t stride = options.stride == 0 ? options.horizon : options.stride;
  const std::size_t extra = parameters.transform == Transform::none ? 0 : 1;
  const std::size_t first_bar = std::max(range.begin, least + extra);  // to be forecast
  const std::vector<bool> enough = enough_observed(symbol, parameters.context, least);
  const std::size_t most =
      options.windows == 0 ? std::numeric_limits<std::size_t>::max() : options.windows;
  std::vector<Window> windows;
  for (std::size_t end = range.end; end >= options.horizon && windows.size() < most;) {
    const std::size_t begin = end - options.horizon;
    if (begin < first_bar || begin == 0) break;
    // One step ahead every bar has a context of its own.
    const std::size_t contexts = options.rolling == Rolling::one_step ? options.horizon : 1;
    const auto origin = enough.begin() + static_cast<std::ptrdiff_t>(begin - 1);
    if (std::all_of(origin, origin + static_cast<std::ptrdiff_t>(contexts), std::identity())) {
      windows.push_back({index, 0, begin - 1});
    }
    if (end < stride) break;
    end -= stride;
  }
  if (windows.empty()) {
    const std::size_t bars = range.end > range.begin ? range.end - range.begin : 0;
    const std::string between = bars == symbol.bars
                                    ? std::string()
                                    : fmt::format(", {} of them between --from and --to,", bars);
    throw Error(
        ExitStatus::bad_data, "too_short",
        fmt::format("{} bars{} leave no window of {} after a context of at least {} observed",
                    symbol.bars, between, options.horizon, least + extra),
        fmt::format("{}: series {}", symbol.file, quote(symbol.name)),
        bars < options.horizon && bars < symbol.bars ? "mend --from or --to" : "");
  }
  std::ranges::reverse(windows);
  for (std::size_t i = 0; i < windows.size(); ++i) windows[i].number = i;
  return windows;
}

std::vector<Request> requests_of(const Window& window, const Symbol& symbol, const Options& options,
                                 const Parameters& parameters) {
  const std::size_t longest =
      parameters.context + (parameters.transform == Transform::none ? 0 : 1);
  const bool rolling = options.rolling == Rolling::one_step;
  std::vector<Request> requests;
  for (std::size_t v = 0; v < (options.joint ? 1 : symbol.targets.size()); ++v) {
    for (std::size_t h = 0; h < (rolling ? options.horizon : 1); ++h) {
      const std::size_t last = window.origin + h;
      requests.push_back(
          {window.symbol, v, last, std::min(longest, last + 1), rolling ? 1 : options.horizon});
    }
  }
  return requests;
}

}  // namespace toto::backtest
