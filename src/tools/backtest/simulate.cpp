// SPDX-License-Identifier: Apache-2.0
// A simple strategy, to see what a forecast would have been worth. It knows no spread, no slippage,
// no limits and no taxes: an illustration.
#include <algorithm>
#include <cmath>

#include "tools/backtest/cells.h"
#include "tools/backtest/column_names.h"
#include "tools/backtest/trading_hours.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {
namespace {

constexpr double kYearMs = 365.25 * 86'400'000.0;

/// What 1 of the beginning has become.
struct Mark {
  std::int64_t time = 0;
  double wealth = 1;  // of the strategy, after fees
  double held = 1;    // of holding in the same bars, without fee
};

/// One symbol, bar by bar.
struct Path {
  std::vector<Mark> marks;  // the first one is the beginning; empty: nothing was decided
  std::size_t decisions = 0;
  double traded = 0;  // sum of |changes of the position|
};

/// The cells that decide: the last one of each window, one step ahead every one.
std::vector<const Cell*> decisions_of(const Result& result, std::size_t symbol,
                                      std::size_t target) {
  std::vector<const Cell*> decisions;
  const bool one_step = result.rolling == Rolling::one_step;
  for (const Cell& cell : cells_with(cells_of(result, symbol), &Cell::target, target)) {
    if (one_step || cell.step == result.horizon) decisions.push_back(&cell);
  }
  std::ranges::sort(decisions, {}, [](const Cell* c) { return std::tuple(c->bar, c->window); });
  return decisions;
}

/// A position is taken at an origin and held to the last bar of its window; a window that begins
/// before that is left out, so no bar is held twice. Between windows that do not touch nothing is
/// held. A bar that was not observed keeps the value before.
Path walk(const Result& result, std::size_t s, std::size_t target, double fee, double dead_zone) {
  const Symbol& symbol = result.symbols[s];
  const auto prices = symbol.values_of(target);
  const double offset = symbol.offset_of(target);
  Path path;
  double position = 0;
  std::size_t busy_until = 0;
  for (const Cell* decision : decisions_of(result, s, target)) {
    const Cell& cell = *decision;
    const std::size_t begin =
        result.rolling == Rolling::one_step ? cell.bar - 1 : cell.bar - cell.step;
    if (begin < busy_until || !(cell.base > 0)) continue;
    if (path.marks.empty()) path.marks.push_back({symbol.times[begin], 1, 1});
    if (position != 0 && begin > busy_until) {
      path.marks.back().wealth *= 1 - fee;
      path.traded += 1;
      position = 0;
    }
    busy_until = cell.bar;
    const double expected = cell.model.point / cell.base - 1;
    const double wanted = std::abs(expected) <= dead_zone ? 0 : expected > 0 ? 1 : -1;
    const double traded = std::abs(wanted - position);
    const Mark before = path.marks.back();
    for (std::size_t bar = begin + 1; bar <= cell.bar; ++bar) {
      const double move = (offset + static_cast<double>(prices[bar])) / cell.base - 1;
      const double gain = wanted * move - fee * traded;
      path.marks.push_back(
          {symbol.times[bar], before.wealth * std::max(0.0, 1 + gain), before.held * (1 + move)});
    }
    position = wanted;
    path.traded += traded;
    ++path.decisions;
  }
  return path;
}

/// Mean over standard deviation of the moves between marks, and that deviation.
struct Moves {
  double ratio = 0, deviation = 0;
};

Moves moves_of(const std::vector<Mark>& marks, double Mark::*value) {
  std::vector<double> moves;
  for (std::size_t i = 1; i < marks.size(); ++i) {
    const double before = marks[i - 1].*value;
    moves.push_back(before > 0 ? marks[i].*value / before - 1 : 0);
  }
  const auto n = static_cast<double>(moves.size());
  double mean = 0;
  for (const double x : moves) mean += x / n;
  double squares = 0;
  for (const double x : moves) squares += (x - mean) * (x - mean);
  const double deviation = n > 1 ? std::sqrt(squares / (n - 1)) : NAN;
  return {mean / deviation, deviation};
}

Trades summarise(const Path& path, bool has_times) {
  const std::vector<Mark>& marks = path.marks;
  Trades t;
  t.periods = path.decisions;
  t.turnover = path.traded / static_cast<double>(path.decisions);
  double peak = 1;
  for (const Mark& mark : marks) {
    peak = std::max(peak, mark.wealth);
    t.drawdown = std::max(t.drawdown, 1 - mark.wealth / peak);
  }
  t.total_return = marks.back().wealth - 1;
  t.hold_return = marks.back().held - 1;
  // An index does not say how long a bar is.
  const double years =
      has_times ? static_cast<double>(marks.back().time - marks.front().time) / kYearMs : NAN;
  const double per_year = static_cast<double>(marks.size() - 1) / years;
  const Moves own = moves_of(marks, &Mark::wealth);
  t.yearly = has_times;
  t.yearly_return = std::pow(marks.back().wealth, 1 / years) - 1;
  t.yearly_volatility = own.deviation * std::sqrt(per_year);
  t.sharpe = own.ratio * std::sqrt(per_year);
  t.hold_sharpe = moves_of(marks, &Mark::held).ratio * std::sqrt(per_year);
  return t;
}

/// An equal part of the money for each symbol, from the first bar of any to the last of all; none
/// is moved from one to another, so calendars and windows may differ.
Path together(const std::vector<Path>& paths) {
  struct Event {
    std::size_t path = 0;
    Mark mark;
  };
  Path all;
  std::vector<Event> events;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (const Mark& mark : paths[i].marks) events.push_back({i, mark});
    all.decisions += paths[i].decisions;
    all.traded += paths[i].traded;
  }
  std::ranges::stable_sort(events, {}, [](const Event& e) { return e.mark.time; });
  std::vector<Mark> now(paths.size());
  const auto count = static_cast<double>(paths.size());
  Mark sum{0, count, count};
  for (std::size_t i = 0; i < events.size(); ++i) {
    Mark& own = now[events[i].path];
    sum.wealth += events[i].mark.wealth - own.wealth;
    sum.held += events[i].mark.held - own.held;
    own = events[i].mark;
    const bool more = i + 1 < events.size() && events[i + 1].mark.time == own.time;
    if (!more) all.marks.push_back({own.time, sum.wealth / count, sum.held / count});
  }
  return all;
}

}  // namespace

std::vector<Trades> simulate(const Result& result, std::optional<double> fee, double dead_zone) {
  std::vector<Trades> all;
  std::vector<Path> paths;
  std::size_t with_times = 0;
  for (std::size_t s = 0; s < result.symbols.size(); ++s) {
    const Symbol& symbol = result.symbols[s];
    // Targets are called as they were asked for: Close, close_price.
    const auto first_price = std::ranges::find_if(symbol.targets, is_price);
    if (first_price == symbol.targets.end()) continue;
    const std::size_t target =
        find_column(symbol.targets, "close")
            .value_or(static_cast<std::size_t>(first_price - symbol.targets.begin()));
    const double pays = fee.value_or(usual_fee(symbol.hours));
    Path path = walk(result, s, target, pays, dead_zone);
    if (path.marks.empty()) continue;
    const bool has_times = symbol.style.form != data::TimeStyle::Form::index;
    with_times += has_times ? 1 : 0;
    Trades trades = summarise(path, has_times);
    trades.symbol = symbol.name;
    trades.target = symbol.targets[target];
    trades.fee = pays;
    all.push_back(std::move(trades));
    paths.push_back(std::move(path));
  }
  // Rows that are numbered and rows that have a date cannot be put in one order.
  if (all.size() < 2 || (with_times != 0 && with_times != all.size())) return all;
  Trades total = summarise(together(paths), with_times != 0);
  const Trades& first = all.front();
  const auto same_fee = [&](const Trades& t) { return t.fee == first.fee; };
  const auto same_target = [&](const Trades& t) { return t.target == first.target; };
  total.fee = std::ranges::all_of(all, same_fee) ? first.fee : NAN;
  if (std::ranges::all_of(all, same_target)) total.target = first.target;
  all.insert(all.begin(), std::move(total));
  return all;
}

}  // namespace toto::backtest
