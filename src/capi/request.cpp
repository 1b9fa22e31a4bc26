// SPDX-License-Identifier: Apache-2.0
#include "capi/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "capi/guard.h"
#include "capi/structs.h"

namespace toto::capi {
namespace {

/// a * b elements of `bytes` bytes. Throws invalid_series where that is more than memory can be.
std::size_t product(std::size_t a, std::size_t b, std::size_t bytes, std::string_view where) {
  std::size_t count = 0;
  std::size_t all = 0;
  if (!__builtin_mul_overflow(a, b, &count) && !__builtin_mul_overflow(count, bytes, &all) &&
      all <= PTRDIFF_MAX) {
    return count;
  }
  throw Error(ExitStatus::bad_data, "invalid_series",
              fmt::format("expected sizes that fit into memory, found {} times {}", a, b), where);
}

Series series_of(const toto_series& given, std::size_t horizon, const std::string& where) {
  Series s;
  if (given.id != nullptr) s.id = given.id;
  s.variates = std::max<std::size_t>(given.variates, 1);
  s.steps = given.steps;
  const std::size_t cells = product(s.variates, s.steps, sizeof(float), where);
  if (cells > 0) s.values = {&required(given.values, where + ".values"), cells};
  if (given.mask != nullptr) s.mask = {given.mask, cells};
  if (given.num_groups > 0) {
    product(given.num_groups, 1, sizeof(std::int32_t), where + ".num_groups");
    s.groups = {&required(given.groups, where + ".groups"), given.num_groups};
  }
  s.exogenous = given.exogenous;
  if (given.future_exogenous != nullptr) {
    s.future_exogenous = {given.future_exogenous,
                          product(given.exogenous, horizon, sizeof(float), where)};
  }
  return s;
}

template <typename Enum>
Enum choice(std::int32_t given, Enum last, std::string_view where) {
  if (given >= 0 && given <= static_cast<std::int32_t>(last)) return static_cast<Enum>(given);
  refuse("invalid_choice", where,
         fmt::format("expected 0 to {}, found {}", static_cast<std::int32_t>(last), given));
}

static_assert(static_cast<int>(Decode::uncached) == TOTO_DECODE_UNCACHED);
static_assert(static_cast<int>(QuantilesFrom::samples) == TOTO_QUANTILES_FROM_SAMPLES);
static_assert(static_cast<int>(Tails::normal) == TOTO_TAILS_NORMAL);
static_assert(static_cast<int>(Tails::automatic) == TOTO_TAILS_AUTO);
static_assert(static_cast<int>(Align::trim) == TOTO_ALIGN_TRIM);

/// By TOTO_PATHS_*.
constexpr std::array<Paths, 3> kPathsOf = {Paths::automatic, Paths::independent, Paths::coherent};

toto_forecast_options read(const toto_forecast_options* options) {
  if (options == nullptr) return TOTO_FORECAST_OPTIONS_INIT;
  return read_struct<toto_forecast_options>(options, "options");
}

}  // namespace

std::vector<Series> series_of(const toto_series* series, std::size_t count, std::size_t horizon) {
  std::vector<Series> all;
  if (count == 0) return all;
  required(series, "series");
  all.reserve(std::min<std::size_t>(count, 1U << 20));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string where = fmt::format("series[{}]", i);
    all.push_back(series_of(read_element(series, i, where), horizon, where));
  }
  return all;
}

ForecastOptions options_of(const toto_forecast_options* options) {
  const toto_forecast_options given = read(options);
  ForecastOptions own;
  own.horizon = given.horizon;
  own.num_samples = given.num_samples;
  own.seed = given.seed;
  own.mean_only = given.mean_only != 0;
  own.decode = choice(given.decode, Decode::uncached, "options.decode");
  own.quantiles_from =
      choice(given.quantiles_from, QuantilesFrom::samples, "options.quantiles_from");
  own.tails = choice(given.tails, Tails::automatic, "options.tails");
  own.paths = kPathsOf.at(
      static_cast<std::size_t>(choice(given.paths, TOTO_PATHS_COHERENT, "options.paths")));
  if (given.views != nullptr) own.views = parse_views(given.views);
  own.align = choice(given.align, Align::trim, "options.align");
  own.keep_samples = given.keep_samples != 0;
  own.keep_parameters = given.keep_parameters != 0;
  if (given.num_levels > 0) required(given.levels, "options.levels");
  if (given.levels != nullptr) {
    const auto all = std::span(given.levels, given.num_levels);
    own.levels.assign(all.begin(), all.end());
  }
  if (given.progress != nullptr) {
    own.progress = [progress = given.progress, user = given.user](std::size_t done,
                                                                  std::size_t total) {
      return progress(user, done, total) == 0;
    };
  }
  return own;
}

std::vector<WarmupShape> shapes_of(const toto_warmup_shape* shapes, std::size_t count) {
  std::vector<WarmupShape> all;
  if (count == 0) return all;
  required(shapes, "shapes");
  for (std::size_t i = 0; i < count; ++i) {
    const std::string where = fmt::format("shapes[{}]", i);
    const toto_warmup_shape given = read_element(shapes, i, where);
    if (given.context == 0 || given.horizon == 0) {
      refuse("invalid_warmup", where,
             fmt::format("expected a context and a horizon of at least 1 step, found {} and {}",
                         given.context, given.horizon));
    }
    all.push_back({.context = given.context,
                   .horizon = given.horizon,
                   .variates = std::max<std::size_t>(given.variates, 1),
                   .batch = std::max<std::size_t>(given.batch, 1)});
  }
  return all;
}

}  // namespace toto::capi
