// SPDX-License-Identifier: Apache-2.0
// A simple strategy, to see what a forecast would have been worth. It knows no spread, no slippage,
// no limits and no taxes: an illustration.
#include <algorithm>
#include <cmath>
#include <map>

#include "toto/backtest.hpp"

namespace toto::backtest {
namespace {

constexpr double kEquityFee = 0.0005;
constexpr double kCryptoFee = 0.001;
constexpr double kYearMs = 365.25 * 86'400'000.0;

struct Period {
  std::int64_t begin = 0, end = 0;
  double gain = 0;    // of the strategy, after fees
  double hold = 0;    // of holding
  double traded = 0;  // |change of the position|
};

/// From origin to the last bar of the window that nothing else is decided in.
std::vector<Period> periods_of(const Result& result, std::size_t symbol, std::size_t target,
                               double fee, double dead_zone) {
  std::vector<const Cell*> decisions;
  for (const Cell& cell : result.cells) {
    if (cell.symbol != symbol || cell.target != target || std::isnan(cell.actual)) continue;
    decisions.push_back(&cell);
  }
  std::ranges::sort(decisions, {}, [](const Cell* c) { return std::tuple(c->bar, c->window); });
  const auto& times = result.symbols[symbol].times;
  const bool one_step = result.rolling == Rolling::one_step;
  std::vector<Period> periods;
  double position = 0;
  std::size_t busy_until = 0;
  for (const Cell* decision : decisions) {
    const Cell& cell = *decision;
    if (!one_step && cell.step != result.horizon) continue;
    const std::size_t begin = one_step ? cell.bar - 1 : cell.bar - cell.step;
    if (begin < busy_until || cell.base <= 0) continue;
    busy_until = cell.bar;
    const double expected = cell.model.point / cell.base - 1;
    const double wanted = std::abs(expected) <= dead_zone ? 0 : expected > 0 ? 1 : -1;
    const double traded = std::abs(wanted - position);
    const double move = cell.actual / cell.base - 1;
    periods.push_back({times[begin], times[cell.bar], wanted * move - fee * traded, move, traded});
    position = wanted;
  }
  return periods;
}

struct Moments {
  double mean = 0, deviation = 0;
};

template <typename Get>
Moments moments(const std::vector<Period>& periods, const Get& get) {
  Moments m;
  for (const Period& p : periods) m.mean += get(p);
  m.mean /= static_cast<double>(periods.size());
  for (const Period& p : periods) m.deviation += (get(p) - m.mean) * (get(p) - m.mean);
  const auto n = static_cast<double>(periods.size());
  m.deviation = n > 1 ? std::sqrt(m.deviation / (n - 1)) : NAN;
  return m;
}

Trades summarise(const std::vector<Period>& periods) {
  Trades t;
  t.periods = periods.size();
  double wealth = 1;
  double peak = 1;
  double held = 1;
  for (const Period& p : periods) {
    wealth *= std::max(0.0, 1 + p.gain);
    held *= 1 + p.hold;
    peak = std::max(peak, wealth);
    t.drawdown = std::max(t.drawdown, 1 - wealth / peak);
    t.turnover += p.traded / static_cast<double>(periods.size());
  }
  t.total_return = wealth - 1;
  t.hold_return = held - 1;
  const double years = static_cast<double>(periods.back().end - periods.front().begin) / kYearMs;
  const double per_year = years > 0 ? static_cast<double>(periods.size()) / years : NAN;
  t.yearly_return = std::pow(wealth, 1 / years) - 1;
  const Moments own = moments(periods, [](const Period& p) { return p.gain; });
  const Moments hold = moments(periods, [](const Period& p) { return p.hold; });
  t.yearly_volatility = own.deviation * std::sqrt(per_year);
  t.sharpe = own.mean / own.deviation * std::sqrt(per_year);
  t.hold_sharpe = hold.mean / hold.deviation * std::sqrt(per_year);
  return t;
}

}  // namespace

std::vector<Trades> simulate(const Result& result, std::optional<double> fee, double dead_zone) {
  std::vector<Trades> all;
  std::map<std::int64_t, std::vector<Period>> together;
  for (std::size_t s = 0; s < result.symbols.size(); ++s) {
    const Symbol& symbol = result.symbols[s];
    const auto close = std::ranges::find(symbol.targets, "close");
    const std::size_t target = close == symbol.targets.end()
                                   ? 0
                                   : static_cast<std::size_t>(close - symbol.targets.begin());
    const double pays = fee.value_or(symbol.every_day ? kCryptoFee : kEquityFee);
    const std::vector<Period> periods = periods_of(result, s, target, pays, dead_zone);
    if (periods.empty()) continue;
    for (const Period& p : periods) together[p.begin].push_back(p);
    Trades trades = summarise(periods);
    trades.symbol = symbol.name;
    trades.fee = pays;
    all.push_back(std::move(trades));
  }
  if (all.size() < 2) return all;
  std::vector<Period> mean;
  for (const auto& [begin, at] : together) {
    Period one{begin, at.front().end, 0, 0, 0};
    const auto share = 1 / static_cast<double>(at.size());
    for (const Period& p : at) {
      one.end = std::max(one.end, p.end);
      one.gain += p.gain * share;
      one.hold += p.hold * share;
      one.traded += p.traded * share;
    }
    mean.push_back(one);
  }
  Trades total = summarise(mean);
  total.fee = fee.value_or(NAN);
  all.insert(all.begin(), std::move(total));
  return all;
}

}  // namespace toto::backtest
