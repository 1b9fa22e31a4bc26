// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/backtest/cells.h"
#include "tools/backtest/describe.h"

namespace toto::backtest {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxFanCells = 12'000;  // of all windows: about a megabyte
constexpr std::size_t kMaxFanGroups = 60;     // symbols and targets
constexpr std::size_t kMaxFanBars = 250;      // of one window
constexpr std::size_t kMaxTimes = 60;         // points of the error over time
// Of levels(): 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95.
constexpr std::array<std::size_t, 7> kFan = {0, 1, 4, 9, 14, 17, 18};

/// Six digits are finer than any picture.
ordered_json shown(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::stod(fmt::format("{:.6g}", value));
}

/// Of the difference from an offset.
ordered_json shown(double value, double offset) {
  if (offset == 0 || !std::isfinite(value)) return shown(value);
  return offset + std::stod(fmt::format("{:.6g}", value - offset));
}

/// Evenly chosen, the last one always.
std::vector<std::size_t> choose(std::size_t count, std::size_t most) {
  const std::size_t chosen = std::min(count, std::max<std::size_t>(most, 1));
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i <= chosen; ++i) all.push_back(i * count / chosen - 1);
  return all;
}

/// The metrics of one group: its sources, then those of the steps that have any.
ordered_json by_step(std::span<const Metrics> rows, std::size_t horizon, double Metrics::*value) {
  ordered_json all = ordered_json::array();
  for (std::size_t s = 0; s < kSources; ++s) {
    std::vector<double> known(horizon + 1, NAN);
    for (std::size_t i = kSources + s; i < rows.size(); i += kSources) {
      if (rows[i].step <= horizon) known[rows[i].step] = rows[i].*value;
    }
    ordered_json one = ordered_json::array();
    for (const std::size_t step : report_steps(horizon)) one.push_back(shown(known[step]));
    all.push_back(std::move(one));
  }
  return all;
}

/// The cells of a symbol; all of them where it has no name.
std::span<const Cell> cells_named(const Result& result, const std::string& symbol) {
  if (symbol.empty()) return result.cells;
  const auto at = std::ranges::find(result.symbols, symbol, &Symbol::name);
  return cells_of(result, static_cast<std::size_t>(at - result.symbols.begin()));
}

struct Sums {
  std::array<double, kSources> error{};
  double count = 0;
};

/// Mean scaled error by the time of the bar, in at most kMaxTimes pieces.
ordered_json over_time(const Result& result, const Metrics& group) {
  std::map<std::int64_t, Sums> by_time;
  data::TimeStyle style;  // of the first symbol here
  for (const Cell& cell : cells_named(result, group.symbol)) {
    const Symbol& symbol = result.symbols[cell.symbol];
    if (!group.target.empty() && symbol.targets[cell.target] != group.target) continue;
    if (std::isnan(cell.actual) || !(cell.scale > 0)) continue;
    if (by_time.empty()) style = symbol.style;
    Sums& sums = by_time[cell.time];
    for (std::size_t s = 0; s < kSources; ++s) {
      sums.error[s] += std::abs(cell.actual - cell.point(static_cast<Source>(s))) / cell.scale;
    }
    sums.count += 1;
  }
  const std::size_t each = (by_time.size() + kMaxTimes - 1) / kMaxTimes;
  ordered_json times = ordered_json::array();
  ordered_json errors = ordered_json::array(
      {ordered_json::array(), ordered_json::array(), ordered_json::array(), ordered_json::array()});
  for (auto at = by_time.begin(); at != by_time.end();) {
    Sums sums;
    times.push_back(data::format_time(at->first, style));
    for (std::size_t i = 0; i < each && at != by_time.end(); ++i, ++at) {
      sums.count += at->second.count;
      for (std::size_t s = 0; s < kSources; ++s) sums.error[s] += at->second.error[s];
    }
    for (std::size_t s = 0; s < kSources; ++s) {
      errors[s].push_back(shown(sums.error[s] / sums.count));
    }
  }
  return {{"times", times}, {"mase", errors}};
}

/// Bars before a window that are drawn with it.
std::size_t history_of(std::size_t horizon) {
  return std::clamp<std::size_t>(3 * horizon, 20, 120) + 1;
}

ordered_json window_json(std::span<const Cell> cells, const Symbol& symbol, std::size_t target) {
  const double offset = symbol.offset_of(target);
  const std::size_t origin = cells.front().bar - cells.front().step;
  const std::size_t history = std::min(origin + 1, history_of(cells.size()));
  ordered_json before = {{"times", ordered_json::array()}, {"values", ordered_json::array()}};
  for (std::size_t t = origin + 1 - history; t <= origin; ++t) {
    const bool observed = symbol.mask_of(target)[t] != 0;
    const double value = offset + symbol.values_of(target)[t];
    before["times"].push_back(data::format_time(symbol.times[t], symbol.style));
    before["values"].push_back(observed ? shown(value, offset) : ordered_json(nullptr));
  }
  ordered_json actual = ordered_json::array();
  ordered_json point = ordered_json::array();
  ordered_json quantiles = ordered_json::array();
  ordered_json baselines = ordered_json::array();
  for (std::size_t i = 0; i < kFan.size(); ++i) quantiles.push_back(ordered_json::array());
  for (std::size_t b = 0; b + 1 < kSources; ++b) baselines.push_back(ordered_json::array());
  ordered_json times = ordered_json::array();
  for (const std::size_t at : choose(cells.size(), kMaxFanBars)) {
    const Cell& cell = cells[at];
    times.push_back(data::format_time(cell.time, symbol.style));
    actual.push_back(shown(cell.actual, offset));
    point.push_back(shown(cell.model.point, offset));
    for (std::size_t i = 0; i < kFan.size(); ++i) {
      quantiles[i].push_back(shown(cell.quantile(Source::model, kFan[i]), offset));
    }
    for (std::size_t b = 0; b + 1 < kSources; ++b)
      baselines[b].push_back(shown(cell.baseline[b], offset));
  }
  return {{"last", shown(cells.front().base, offset)},
          {"before", before},
          {"times", times},
          {"actual", actual},
          {"point", point},
          {"quantiles", quantiles},
          {"baselines", baselines}};
}

ordered_json fan_group(const Result& result, std::size_t s, std::size_t v, std::size_t most) {
  const Symbol& symbol = result.symbols[s];
  const std::span<const Cell> cells = cells_with(cells_of(result, s), &Cell::target, v);
  const std::size_t windows = cells.size() / result.horizon;
  ordered_json shown_windows = ordered_json::array();
  for (const std::size_t w : choose(windows, most)) {
    shown_windows.push_back(
        window_json(cells.subspan(w * result.horizon, result.horizon), symbol, v));
  }
  return {{"symbol", symbol.name},
          {"target", symbol.targets[v]},
          {"windows", shown_windows},
          {"of", windows},
          {"bars", result.horizon}};
}

/// Where the next group begins.
std::size_t next_group(std::span<const Metrics> metrics, std::size_t begin) {
  std::size_t end = begin + kSources;
  while (end < metrics.size() && metrics[end].step != 0) ++end;
  return end;
}

}  // namespace

std::vector<std::size_t> report_steps(std::size_t horizon) {
  std::vector<std::size_t> steps = choose(horizon, kMaxSteps);
  for (std::size_t& step : steps) ++step;
  return steps;
}

std::size_t count_groups(std::span<const Metrics> metrics) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < metrics.size(); at = next_group(metrics, at)) ++count;
  return count;
}

ordered_json report_groups(const Result& result, std::span<const Metrics> metrics) {
  ordered_json groups = ordered_json::array();
  for (std::size_t begin = 0; begin < metrics.size() && groups.size() < kMaxGroups;) {
    const std::size_t end = next_group(metrics, begin);
    const std::span<const Metrics> rows = metrics.subspan(begin, end - begin);
    ordered_json totals = ordered_json::array();
    ordered_json below = ordered_json::array();
    for (std::size_t s = 0; s < kSources; ++s) {
      totals.push_back(to_json(rows[s]));
      ordered_json one = ordered_json::array();
      for (const double share : rows[s].below) one.push_back(shown(share));
      below.push_back(std::move(one));
    }
    const auto steps = [&](double Metrics::*value) { return by_step(rows, result.horizon, value); };
    groups.push_back({{"symbol", rows[0].symbol.empty() ? "*" : rows[0].symbol},
                      {"target", rows[0].target.empty() ? "*" : rows[0].target},
                      {"totals", totals},
                      {"below", below},
                      {"steps",
                       {{"mase", steps(&Metrics::mase)},
                        {"return_mae", steps(&Metrics::return_mae)},
                        {"wql", steps(&Metrics::wql)}}},
                      {"time", over_time(result, rows[0])}});
    begin = end;
  }
  return groups;
}

std::size_t count_fans(const Result& result) {
  std::size_t all = 0;
  for (const Symbol& symbol : result.symbols) all += symbol.targets.size();
  return all;
}

ordered_json report_fans(const Result& result) {
  const std::size_t groups = std::min(count_fans(result), kMaxFanGroups);
  ordered_json fans = ordered_json::array();
  if (groups == 0) return fans;
  // The bars before a window have two numbers each, those in it twelve.
  const std::size_t each = std::min(result.horizon, kMaxFanBars) + history_of(result.horizon) / 4;
  const std::size_t most = kMaxFanCells / groups / each;
  for (std::size_t s = 0; s < result.symbols.size(); ++s) {
    for (std::size_t v = 0; v < result.symbols[s].targets.size() && fans.size() < groups; ++v) {
      fans.push_back(fan_group(result, s, v, most));
    }
  }
  return fans;
}

}  // namespace toto::backtest
