// SPDX-License-Identifier: Apache-2.0
// Which views are asked for, which there are of a series, and what does not go with them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/json.h"
#include "core/trace.h"
#include "engine/adapted.h"
#include "engine/observed.h"
#include "engine/views.h"

namespace toto {
namespace {

constexpr std::size_t kLeastPart = 2, kMostParts = 1024;
constexpr std::size_t kLeastObserved = 16;  // of a variate in a shorter context
constexpr std::string_view kShorter = "context/";

[[noreturn]] void refuse(const std::string& message, std::string_view remedy = {}) {
  throw Error(ExitStatus::usage, "invalid_views", message, "views", remedy);
}

std::size_t targets_of(const Series& s) {
  return s.variates - (s.future_exogenous.empty() ? 0 : s.exogenous);
}

bool all_positive(const Series& s) {
  for (std::size_t v = 0; v < targets_of(s); ++v) {
    const double offset = s.value_offsets.empty() ? 0.0 : s.value_offsets[v];
    bool any = false;
    for (std::size_t cell = v * s.steps; cell < (v + 1) * s.steps; ++cell) {
      if (!observed(s, cell)) continue;
      if (!(offset + double{s.values[cell]} > 0)) return false;
      any = true;
    }
    if (!any) return false;
  }
  return true;
}

/// Whether every variate that is forecast has something to go by in the last 1/part.
bool is_enough(const Series& s, std::size_t gap, std::size_t part) {
  const std::size_t steps = (s.steps - gap + part - 1) / part;
  for (std::size_t v = 0; v < targets_of(s); ++v) {
    std::size_t count = 0;
    for (std::size_t t = s.steps - gap - steps; t < s.steps - gap; ++t) {
      count += observed(s, v * s.steps + t) ? 1 : 0;
    }
    if (count < kLeastObserved) return false;
  }
  return true;
}

void check_part(std::size_t part) {
  if (part >= kLeastPart && part <= kMostParts) return;
  refuse(fmt::format("expected context/{} to context/{}, found context/{}", kLeastPart, kMostParts,
                     part));
}

}  // namespace

std::size_t Views::passes() const {
  return 1 + std::size_t{flip} + std::size_t{log} + std::size_t{season} + shorter.size();
}

Views Views::without(const Views& taken) const {
  Views left{flip && !taken.flip, log && !taken.log, {}, season && !taken.season};
  for (const std::size_t part : shorter) {
    const bool has = std::ranges::find(taken.shorter, part) != taken.shorter.end();
    if (!has) left.shorter.push_back(part);
  }
  return left;
}

Views parse_views(std::string_view text) {
  Views views;
  if (text.empty() || text == "none") return views;
  const auto once = [](bool again, std::string_view word) {
    if (again) refuse(fmt::format("expected each view once, found {} twice", quote(word)));
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word == "flip" || word == "log" || word == "season") {
      bool& wanted = word == "flip" ? views.flip : word == "log" ? views.log : views.season;
      once(wanted, word);
      wanted = true;
      continue;
    }
    std::size_t part = 0;
    const char* const last = word.data() + word.size();
    const bool shorter = word.starts_with(kShorter);
    const auto found =
        std::from_chars(word.data() + (shorter ? kShorter.size() : word.size()), last, part);
    if (!shorter || found.ec != std::errc() || found.ptr != last) {
      refuse(fmt::format("expected flip, log, season or context/K, found {}", quote(word)));
    }
    check_part(part);
    once(std::ranges::find(views.shorter, part) != views.shorter.end(), word);
    views.shorter.push_back(part);
  }
  std::ranges::sort(views.shorter);
  return views;
}

std::string to_text(const Views& views) {
  std::string text;
  const auto add = [&](std::string_view word) {
    if (!text.empty()) text += ',';
    text += word;
  };
  if (views.flip) add("flip");
  if (views.log) add("log");
  if (views.season) add("season");
  for (const std::size_t part : views.shorter) add(fmt::format("{}{}", kShorter, part));
  return text;
}

Views views_of(const Series& series, const ForecastOptions& options) {
  Seasons seasons;
  return views_of(series, options, seasons);
}

Views views_of(const Series& series, const ForecastOptions& options, Seasons& seasons) {
  Views taken;
  if (!options.views.any() || !fits(series, options.horizon)) return taken;
  const std::size_t gap = options.across_missing ? missing_end(series) : 0;
  taken.flip = options.views.flip;
  const bool positive = (options.views.log || options.views.season) && all_positive(series);
  taken.log = options.views.log && positive;
  if (options.views.season) {
    const Span span("season");
    find_seasons(series, targets_of(series), positive, seasons);
    taken.season = seasons.any();
  }
  for (const std::size_t part : options.views.shorter) {
    if (is_enough(series, gap, part)) taken.shorter.push_back(part);
  }
  return taken;
}

void check_views(const ForecastOptions& options) {
  const Views& views = options.views;
  if (!views.any()) return;
  for (std::size_t i = 0; i < views.shorter.size(); ++i) {
    check_part(views.shorter[i]);
    if (std::ranges::count(views.shorter, views.shorter[i]) > 1) {
      refuse(fmt::format("expected each view once, found context/{} twice", views.shorter[i]));
    }
  }
  const auto exclude = [](bool asked, std::string_view what) {
    if (!asked) return;
    refuse(fmt::format("views have no {}: they are averages of quantiles", what),
           "leave one of the two out");
  };
  exclude(options.mean_only, "mean mode");
  exclude(options.keep_samples, "trajectories");
  exclude(options.keep_parameters, "parameters");
}

}  // namespace toto
