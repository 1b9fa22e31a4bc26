// SPDX-License-Identifier: Apache-2.0
#include "cli/forecast_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/json.h"

namespace toto::cli {
namespace {

using data::TimeSeries;

/// What is to be said of one series; empty: nothing.
using Say = std::function<std::string(const TimeSeries& series, const Forecast& forecast)>;

std::string steps(std::size_t count) {
  return fmt::format("{} step{}", count, count == 1 ? "" : "s");
}

std::string why_left_out(std::string_view views) {
  std::string text;
  const auto add = [&](std::string_view word, std::string_view why) {
    if (views.find(word) == std::string_view::npos) return;
    text += fmt::format("{}{}", text.empty() ? "" : "; ", why);
  };
  add("log", "log: a value is 0 or less");
  add("season", "season: none is found");
  add("context", "context: too few values there");
  return text;
}

std::size_t observed(const TimeSeries& series) {
  std::size_t least = series.steps;
  for (std::size_t v = 0; v < series.targets(); ++v) {
    const auto row = std::span(series.mask).subspan(v * series.steps, series.steps);
    least = std::min(least, static_cast<std::size_t>(std::ranges::count(row, 1)));
  }
  return least;
}

std::string history_left_out(const TimeSeries& series, const Forecast& forecast) {
  if (series.cut == 0) return {};
  const std::size_t seen = series.steps - forecast.applied.missing_end;
  return fmt::format("the model sees the last {} of {} (--context {} shows it all)", seen,
                     steps(seen + series.cut), seen + series.cut);
}

std::string across(const TimeSeries& series, const Forecast& forecast) {
  const std::size_t gap = forecast.applied.missing_end;
  if (gap == 0) return {};
  const std::size_t last = series.steps - 1 - gap;
  const std::string when =
      last < series.times.size() ? " after " + format_time(series.times[last], series.style) : "";
  return fmt::format(
      "no value in the last {}{}: they are forecast too, and the result begins "
      "after them",
      steps(gap), when);
}

std::string bounds_of(const Guards& guards) {
  std::string out;
  if (std::isfinite(guards.min)) out += fmt::format("below {}", guards.min);
  if (std::isfinite(guards.max)) {
    out += fmt::format("{}above {}", out.empty() ? "" : " or ", guards.max);
  }
  return out;
}

}  // namespace

std::vector<std::string> forecast_notes(std::span<const TimeSeries> series,
                                        std::span<const Forecast> forecasts, const Guards& guards,
                                        std::size_t patch, bool one_pass) {
  constexpr std::size_t kLongHorizon = 16;  // patches
  std::vector<std::string> notes;
  const auto tell = [&](const Say& say) {
    std::string first;
    std::size_t count = 0;
    for (std::size_t i = 0; i < series.size(); ++i) {
      const std::string text = say(series[i], forecasts[i]);
      if (text.empty()) continue;
      if (count++ == 0) first = fmt::format("series {}: {}", quote(series[i].id), text);
    }
    if (count == 0) return;
    if (count > 1) first += fmt::format(" (and {} series more)", count - 1);
    notes.push_back(std::move(first));
  };
  tell(history_left_out);
  tell([&](const TimeSeries& s, const Forecast&) {
    const std::size_t count = observed(s);
    return count >= patch ? std::string()
                          : fmt::format(
                                "only {} observed, fewer than the model's patch of {}: "
                                "expect little of the forecast",
                                count == 1 ? "1 value" : fmt::format("{} values", count), patch);
  });
  tell(across);
  tell([&](const TimeSeries& s, const Forecast& f) {
    const std::size_t seen = s.steps - f.applied.missing_end;
    const std::size_t ahead = f.horizon + f.applied.missing_end;
    if (ahead <= kLongHorizon * patch && (ahead <= patch || ahead <= seen)) return std::string();
    const std::string why =
        one_pass ? std::string()
                 : fmt::format(
                       "the model was trained to predict the next {} and feeds on its own "
                       "predictions beyond; ",
                       patch);
    return fmt::format("{} ahead of a context of {}: {}trust the far end little", steps(ahead),
                       seen, why);
  });
  tell([&](const TimeSeries&, const Forecast& f) {
    return f.applied.clamped == 0
               ? std::string()
               : fmt::format(
                     "{} left what the context supports and were kept within {} ranges of "
                     "it (--clamp 0 lets them go)",
                     steps(f.applied.clamped), guards.clamp);
  });
  tell([&](const TimeSeries&, const Forecast& f) {
    return f.applied.bounded == 0 ? std::string()
                                  : fmt::format("{} had values {}, which were moved there",
                                                steps(f.applied.bounded), bounds_of(guards));
  });
  tell([](const TimeSeries&, const Forecast& f) {
    return f.applied.filled == 0
               ? std::string()
               : fmt::format("{} in gaps hold what the model forecasts", steps(f.applied.filled));
  });
  tell([](const TimeSeries&, const Forecast& f) {
    const std::string& left = f.applied.views_left_out;
    return left.empty() ? std::string() : fmt::format("{} left out ({})", left, why_left_out(left));
  });
  std::size_t passes = 1;
  for (const Forecast& f : forecasts) passes = std::max(passes, f.applied.passes);
  if (passes > 1) notes.push_back(fmt::format("{} passes of the model, averaged", passes));
  if (guards.integer) {
    notes.emplace_back("medians, quantiles and samples are rounded to whole numbers");
  }
  return notes;
}

}  // namespace toto::cli
