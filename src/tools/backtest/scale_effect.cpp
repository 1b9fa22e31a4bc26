// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/scale_effect.h"

#include <algorithm>
#include <cmath>

#include "tools/backtest/transform.h"

namespace toto::backtest {
namespace {

constexpr std::size_t kLow = 1, kHigh = 17;    // levels 0.1 and 0.9
const double kSmallestScale = std::sqrt(0.1);  // of the model's scaler

/// The standard deviation of what the model is shown, at scale 1.
double spread_of(const Symbol& symbol, const Request& request, std::size_t target,
                 Transform transform) {
  std::vector<float> values;
  std::vector<std::uint8_t> mask;
  const std::size_t first = request.last + 1 - request.bars;
  show(transform, 1, symbol.offset_of(target),
       symbol.values_of(target).subspan(first, request.bars),
       symbol.mask_of(target).subspan(first, request.bars), values, mask);
  double sum = 0;
  for (const float x : values) sum += x;
  const double mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (const float x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

struct Sums {
  double error = 0, width = 0;
  std::size_t count = 0;

  /// `stored` and `actual` are differences from `offset`.
  void add(const float* stored, double offset, double actual, double last) {
    const double base = offset + last;
    if (std::isnan(actual) || base == 0) return;
    error += std::abs(stored[0] - actual) / std::abs(base);
    width += (stored[2 + kHigh] - stored[2 + kLow]) / std::abs(base);
    ++count;
  }
  [[nodiscard]] double percent(double sum) const {
    return count == 0 ? NAN : 100 * sum / static_cast<double>(count);
  }
};

}  // namespace

ScaleEffect measure_scale_effect(Predictor& predictor, const Result& result,
                                 std::span<const Request> requests,
                                 std::span<const std::size_t> answers, const Options& options) {
  ScaleEffect effect;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Parameters& parameters = result.parameters[requests[i].symbol];
    // An automatic scale matters for returns, which are small; values are measured as they are.
    const bool asked = has_automatic_scale(parameters) ? parameters.transform != Transform::none
                                                       : parameters.input_scale != 1;
    if (asked) chosen.push_back(i);
  }
  const std::size_t most = std::min(options.scale_probe, chosen.size());
  if (most == 0) return effect;
  for (std::size_t i = 0; i < most; ++i) chosen[i] = chosen[i * chosen.size() / most];
  chosen.resize(most);

  std::vector<Parameters> at_one = result.parameters;
  for (Parameters& parameters : at_one) parameters.input_scale = 1;
  std::vector<Request> probe;
  probe.reserve(chosen.size());
  for (const std::size_t i : chosen) probe.push_back(requests[i]);
  const auto answers_at_one = predictor.predict(result.symbols, at_one, probe);

  Sums one, scaled;
  for (std::size_t i = 0; i < probe.size(); ++i) {
    const Request& request = probe[i];
    const Symbol& symbol = result.symbols[request.symbol];
    const Parameters& parameters = result.parameters[request.symbol];
    const std::size_t variates = variates_of(symbol, options);
    for (std::size_t v = 0; v < variates; ++v) {
      const std::size_t target = request.target + v;
      const auto values = symbol.values_of(target);
      const double spread = spread_of(symbol, request, target, parameters.transform);
      const double share = 1 / static_cast<double>(probe.size() * variates);
      effect.swamped_at_one += spread < kSmallestScale ? share : 0;
      const bool swamped =
          !has_automatic_scale(parameters) && spread * input_scale(parameters) < kSmallestScale;
      effect.swamped_at_scale += swamped ? share : 0;
      for (std::size_t h = 0; h < request.steps; ++h) {
        const std::size_t bar = request.last + 1 + h;
        const double actual = symbol.mask_of(target)[bar] != 0 ? values[bar] : NAN;
        const std::size_t at = (v * request.steps + h) * kStored;
        const double offset = symbol.offset_of(target), last = values[request.last];
        one.add(predictor.stored(answers_at_one[i]).data() + at, offset, actual, last);
        scaled.add(predictor.stored(answers[chosen[i]]).data() + at, offset, actual, last);
      }
    }
  }
  effect.contexts = probe.size();
  effect.mae_at_one = one.percent(one.error);
  effect.width_at_one = one.percent(one.width);
  effect.mae_at_scale = scaled.percent(scaled.error);
  effect.width_at_scale = scaled.percent(scaled.width);
  return effect;
}

}  // namespace toto::backtest
