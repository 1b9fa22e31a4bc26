// SPDX-License-Identifier: Apache-2.0
// Cells into tables: every group of symbol, target and step, and every source.
#include <algorithm>
#include <cmath>
#include <map>

#include "tools/backtest/cells.h"
#include "tools/backtest/measures.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {
namespace {

// Of the central 50, 80 and 90 %: levels() at these places.
constexpr std::array<std::pair<std::size_t, std::size_t>, 3> kIntervals = {
    {{4, 14}, {1, 17}, {0, 18}}};

/// The cells of a group as columns.
struct Columns {
  std::vector<const Cell*> cells;
  std::vector<double> actual, base, scale;

  explicit Columns(std::vector<const Cell*> all) : cells(std::move(all)) {
    for (const Cell* cell : cells) {
      actual.push_back(cell->actual);
      base.push_back(cell->base);
      scale.push_back(cell->scale);
    }
  }
};

/// The observed cells of a group: all of them, then by step, in one pass over `cells`. An empty
/// target stands for all.
///
/// Windows that overlap have bars in common. One step ahead, such a bar is forecast from the same
/// context in each of them, so it counts once among all.
std::vector<std::vector<const Cell*>> by_step(const Result& result, std::span<const Cell> cells,
                                              std::string_view target, std::size_t steps) {
  std::vector<std::vector<const Cell*>> all(steps + 1);
  const Cell* before = nullptr;
  const auto repeats = [&](const Cell& cell) {
    return result.rolling == Rolling::one_step && before != nullptr &&
           before->symbol == cell.symbol && before->target == cell.target &&
           cell.bar <= before->bar;
  };
  for (const Cell& cell : cells) {
    const bool other =
        !target.empty() && result.symbols[cell.symbol].targets[cell.target] != target;
    if (other || std::isnan(cell.actual)) continue;
    if (cell.step < all.size()) all[cell.step].push_back(&cell);
    if (repeats(cell)) continue;
    before = &cell;
    all[0].push_back(&cell);
  }
  return all;
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

/// Mean of |value| / base, percent. A series that can be 0 or below has no returns: next to 0 they
/// would be as large as one likes.
double percent_of_base(Values value, Values base) {
  double sum = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!(base[i] > 0)) return NAN;
    sum += std::abs(value[i]) / base[i];
  }
  return value.empty() ? NAN : 100 * sum / static_cast<double>(value.size());
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

/// What was forecast at one time: the mean over the cells of all symbols, targets and steps that
/// start there, so that what happens on one day counts once.
struct Origin {
  std::int64_t end = 0;  // the last bar that was forecast
  std::array<double, kSources> loss{};
  double count = 0;
};

/// Losses are scaled as MASE, so that every symbol weighs alike.
std::map<std::int64_t, Origin> losses_by_origin(const Columns& columns, const Result& result) {
  std::map<std::int64_t, Origin> origins;
  for (const Cell* cell : columns.cells) {
    if (!(cell->scale > 0)) continue;
    Origin& origin = origins[origin_of(*cell, result)];
    origin.end = std::max(origin.end, cell->time);
    for (std::size_t s = 0; s < kSources; ++s) {
      const double error = std::abs(cell->actual - cell->point(static_cast<Source>(s)));
      origin.loss[s] += error / cell->scale;
    }
    origin.count += 1;
  }
  return origins;
}

/// How many origins before one its errors may be correlated with: those with a forecast that was
/// still open. So step h of windows a bar apart has h - 1, and symbols whose windows begin on
/// different days have more than each of them alone.
std::size_t overlap_of(const std::map<std::int64_t, Origin>& origins) {
  std::vector<std::int64_t> times;
  times.reserve(origins.size());
  for (const auto& [time, origin] : origins) times.push_back(time);
  std::size_t overlap = 0;
  std::size_t at = 0;
  for (const auto& [time, origin] : origins) {
    const auto after = std::ranges::lower_bound(times, origin.end);
    const auto last = static_cast<std::size_t>(after - times.begin());  // one past the last inside
    overlap = std::max(overlap, last - std::min(last, at + 1));
    ++at;
  }
  return overlap;
}

void compare(Metrics& m, const Columns& columns, const Result& result) {
  const std::map<std::int64_t, Origin> origins = losses_by_origin(columns, result);
  const std::size_t overlap = overlap_of(origins);
  std::array<std::vector<double>, kSources> losses;
  for (const auto& [time, origin] : origins) {
    for (std::size_t s = 0; s < kSources; ++s) losses[s].push_back(origin.loss[s] / origin.count);
  }
  for (std::size_t b = 1; b < kSources; ++b) {
    m.against[b - 1] = paired_test(losses[0], losses[b], overlap);
  }
}

Metrics measure_group(const Columns& columns, Source source, const Result& result) {
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
  const Proportion right = direction(columns.actual, point, columns.base);
  m.directions = right.count;
  m.direction = right.share;
  m.direction_low = right.low;
  m.direction_high = right.high;
  m.against.fill({0, 0, NAN, NAN});
  if (source == Source::model) compare(m, columns, result);
  return m;
}

/// Those of all symbols, in the order in which they appear.
std::vector<std::string> all_targets(const Result& result) {
  std::vector<std::string> all;
  for (const Symbol& symbol : result.symbols) {
    for (const std::string& target : symbol.targets) {
      if (std::ranges::find(all, target) == all.end()) all.push_back(target);
    }
  }
  return all;
}

}  // namespace

std::vector<Metrics> measure(const Result& result, const Options& options, bool only_totals) {
  std::vector<Metrics> all;
  const auto add = [&](std::span<const Cell> cells, std::string_view symbol,
                       std::string_view target) {
    auto steps = by_step(result, cells, target, only_totals ? 0 : options.horizon);
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const Columns columns(std::move(steps[step]));
      if (columns.cells.empty()) continue;
      for (std::size_t s = 0; s < kSources; ++s) {
        Metrics m = measure_group(columns, static_cast<Source>(s), result);
        m.symbol = symbol;
        m.target = target;
        m.step = step;
        all.push_back(std::move(m));
      }
    }
  };
  const auto add_targets = [&](std::span<const Cell> cells, std::string_view symbol,
                               const std::vector<std::string>& targets) {
    add(cells, symbol, "");
    // One target alone is its own total.
    for (std::size_t v = 0; targets.size() > 1 && v < targets.size(); ++v) {
      add(cells, symbol, targets[v]);
    }
  };
  add_targets(result.cells, "", all_targets(result));
  for (std::size_t s = 0; s < result.symbols.size(); ++s) {
    add_targets(cells_of(result, s), result.symbols[s].name, result.symbols[s].targets);
  }
  return all;
}

}  // namespace toto::backtest
