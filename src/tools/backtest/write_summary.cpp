// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "settings/words.h"
#include "tools/backtest/describe.h"
#include "tools/backtest/read_forecast.h"

namespace toto::backtest {

using nlohmann::ordered_json;

ordered_json json_number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json to_json(const Metrics& m) {
  ordered_json out = {{"symbol", m.symbol.empty() ? "*" : m.symbol},
                      {"target", m.target.empty() ? "*" : m.target},
                      {"step", m.step},
                      {"forecaster", word(m.source)},
                      {"count", m.count}};
  for (const auto& [name, value] :
       {std::pair("mae", m.mae), std::pair("rmse", m.rmse), std::pair("mape", m.mape),
        std::pair("smape", m.smape), std::pair("mase", m.mase),
        std::pair("return_mae", m.return_mae), std::pair("wql", m.wql), std::pair("crps", m.crps),
        std::pair("coverage_50", m.coverage[0]), std::pair("coverage_80", m.coverage[1]),
        std::pair("coverage_90", m.coverage[2]), std::pair("width_50", m.width[0]),
        std::pair("width_80", m.width[1]), std::pair("width_90", m.width[2]),
        std::pair("direction", m.direction), std::pair("direction_low", m.direction_low),
        std::pair("direction_high", m.direction_high)}) {
    out[name] = json_number(value);
  }
  out["directions"] = m.directions;
  if (m.source != Source::model) return out;
  for (std::size_t b = 1; b < kSources; ++b) {
    const PairedTest& test = m.against[b - 1];
    out["against"][std::string(word(static_cast<Source>(b)))] = {
        {"origins", test.count},
        {"origins_needed", test.needed},
        {"statistic", json_number(test.statistic)},
        {"p_value", json_number(test.p_value)}};
  }
  return out;
}

ordered_json to_json(const Trades& t) {
  return {{"symbol", t.symbol.empty() ? "*" : t.symbol},
          {"target", t.target.empty() ? "*" : t.target},
          {"periods", t.periods},
          {"fee", json_number(t.fee)},
          {"total_return", json_number(t.total_return)},
          {"yearly", t.yearly},
          {"yearly_return", json_number(t.yearly_return)},
          {"yearly_volatility", json_number(t.yearly_volatility)},
          {"sharpe", json_number(t.sharpe)},
          {"drawdown", json_number(t.drawdown)},
          {"turnover", json_number(t.turnover)},
          {"hold_return", json_number(t.hold_return)},
          {"hold_sharpe", json_number(t.hold_sharpe)}};
}

ordered_json to_json(const Parameters& p) {
  return {{"context", p.context},
          {"samples", p.samples},
          {"transform", word(p.transform)},
          {"input_scale",
           has_automatic_scale(p) ? ordered_json("automatic") : ordered_json(p.input_scale)},
          {"aggregate", p.aggregate},
          {"width_below", p.width_below},
          {"width_above", p.width_above}};
}

ordered_json describe_run(const Result& result, const Options& options, const RunDescription& run) {
  ordered_json symbols = ordered_json::array();
  for (std::size_t s = 0; s < result.symbols.size(); ++s) {
    const Symbol& symbol = result.symbols[s];
    ordered_json findings = ordered_json::array();
    for (const Finding& finding : symbol.findings) {
      findings.push_back(
          {{"code", finding.code}, {"count", finding.count}, {"message", finding.message}});
    }
    symbols.push_back({{"symbol", symbol.name},
                       {"bars", symbol.bars},
                       {"first", data::format_time(symbol.times.front(), symbol.style)},
                       {"last", data::format_time(symbol.times.back(), symbol.style)},
                       {"interval", data::describe(symbol.interval)},
                       {"season", result.season[s]},
                       {"contexts_without_season", result.unseasonal[s]},
                       {"windows", result.windows[s]},
                       {"parameters", to_json(result.parameters[s])},
                       {"findings", findings}});
  }
  ordered_json errors = ordered_json::array();
  for (const data::SeriesError& one : result.errors) {
    errors.push_back(
        {{"symbol", one.id}, {"code", one.error.code()}, {"message", one.error.what()}});
  }
  const ScaleEffect& e = result.scale_effect;
  const ModelDefaults taken = settled(options, run.defaults);
  return {{"model",
           {{"name", run.model},
            {"family", run.family},
            {"synthetic", run.synthetic},
            {"weights", run.model_hash},
            {"precision", run.precision},
            {"mode", run.mode},
            {"decode", run.decode}}},
          {"options",
           {{"rolling", word(options.rolling)},
            {"horizon", options.horizon},
            {"stride", options.stride == 0 ? options.horizon : options.stride},
            {"joint", options.joint},
            {"seed", options.seed},
            {"decode_block_size", options.decoding.decode_block_size},
            {"has_missing_values", options.decoding.has_missing_values},
            {"scaler_fallback_min_obs", options.decoding.scaler_fallback_min_obs},
            {"quantile_real_cap_k", options.decoding.quantile_real_cap_k},
            {"paths", word(taken.paths)},
            {"tails", word(taken.tails)},
            {"views", to_text(options.views)},
            {"from", options.from},
            {"to", options.to}}},
          {"exact_steps", result.exact_steps},
          {"contexts",
           {{"requested", result.statistics.requested}, {"distinct", result.statistics.distinct}}},
          {"input_scale_effect",
           {{"contexts", e.contexts},
            {"return_mae_at_one", json_number(e.mae_at_one)},
            {"return_mae_at_scale", json_number(e.mae_at_scale)},
            {"width_80_at_one", json_number(e.width_at_one)},
            {"width_80_at_scale", json_number(e.width_at_scale)},
            {"swamped_at_one", json_number(e.swamped_at_one)},
            {"swamped_at_scale", json_number(e.swamped_at_scale)}}},
          {"symbols", symbols},
          {"errors", errors}};
}

void write_summary(const data::TextSink& sink, const Result& result,
                   std::span<const Metrics> metrics, std::span<const Trades> trades,
                   const Options& options, const RunDescription& run) {
  ordered_json out = describe_run(result, options, run);
  out["metrics"] = ordered_json::array();
  for (const Metrics& m : metrics) {
    if (m.step == 0) out["metrics"].push_back(to_json(m));
  }
  if (!result.covariate_gain.empty()) {
    out["covariates"] = ordered_json::array();
    for (const CovariateGain& g : result.covariate_gain) {
      out["covariates"].push_back({{"symbol", g.symbol},
                                   {"count", g.count},
                                   {"mae", json_number(g.mae)},
                                   {"mae_without", json_number(g.mae_without)},
                                   {"ratio", json_number(g.mae / g.mae_without)},
                                   {"p_value", json_number(g.test.p_value)}});
    }
  }
  if (!trades.empty()) {
    out["illustration"] = ordered_json::array();
    for (const Trades& t : trades) out["illustration"].push_back(to_json(t));
  }
  // Names may hold any bytes.
  sink(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  sink("\n");
}

}  // namespace toto::backtest
