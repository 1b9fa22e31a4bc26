// SPDX-License-Identifier: Apache-2.0
// Cells into tables: every group of symbol, target and step, and every source.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "backtest/measures.h"
#include "toto/backtest.hpp"

namespace toto::backtest {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
// Of the central 50, 80 and 90 %: levels() at these places.
constexpr std::array<std::pair<std::size_t, std::size_t>, 3> kIntervals = {
    {{4, 14}, {1, 17}, {0, 18}}};

/// The cells of a group as columns.
struct Columns {
  std::vector<const Cell*> cells;
  std::vector<double> actual, base, scale;
};

/// Windows that overlap have bars in common. One step ahead, such a bar is forecast from the same
/// context in each of them, so it counts once.
Columns columns_of(const Result& result, std::size_t symbol, std::size_t target, std::size_t step) {
  Columns columns;
  std::span<const Cell> cells = result.cells;  // sorted by symbol
  if (symbol != kAll) {
    const auto first = std::ranges::lower_bound(cells, symbol, {}, &Cell::symbol);
    const auto last = std::ranges::upper_bound(cells, symbol, {}, &Cell::symbol);
    cells = cells.subspan(static_cast<std::size_t>(first - cells.begin()),
                          static_cast<std::size_t>(last - first));
  }
  const Cell* before = nullptr;
  const auto repeats = [&](const Cell& cell, const Cell* last) {
    return result.rolling == Rolling::one_step && last != nullptr && last->symbol == cell.symbol &&
           last->target == cell.target && cell.bar <= last->bar;
  };
  for (const Cell& cell : cells) {
    if (target != kAll &&
        result.symbols[cell.symbol].targets[cell.target] != result.symbols[0].targets[target]) {
      continue;
    }
    if (step != 0 && cell.step != step) continue;
    if (std::isnan(cell.actual)) continue;
    if (step == 0 && repeats(cell, before)) continue;
    before = &cell;
    columns.cells.push_back(&cell);
    columns.actual.push_back(cell.actual);
    columns.base.push_back(cell.base);
    columns.scale.push_back(cell.scale);
  }
  return columns;
}

std::vector<double> points(const Columns& columns, Source source) {
  std::vector<double> out;
  out.reserve(columns.cells.size());
  for (const Cell* cell : columns.cells) out.push_back(cell->point(source));
  return out;
}

std::vector<double> quantiles(const Columns& columns, Source source, std::size_t level) {
  std::vector<double> out;
  out.reserve(columns.cells.size());
  for (const Cell* cell : columns.cells) out.push_back(cell->quantile(source, level));
  return out;
}

/// Mean of |value| / |base|, percent.
double percent_of_base(Values value, Values base) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (base[i] == 0) continue;
    sum += std::abs(value[i]) / std::abs(base[i]);
    ++count;
  }
  return count == 0 ? NAN : 100 * sum / static_cast<double>(count);
}

void measure_quantiles(Metrics& m, const Columns& columns) {
  std::array<std::vector<double>, kLevels> all;
  m.wql = 0;
  m.crps = 0;
  for (std::size_t q = 0; q < kLevels; ++q) {
    all[q] = quantiles(columns, m.source, q);
    const double level = levels()[q];
    m.pinball[q] = pinball_loss(columns.actual, all[q], level);
    m.below[q] = share_at_or_below(columns.actual, all[q]);
    m.wql += weighted_quantile_loss(columns.actual, all[q], level) / kLevels;
    m.crps += 2 * m.pinball[q] / kLevels;
  }
  for (std::size_t i = 0; i < kIntervals.size(); ++i) {
    const std::vector<double>& low = all[kIntervals[i].first];
    const std::vector<double>& high = all[kIntervals[i].second];
    m.coverage[i] = coverage(columns.actual, low, high);
    std::vector<double> width(low.size());
    for (std::size_t k = 0; k < low.size(); ++k) width[k] = high[k] - low[k];
    m.width[i] = percent_of_base(width, columns.base);
  }
}

/// The last bar that was known.
std::int64_t origin_of(const Cell& cell, const Result& result) {
  const std::size_t back = result.rolling == Rolling::one_step ? 1 : cell.step;
  return result.symbols[cell.symbol].times[cell.bar - back];
}

/// Losses by origin: the mean over the cells of all symbols, targets and steps that start there, so
/// that what happens on one day counts once. Scaled as MASE, so that every symbol weighs alike.
std::vector<double> losses_by_origin(const Columns& columns, Source source,
                                     const std::map<std::int64_t, std::size_t>& order,
                                     const Result& result) {
  std::vector<double> sum(order.size(), 0);
  std::vector<double> count(order.size(), 0);
  for (const Cell* cell : columns.cells) {
    if (!(cell->scale > 0)) continue;
    const std::size_t at = order.at(origin_of(*cell, result));
    sum[at] += std::abs(cell->actual - cell->point(source)) / cell->scale;
    count[at] += 1;
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] /= count[i];
  return sum;
}

/// How many origins before one its errors may be correlated with: those whose windows overlap.
std::size_t overlap_of(const Options& options) {
  if (options.rolling == Rolling::one_step) return 0;
  const std::size_t stride = options.stride == 0 ? options.horizon : options.stride;
  return (options.horizon + stride - 1) / stride - 1;
}

void compare(Metrics& m, const Columns& columns, const Result& result, const Options& options) {
  std::map<std::int64_t, std::size_t> order;
  for (const Cell* cell : columns.cells) {
    if (!(cell->scale > 0)) continue;
    order.emplace(origin_of(*cell, result), 0);
  }
  std::size_t next = 0;
  for (auto& [time, at] : order) at = next++;
  const std::vector<double> own = losses_by_origin(columns, Source::model, order, result);
  for (std::size_t b = 1; b < kSources; ++b) {
    const auto other = losses_by_origin(columns, static_cast<Source>(b), order, result);
    m.against[b - 1] = diebold_mariano(own, other, overlap_of(options));
  }
}

Metrics measure_group(const Columns& columns, Source source, const Result& result,
                      const Options& options) {
  Metrics m;
  m.source = source;
  m.count = columns.cells.size();
  const std::vector<double> point = points(columns, source);
  m.mae = mean_absolute_error(columns.actual, point);
  m.rmse = root_mean_square_error(columns.actual, point);
  m.mape = mean_absolute_percentage_error(columns.actual, point);
  m.smape = symmetric_percentage_error(columns.actual, point);
  m.mase = mean_scaled_error(columns.actual, point, columns.scale);
  std::vector<double> error(point.size());
  for (std::size_t i = 0; i < point.size(); ++i) error[i] = point[i] - columns.actual[i];
  m.return_mae = percent_of_base(error, columns.base);
  measure_quantiles(m, columns);
  // The last value says nothing about a direction.
  const Proportion right =
      source == Source::last_value ? wilson(0, 0) : direction(columns.actual, point, columns.base);
  m.directions = right.count;
  m.direction = right.share;
  m.direction_low = right.low;
  m.direction_high = right.high;
  m.against.fill({0, NAN, NAN});
  if (source == Source::model) compare(m, columns, result, options);
  return m;
}

}  // namespace

std::vector<Metrics> measure(const Result& result, const Options& options, bool only_totals) {
  std::vector<Metrics> all;
  if (result.symbols.empty()) return all;
  const std::size_t targets = result.symbols[0].targets.size();
  const auto add = [&](std::size_t symbol, std::size_t target) {
    for (std::size_t step = 0; step <= (only_totals ? 0 : options.horizon); ++step) {
      const Columns columns = columns_of(result, symbol, target, step);
      if (columns.cells.empty()) continue;
      for (std::size_t s = 0; s < kSources; ++s) {
        Metrics m = measure_group(columns, static_cast<Source>(s), result, options);
        if (symbol != kAll) m.symbol = result.symbols[symbol].name;
        if (target != kAll) m.target = result.symbols[0].targets[target];
        m.step = step;
        all.push_back(std::move(m));
      }
    }
  };
  // One symbol or target alone is its own total.
  add(kAll, kAll);
  for (std::size_t v = 0; targets > 1 && v < targets; ++v) add(kAll, v);
  for (std::size_t s = 0; s < result.symbols.size(); ++s) {
    add(s, kAll);
    for (std::size_t v = 0; targets > 1 && v < targets; ++v) add(s, v);
  }
  return all;
}

}  // namespace toto::backtest
