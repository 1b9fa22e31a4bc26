// SPDX-License-Identifier: Apache-2.0
#include "effects.h"

#include <algorithm>
#include <utility>

namespace toto::python {

bool regresses(CovariatesBy asked, const ModelInfo& model) {
  return asked == CovariatesBy::regress ||
         (asked == CovariatesBy::automatic && !model.trained_with_covariates());
}

void Effects::add(std::size_t index, data::TimeSeries given) {
  effects_.push_back({index, std::move(given), {}});
}

void Effects::take_out(std::span<Series> series) {
  for (Effect& effect : effects_) {
    effect.taken = regress::take_out(effect.given);
    Series& one = series[effect.index];
    one.values = effect.taken.residuals.values;
    one.mask = effect.taken.residuals.mask;
    one.value_offsets = effect.taken.residuals.value_offsets;
  }
}

ForecastOptions Effects::options_of_rest(ForecastOptions options) const {
  return effects_.empty() ? options : regress::options_of_residuals(std::move(options));
}

std::vector<Forecast> Effects::forecast(Forecaster& forecaster, std::span<const Series> series,
                                        const ForecastOptions& options) const {
  const ForecastOptions rest = options_of_rest(options);
  std::vector<Forecast> out;
  if (rest.guards == options.guards || effects_.size() == series.size()) {
    out = forecaster.forecast(series, rest);
  } else {
    std::vector<bool> regressed(series.size());
    for (const Effect& effect : effects_) regressed[effect.index] = true;
    out.resize(series.size());
    std::size_t before = 0;
    for (const bool now : {true, false}) {
      std::vector<Series> some;
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < series.size(); ++i) {
        if (regressed[i] != now) continue;
        some.push_back(series[i]);
        places.push_back(i);
      }
      ForecastOptions own = now ? rest : options;
      if (options.progress) {  // of this part, in hundredths of series of the whole
        own.progress = [&](std::size_t done, std::size_t total) {
          const std::size_t share = 100 * some.size() * done / std::max<std::size_t>(total, 1);
          return options.progress(100 * before + share, 100 * series.size());
        };
      }
      std::vector<Forecast> made = forecaster.forecast(some, own);
      for (std::size_t i = 0; i < made.size(); ++i) out[places[i]] = std::move(made[i]);
      before += some.size();
    }
  }
  put_back(out, options.guards);
  return out;
}

void Effects::put_back(std::span<Forecast> forecasts, const Guards& guards) const {
  for (const Effect& effect : effects_) {
    regress::put_back(forecasts[effect.index], effect.taken, guards);
  }
}

}  // namespace toto::python
