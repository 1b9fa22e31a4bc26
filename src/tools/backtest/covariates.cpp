// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/covariates.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/backtest/measures.h"
#include "toto/tools/regress.hpp"

namespace toto::backtest {

bool uses_covariates(const Symbol& symbol, const Options& options) {
  return options.covariates && !symbol.covariates.empty();
}

Effect take_out(const Symbol& symbol, const Request& request, std::size_t v,
                std::span<float> values) {
  const std::size_t columns = symbol.covariates.size();
  const std::size_t bars = request.bars;
  const std::size_t first = request.last + 1 - bars;
  const std::span<const std::uint8_t> mask = symbol.mask_of(v).subspan(first, bars);
  std::vector<float> known(columns * bars);
  for (std::size_t j = 0; j < columns; ++j) {
    const auto column = std::span(symbol.known).subspan(j * symbol.bars + first, bars);
    std::ranges::copy(column, known.begin() + static_cast<std::ptrdiff_t>(j * bars));
  }
  const regress::Fit fit = regress::fit(symbol.values_of(v).subspan(first, bars), mask, known);
  std::vector<double> x(columns);
  const auto row_at = [&](std::size_t bar) -> std::span<const double> {
    for (std::size_t j = 0; j < columns; ++j) {
      x[j] = static_cast<double>(symbol.known[j * symbol.bars + bar]);
    }
    return x;
  };
  for (std::size_t t = 0; t < bars && fit.found; ++t) {
    const bool gap = mask[t] == 0 && t > 0;
    values[t] =
        gap ? values[t - 1]
            : static_cast<float>(static_cast<double>(values[t]) - fit.effect(row_at(first + t)));
  }
  Effect effect;
  for (std::size_t h = 1; h <= request.steps; ++h) {
    const std::span<const double> row = row_at(request.last + h);
    effect.value.push_back(fit.effect(row));
    effect.deviation.push_back(std::sqrt(fit.variance(row)));
  }
  return effect;
}

void put_back(const Effect& effect, std::size_t points, std::span<float> answer) {
  const std::size_t width = answer.size() / effect.value.size();
  const std::size_t first = points + 1;  // of the quantiles
  const std::size_t median = first + kLevels / 2;
  for (std::size_t h = 0; h < effect.value.size(); ++h) {
    const std::span<float> cell = answer.subspan(h * width, width);
    const auto centre = static_cast<double>(cell[median]);
    const double spread =
        static_cast<double>(cell[first + kLevels - 1]) - static_cast<double>(cell[first]);
    const double factor =
        regress::stretch(effect.deviation[h], spread, levels().front(), levels().back());
    for (std::size_t i = 0; i < width; ++i) {
      const double by = i < first ? 1 : factor;
      cell[i] = static_cast<float>(centre + (static_cast<double>(cell[i]) - centre) * by +
                                   effect.value[h]);
    }
  }
}

std::vector<CovariateGain> covariate_gain(const Result& with, const Result& without,
                                          const Options& options) {
  struct Sum {
    double with = 0, without = 0;
    std::size_t count = 0;
  };
  std::map<std::uint32_t, std::map<std::uint32_t, Sum>> symbols;  // by window
  for (std::size_t i = 0; i < with.cells.size(); ++i) {
    const Cell& a = with.cells[i];
    if (!std::isfinite(a.actual)) continue;
    Sum& sum = symbols[a.symbol][a.window];
    sum.with += std::abs(a.actual - a.model.point);
    sum.without += std::abs(a.actual - without.cells[i].model.point);
    ++sum.count;
  }
  const std::size_t stride = options.stride == 0 ? options.horizon : options.stride;
  std::vector<CovariateGain> out;
  for (const auto& [symbol, windows] : symbols) {
    if (with.symbols[symbol].covariates.empty()) continue;
    CovariateGain gain;
    gain.symbol = with.symbols[symbol].name;
    std::vector<double> loss;
    std::vector<double> other;
    for (const auto& [window, sum] : windows) {
      gain.mae += sum.with;
      gain.mae_without += sum.without;
      gain.count += sum.count;
      loss.push_back(sum.with / static_cast<double>(sum.count));
      other.push_back(sum.without / static_cast<double>(sum.count));
    }
    gain.mae /= static_cast<double>(gain.count);
    gain.mae_without /= static_cast<double>(gain.count);
    gain.test = paired_test(loss, other, (options.horizon - 1) / stride);
    out.push_back(std::move(gain));
  }
  return out;
}

}  // namespace toto::backtest
