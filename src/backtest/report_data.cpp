// SPDX-License-Identifier: Apache-2.0
#include "backtest/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "backtest/describe.h"

namespace toto::backtest {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostFanCells = 12'000;  // about a megabyte
constexpr std::size_t kMostFanGroups = 60;     // symbols and targets
constexpr std::size_t kHistory = 90;           // bars before a window
constexpr std::size_t kMostTimes = 60;         // points of the error over time
// Of levels(): 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95.
constexpr std::array<std::size_t, 7> kFan = {0, 1, 4, 9, 14, 17, 18};

/// Six digits are finer than any picture.
ordered_json shown(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::stod(fmt::format("{:.6g}", value));
}

/// The metrics of one group begin here: its sources, then those of its steps.
ordered_json by_step(std::span<const Metrics> rows, double Metrics::*value) {
  ordered_json all = ordered_json::array();
  for (std::size_t s = 0; s < kSources; ++s) {
    ordered_json one = ordered_json::array();
    for (std::size_t i = kSources + s; i < rows.size(); i += kSources) {
      one.push_back(shown(rows[i].*value));
    }
    all.push_back(std::move(one));
  }
  return all;
}

struct Sums {
  std::array<double, kSources> error{};
  double count = 0;
};

/// Mean scaled error by the time of the first bar after the origin, in at most kMostTimes pieces.
ordered_json over_time(const Result& result, const Metrics& group) {
  std::map<std::int64_t, Sums> by_time;
  data::TimeStyle style;  // of the first symbol here
  for (const Cell& cell : result.cells) {
    const Symbol& symbol = result.symbols[cell.symbol];
    if (!group.symbol.empty() && symbol.name != group.symbol) continue;
    if (!group.target.empty() && symbol.targets[cell.target] != group.target) continue;
    if (std::isnan(cell.actual) || !(cell.scale > 0)) continue;
    if (by_time.empty()) style = symbol.style;
    Sums& sums = by_time[cell.time];
    for (std::size_t s = 0; s < kSources; ++s) {
      sums.error[s] += std::abs(cell.actual - cell.point(static_cast<Source>(s))) / cell.scale;
    }
    sums.count += 1;
  }
  const std::size_t each = (by_time.size() + kMostTimes - 1) / kMostTimes;
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

/// Evenly chosen, the last one always.
std::vector<std::size_t> choose(std::size_t count, std::size_t most) {
  const std::size_t chosen = std::min(count, std::max<std::size_t>(most, 1));
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i <= chosen; ++i) all.push_back(i * count / chosen - 1);
  return all;
}

ordered_json window_json(std::span<const Cell> cells, const Symbol& symbol, std::size_t first_bar) {
  ordered_json actual = ordered_json::array();
  ordered_json point = ordered_json::array();
  ordered_json quantiles = ordered_json::array();
  ordered_json baselines = ordered_json::array();
  for (std::size_t i = 0; i < kFan.size(); ++i) quantiles.push_back(ordered_json::array());
  for (std::size_t b = 0; b + 1 < kSources; ++b) baselines.push_back(ordered_json::array());
  ordered_json times = ordered_json::array();
  for (const Cell& cell : cells) {
    times.push_back(data::format_time(cell.time, symbol.style));
    actual.push_back(shown(cell.actual));
    point.push_back(shown(cell.model.point));
    for (std::size_t i = 0; i < kFan.size(); ++i) {
      quantiles[i].push_back(shown(static_cast<double>(cell.model.quantiles[kFan[i]])));
    }
    for (std::size_t b = 0; b + 1 < kSources; ++b) baselines[b].push_back(shown(cell.baseline[b]));
  }
  // Place of the origin in the bars that go with the group.
  const std::size_t origin = cells.front().bar - cells.front().step - first_bar;
  return {{"origin", origin}, {"times", times},         {"actual", actual},
          {"point", point},   {"quantiles", quantiles}, {"baselines", baselines}};
}

ordered_json fan_group(const Result& result, std::size_t s, std::size_t v, std::size_t most) {
  const Symbol& symbol = result.symbols[s];
  const auto key = [](const Cell& c) {
    return std::pair<std::size_t, std::size_t>(c.symbol, c.target);
  };
  const std::pair<std::size_t, std::size_t> wanted(s, v);
  const auto first_cell = std::ranges::lower_bound(result.cells, wanted, {}, key);
  const auto last_cell = std::ranges::upper_bound(result.cells, wanted, {}, key);
  const std::span<const Cell> cells =
      std::span(result.cells)
          .subspan(static_cast<std::size_t>(first_cell - result.cells.begin()),
                   static_cast<std::size_t>(last_cell - first_cell));
  const std::size_t windows = cells.size() / result.horizon;
  const std::vector<std::size_t> chosen = choose(windows, most);
  const Cell& first = cells[chosen.front() * result.horizon];
  const std::size_t begin = first.bar - std::min<std::size_t>(first.bar, kHistory);
  ordered_json shown_windows = ordered_json::array();
  for (const std::size_t w : chosen) {
    shown_windows.push_back(
        window_json(cells.subspan(w * result.horizon, result.horizon), symbol, begin));
  }
  ordered_json times = ordered_json::array();
  ordered_json values = ordered_json::array();
  for (std::size_t t = begin; t < symbol.bars; ++t) {
    times.push_back(data::format_time(symbol.times[t], symbol.style));
    values.push_back(symbol.mask_of(v)[t] != 0 ? shown(static_cast<double>(symbol.values_of(v)[t]))
                                               : ordered_json(nullptr));
  }
  return {{"symbol", symbol.name},    {"target", symbol.targets[v]},
          {"windows", shown_windows}, {"of", windows},
          {"times", times},           {"values", values}};
}

}  // namespace

ordered_json report_groups(const Result& result, std::span<const Metrics> metrics) {
  ordered_json groups = ordered_json::array();
  for (std::size_t begin = 0; begin < metrics.size();) {
    std::size_t end = begin + kSources;
    while (end < metrics.size() && metrics[end].step != 0) ++end;
    const std::span<const Metrics> rows = metrics.subspan(begin, end - begin);
    ordered_json totals = ordered_json::array();
    ordered_json below = ordered_json::array();
    for (std::size_t s = 0; s < kSources; ++s) {
      totals.push_back(to_json(rows[s]));
      ordered_json one = ordered_json::array();
      for (const double share : rows[s].below) one.push_back(shown(share));
      below.push_back(std::move(one));
    }
    groups.push_back({{"symbol", rows[0].symbol.empty() ? "*" : rows[0].symbol},
                      {"target", rows[0].target.empty() ? "*" : rows[0].target},
                      {"totals", totals},
                      {"below", below},
                      {"steps",
                       {{"mase", by_step(rows, &Metrics::mase)},
                        {"return_mae", by_step(rows, &Metrics::return_mae)},
                        {"wql", by_step(rows, &Metrics::wql)}}},
                      {"time", over_time(result, rows[0])}});
    begin = end;
  }
  return groups;
}

ordered_json report_fans(const Result& result) {
  std::size_t all = 0;
  for (const Symbol& symbol : result.symbols) all += symbol.targets.size();
  const std::size_t groups = std::min(all, kMostFanGroups);
  ordered_json fans = ordered_json::array();
  if (groups == 0) return fans;
  const std::size_t most = kMostFanCells / groups / result.horizon;
  for (std::size_t s = 0; s < result.symbols.size(); ++s) {
    for (std::size_t v = 0; v < result.symbols[s].targets.size() && fans.size() < groups; ++v) {
      fans.push_back(fan_group(result, s, v, most));
    }
  }
  return fans;
}

}  // namespace toto::backtest
