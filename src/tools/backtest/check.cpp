// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "engine/guards.h"
#include "tools/backtest/aggregate.h"

namespace toto::backtest {

void check(const Options& options, const Parameters& parameters) {
  const auto refuse = [](std::string_view code, std::string_view message) {
    throw Error(ExitStatus::usage, code, message);
  };
  if (options.horizon == 0 || options.horizon > 100'000) {
    refuse("invalid_horizon", "expected a horizon of 1 to 100000 bars");
  }
  if (parameters.context == 0 || parameters.context > 10'000'000) {
    refuse("invalid_context", "expected a context of 1 to 10000000 bars");
  }
  if (parameters.samples == 0 || parameters.samples > 65'536) {
    refuse("invalid_samples", "expected 1 to 65536 samples");
  }
  const double scale = parameters.input_scale;
  if (scale != 0 && !(scale >= kMinInputScale && scale <= kMaxInputScale)) {
    refuse("invalid_input_scale", "expected an input scale from 1e-12 to 1e12");
  }
  check_guards(options.guards);
  check_views(options.views, parameters);
  (void)parse_aggregate(parameters.aggregate);
}

void check_views(const Views& views, const Parameters& parameters) {
  if (!views.any()) return;
  const auto refuse = [](std::string_view what, std::string_view remedy) {
    throw Error(ExitStatus::usage, "invalid_views", what, "views", remedy);
  };
  if (parameters.transform != Transform::none) {
    refuse("moves are added up along trajectories, which averages of views have not",
           "leave the transform or the views out");
  }
  const auto trimmed = [](const Aggregate& one) { return one.kind == Aggregate::Kind::trimmed; };
  if (std::ranges::any_of(parse_aggregates(parameters.aggregate), trimmed)) {
    refuse("a trimmed mean is one of the model's mixture, which averages of views have not",
           "another aggregate, such as median");
  }
}

void check_guards(const Guards& guards) {
  ForecastOptions options;
  options.guards = guards;
  check_adaptation(options);
}

void check_prices(const Symbol& symbol, const Parameters& parameters) {
  if (parameters.transform == Transform::none) return;
  for (std::size_t v = 0; v < symbol.targets.size(); ++v) {
    const auto values = symbol.values_of(v);
    const double offset = symbol.offset_of(v);
    const auto bad =
        std::ranges::find_if(values, [&](float x) { return !(offset + double{x} > 0); });
    if (bad == values.end()) continue;
    const auto at = static_cast<std::size_t>(bad - values.begin());
    throw Error(
        ExitStatus::bad_data, "non_positive_value",
        fmt::format("{} is {} at {}, which has no {}", symbol.targets[v],
                    static_cast<float>(offset + double{*bad}),
                    data::format_time(symbol.times[at], symbol.style), word(parameters.transform)),
        fmt::format("{}: series {}", symbol.file, quote(symbol.name)),
        "mend the row, or use --transform none");
  }
}

void require_finite(std::span<const float> values, const std::string& where) {
  if (std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) return;
  throw Error(ExitStatus::bad_data, "nonfinite_forecast",
              "the forecast is beyond the float32 range in the units of the data", where,
              "use an input scale nearer to 1, or another transform");
}

void fail_no_windows(const std::vector<data::SeriesError>& errors) {
  if (errors.empty()) {
    throw Error(ExitStatus::bad_data, "no_windows", "there is no symbol to evaluate");
  }
  std::string all = fmt::format("none of {} symbols has a window to forecast", errors.size());
  for (std::size_t i = 0; i < errors.size(); ++i) {
    all.append(i == 0 ? ": " : "; ").append(errors[i].error.what());
  }
  throw Error(ExitStatus::bad_data, "no_windows", all);
}

}  // namespace toto::backtest
