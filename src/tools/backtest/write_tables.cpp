// SPDX-License-Identifier: Apache-2.0
// forecasts.csv and metrics.csv. The same results give the same bytes.
#include <fmt/format.h>

#include <cmath>

#include "data/text_writer.h"
#include "data/value_offset.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {
namespace {

std::string level_name(double level) { return fmt::format("q{:g}", level); }

/// The shortest digits that give the same double back; empty where it is not finite.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

/// What was a float stays one: no digits that it does not have.
std::string single(double value, double offset) {
  if (!std::isfinite(value)) return "";
  if (offset == 0) return fmt::format("{}", static_cast<float>(value));
  return fmt::format("{}", data::with_offset(offset, static_cast<float>(value - offset)));
}

}  // namespace

void write_forecasts(const data::TextSink& sink, const Result& result, const Options& options) {
  data::TextWriter out(sink);
  out.raw("symbol,target,window,step,origin,ds,last,actual,toto");
  for (std::size_t s = 1; s < kSources; ++s) {
    out.raw(fmt::format(",{}", word(static_cast<Source>(s))));
  }
  out.raw(",mean");
  for (const double level : levels()) out.raw(fmt::format(",{}", level_name(level)));
  out.raw("\n");
  for (const Cell& cell : result.cells) {
    const Symbol& symbol = result.symbols[cell.symbol];
    const double offset = cell.value_offset;
    const std::size_t origin =
        options.rolling == Rolling::one_step ? cell.bar - 1 : cell.bar - cell.step;
    out.csv_field(symbol.name).raw(",").csv_field(symbol.targets[cell.target]);
    out.raw(fmt::format(",{},{},{},{},{},{},{}", cell.window, cell.step,
                        data::format_time(symbol.times[origin], symbol.style),
                        data::format_time(cell.time, symbol.style), single(cell.base, offset),
                        single(cell.actual, offset), single(cell.model.point, offset)));
    for (const double point : cell.baseline) out.raw(fmt::format(",{}", number(point)));
    out.raw(fmt::format(",{}", single(cell.model.mean, offset)));
    for (const float q : cell.model.quantiles) {
      out.raw(offset == 0 ? fmt::format(",{}", q)
                          : fmt::format(",{}", data::with_offset(offset, q)));
    }
    out.raw("\n");
  }
  out.finish();
}

void write_metrics(const data::TextSink& sink, std::span<const Metrics> metrics) {
  data::TextWriter out(sink);
  out.raw(
      "symbol,target,step,forecaster,count,mae,rmse,mape,smape,mase,return_mae,wql,crps,"
      "coverage_50,coverage_80,coverage_90,width_50,width_80,width_90,"
      "direction,direction_low,direction_high,directions");
  for (std::size_t b = 1; b < kSources; ++b) {
    const std::string_view name = word(static_cast<Source>(b));
    out.raw(fmt::format(",dm_{},p_{}", name, name));
  }
  for (const double level : levels()) out.raw(fmt::format(",pinball_{:g}", level));
  for (const double level : levels()) out.raw(fmt::format(",below_{:g}", level));
  out.raw("\n");
  for (const Metrics& m : metrics) {
    out.csv_field(m.symbol.empty() ? "*" : m.symbol).raw(",");
    out.csv_field(m.target.empty() ? "*" : m.target).raw(",");
    out.raw(m.step == 0 ? "*" : fmt::format("{}", m.step));
    out.raw(fmt::format(",{},{}", word(m.source), m.count));
    for (const double value : {m.mae, m.rmse, m.mape, m.smape, m.mase, m.return_mae, m.wql, m.crps,
                               m.coverage[0], m.coverage[1], m.coverage[2], m.width[0], m.width[1],
                               m.width[2], m.direction, m.direction_low, m.direction_high}) {
      out.raw(",").raw(number(value));
    }
    out.raw(fmt::format(",{}", m.directions));
    for (const PairedTest& test : m.against) {
      out.raw(fmt::format(",{},{}", number(test.statistic), number(test.p_value)));
    }
    for (const double value : m.pinball) out.raw(",").raw(number(value));
    for (const double value : m.below) out.raw(",").raw(number(value));
    out.raw("\n");
  }
  out.finish();
}

}  // namespace toto::backtest
