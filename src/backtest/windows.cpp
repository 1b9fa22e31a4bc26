// SPDX-License-Identifier: Apache-2.0
#include "backtest/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/json.h"
#include "data/calendar.h"
#include "data/timestamp.h"

namespace toto::backtest {
namespace {

/// A time of --from or --to. A date stands for its first or its last millisecond.
std::int64_t parse_time(const std::string& text, std::string_view flag, bool end) {
  data::TimeReader reader;
  const auto stamp = reader.read(text);
  if (!stamp) {
    throw Error(ExitStatus::usage, "invalid_time",
                fmt::format("{} is not a timestamp", quote(text)), flag,
                "write a date such as 2012-06-30, or a timestamp as the table has them");
  }
  reader.finish(stamp->time, stamp->time);
  std::int64_t time = reader.convert(stamp->time);
  if (end && reader.style().form == data::TimeStyle::Form::date) time += data::kDayMs - 1;
  return time;
}

struct Range {
  std::size_t begin = 0, end = 0;  // bars
};

Range range_of(const Symbol& symbol, const Options& options) {
  Range range{0, symbol.bars};
  if (!options.from.empty()) {
    const std::int64_t from = parse_time(options.from, "--from", false);
    range.begin = static_cast<std::size_t>(std::ranges::lower_bound(symbol.times, from) -
                                           symbol.times.begin());
  }
  if (!options.to.empty()) {
    const std::int64_t to = parse_time(options.to, "--to", true);
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
    if (enough[begin - 1]) windows.push_back({index, 0, begin - 1});
    if (end < stride) break;
    end -= stride;
  }
  if (windows.empty()) {
    throw Error(ExitStatus::bad_data, "too_short",
                fmt::format("{} bars leave no window of {} after a context of at least {} observed",
                            symbol.bars, options.horizon, least + extra),
                fmt::format("{}: series {}", symbol.file, quote(symbol.name)));
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
