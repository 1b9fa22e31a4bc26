// SPDX-License-Identifier: Apache-2.0
#include "cli/backtest_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/printable.h"
#include "tools/backtest/column_names.h"

namespace toto::cli {
namespace {

using backtest::Metrics;

constexpr std::size_t kMaxRows = 40;

std::string shown(std::string_view text, std::size_t width) {
  std::u32string name = printable(text);
  if (name.size() > width) name = name.substr(0, width - 1) + U"…";
  name.resize(width, U' ');
  return to_utf8(name);
}

std::string number(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

/// "better ***" where the difference to the last value is more than luck would be.
std::string verdict(const backtest::PairedTest& test) {
  if (test.too_few()) return fmt::format("too few windows ({} of {})", test.count, test.needed);
  if (!std::isfinite(test.p_value)) return "";
  const char* stars = test.p_value < 0.001  ? " ***"
                      : test.p_value < 0.01 ? " **"
                      : test.p_value < 0.05 ? " *"
                                            : "";
  if (*stars == '\0') return fmt::format("no difference (p {:.2f})", test.p_value);
  return fmt::format("{}{}", test.statistic < 0 ? "better" : "worse", stars);
}

constexpr std::size_t kNameWidth = 16;

/// `text` is given the model's measures; those of the baselines follow them.
struct Column {
  std::string_view title;
  std::size_t width;
  std::size_t rank;  // the highest one gives way first
  std::string (*text)(const Metrics*);
};

const std::array<Column, 7>& all_columns() {
  static const std::array<Column, 7> columns = {
      {{"count", 8, 7, [](const Metrics* m) { return std::to_string(m->count); }},
       {"MASE", 7, 1, [](const Metrics* m) { return number(m->mase, "{:.3f}"); }},
       {"naive", 7, 3, [](const Metrics* m) { return number(m[1].mase, "{:.3f}"); }},
       {"season", 7, 4, [](const Metrics* m) { return number(m[2].mase, "{:.3f}"); }},
       {"return %", 9, 6, [](const Metrics* m) { return number(m->return_mae, "{:.3f}"); }},
       {"80 % cov", 8, 2, [](const Metrics* m) { return number(100 * m->coverage[1], "{:.1f}"); }},
       {"direct.", 8, 5, [](const Metrics* m) { return number(100 * m->direction, "{:.1f}"); }}}};
  return columns;
}

/// Those that fit beside name and verdict.
std::vector<Column> columns_for(std::size_t width) {
  constexpr std::size_t kVerdict = 24;
  std::vector<Column> fit(all_columns().begin(), all_columns().end());
  const auto needed = [&] {
    std::size_t sum = kNameWidth + kVerdict;
    for (const Column& column : fit) sum += column.width + 1;
    return sum;
  };
  while (fit.size() > 1 && needed() > width) {
    fit.erase(std::ranges::max_element(fit, {}, &Column::rank));
  }
  return fit;
}

/// The symbol, with what is traded where that is not the close.
std::string traded(const backtest::Trades& trades) {
  const std::array<std::string, 1> target = {trades.target};
  return backtest::find_column(target, "close") ? trades.symbol
                                                : trades.symbol + "/" + trades.target;
}

}  // namespace

void show_findings(const backtest::Market& market, const Session& session, std::string_view where) {
  struct Group {
    std::string first;
    std::size_t symbols = 0;
  };
  std::map<std::string, Group> groups;
  for (const backtest::Symbol& symbol : market.symbols) {
    for (const backtest::Finding& finding : symbol.findings) {
      Group& group = groups[finding.code];
      if (group.symbols++ > 0) continue;
      group.first = to_utf8(printable(symbol.name)).append(": ").append(finding.message);
    }
  }
  for (const auto& [code, group] : groups) {
    note(session, group.symbols == 1
                      ? fmt::format("{}: {}", code, group.first)
                      : fmt::format("{}: {} (and {} symbols more{}{})", code, group.first,
                                    group.symbols - 1, where.empty() ? "" : ", see ", where));
  }
}

std::string backtest_table(const backtest::Result& result, std::span<const Metrics> metrics,
                           std::span<const backtest::Trades> trades,
                           const backtest::Options& options, std::size_t width) {
  const std::vector<Column> columns = columns_for(width);
  std::string out = shown("", kNameWidth);
  for (const Column& column : columns) out += fmt::format(" {:>{}}", column.title, column.width);
  out += "  against the last value\n";
  std::size_t rows = 0;
  for (std::size_t i = 0; i + backtest::kSources <= metrics.size(); i += backtest::kSources) {
    const Metrics& m = metrics[i];
    if (m.step != 0) continue;
    if (++rows > kMaxRows) continue;
    std::string name = m.symbol.empty() ? "all" : m.symbol;
    if (!m.target.empty()) name.append("/").append(m.target);
    out += shown(name, kNameWidth);
    for (const Column& column : columns) {
      out += fmt::format(" {:>{}}", column.text(&m), column.width);
    }
    out += fmt::format("  {}\n", verdict(m.against[0]));
  }
  if (rows > kMaxRows) out += fmt::format("... and {} rows more\n", rows - kMaxRows);
  const backtest::RunStatistics& s = result.statistics;
  out += fmt::format(
      "{} forecasts of {} bars ({}), {} distinct contexts, {} from the cache, {} by the "
      "model",
      s.requested, options.rolling == backtest::Rolling::one_step ? 1 : options.horizon,
      word(options.rolling), s.distinct, s.cache_hits, s.forecast);
  if (s.forecast > 0) {
    out += fmt::format(
        " at {:.1f} per second in calls of up to {}; one alone takes p50 {:.3g} ms, p95 {:.3g}, "
        "p99 {:.3g} ({} timed)",
        s.series_per_second, s.batch, 1e3 * s.latency_p50, 1e3 * s.latency_p95, 1e3 * s.latency_p99,
        s.timed_alone);
  }
  out += '\n';
  std::size_t told = 0;
  for (const backtest::CovariateGain& gain : result.covariate_gain) {
    if (++told > kMaxRows) break;
    out += fmt::format(
        "{} covariates: MAE {:.5g}, without them {:.5g} ({} of it{})\n", shown(gain.symbol, 16),
        gain.mae, gain.mae_without, number(gain.mae / gain.mae_without, "{:.3f}"),
        gain.test.too_few() ? std::string() : fmt::format(", p {:.2g}", gain.test.p_value));
  }
  const backtest::ScaleEffect& e = result.scale_effect;
  if (e.contexts > 0) {
    out += fmt::format(
        "input scale: {:.0f} % of contexts lie below the model's smallest scale at 1, {:.0f} % as "
        "used; "
        "80 % intervals {} % wide at 1, {} % as used\n",
        100 * e.swamped_at_one, 100 * e.swamped_at_scale, number(e.width_at_one, "{:.2f}"),
        number(e.width_at_scale, "{:.2f}"));
  }
  if (!trades.empty()) {
    out += "illustration, no advice: long, flat or short after the sign of the forecast\n";
    if (std::ranges::any_of(trades, [](const backtest::Trades& t) { return !t.yearly; })) {
      out += "the times are an index: nothing is said per year\n";
    }
    for (const backtest::Trades& t : trades) {
      out += fmt::format(
          "{} return {:>8} %, Sharpe {:>6}, drawdown {:>6} %, fee {:>5} %; held {:>8} %\n",
          shown(t.symbol.empty() ? "all, equal parts" : traded(t), 20),
          number(100 * t.total_return, "{:.1f}"), number(t.sharpe, "{:.2f}"),
          number(100 * t.drawdown, "{:.1f}"), number(100 * t.fee, "{:.3g}"),
          number(100 * t.hold_return, "{:.1f}"));
    }
  }
  return out;
}

std::string statistics_json(const LoadReport& how, const backtest::RunStatistics& s,
                            const Counters* counters) {
  const double hits =
      s.distinct == 0 ? 0 : static_cast<double>(s.cache_hits) / static_cast<double>(s.distinct);
  nlohmann::ordered_json out = {{"version", TOTO_VERSION},
                                {"mode", word(how.mode)},
                                {"type", word(how.precision)},
                                {"device", how.device},
                                {"isa", how.isa},
                                {"weights", how.weights},
                                {"contexts_requested", s.requested},
                                {"contexts_distinct", s.distinct},
                                {"cache_hits", s.cache_hits},
                                {"cache_hit_rate", hits},
                                {"cache_entries_damaged", s.damaged},
                                {"forecasts_made", s.forecast},
                                {"input_scale_least", s.least_scale},
                                {"input_scale_most", s.most_scale},
                                {"contexts_forecast_across_a_missing_end", s.across},
                                {"bars_clamped", s.clamped},
                                {"bars_bounded", s.bounded},
                                {"seconds", s.seconds},
                                {"series_per_second", s.series_per_second},
                                {"largest_call", s.batch},
                                {"call_seconds_p50", s.call_p50},
                                {"call_seconds_p95", s.call_p95},
                                {"call_seconds_p99", s.call_p99},
                                {"forecasts_timed_alone", s.timed_alone},
                                {"forecast_seconds_p50", s.latency_p50},
                                {"forecast_seconds_p95", s.latency_p95},
                                {"forecast_seconds_p99", s.latency_p99}};
  if (counters != nullptr) out["counters"] = nlohmann::ordered_json::parse(to_json(*counters));
  return out.dump(2) + "\n";
}

}  // namespace toto::cli
