// SPDX-License-Identifier: Apache-2.0
#include "tools/detect/step_distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "statistics/knots.h"

namespace toto::detect {
namespace {

/// How far beyond the outermost quantile the probability falls by a factor of e.
double tail_length(std::span<const double> knots, double outer, double inner) {
  const double step = std::abs(outer - inner) / std::log(2.0);
  // Quantiles that coincide say that nothing else happens; rounding of float32 is allowed for.
  const double least = std::max(1e-6 * std::abs(outer), 1e-30);
  const double spread = std::abs(knots.back() - knots.front());
  return std::max({step, 1e-3 * spread, least});
}

}  // namespace

std::vector<double> knot_levels(std::size_t knots) {
  std::vector<double> levels(knots);
  for (std::size_t i = 0; i < knots; ++i) levels[i] = knot_level(i, knots);
  return levels;
}

Tails knot_tails(std::span<const double> knots, double x) {
  const std::size_t n = knots.size();
  const double outer = knot_level(0, n);  // the probability beyond each end
  if (x < knots.front()) {
    const double p =
        outer * std::exp((x - knots.front()) / tail_length(knots, knots.front(), knots[1]));
    return {p, 1 - p};
  }
  if (x > knots.back()) {
    const double p =
        outer * std::exp((knots.back() - x) / tail_length(knots, knots.back(), knots[n - 2]));
    return {1 - p, p};
  }
  // Quantiles that coincide are a value with a probability of its own.
  const auto first = std::lower_bound(knots.begin(), knots.end(), x);
  const auto end = std::upper_bound(knots.begin(), knots.end(), x);
  if (first != end) {
    return {knot_level(static_cast<std::size_t>(end - knots.begin()) - 1, n),
            1 - knot_level(static_cast<std::size_t>(first - knots.begin()), n)};
  }
  const auto after = static_cast<std::size_t>(first - knots.begin());
  const double share = (x - knots[after - 1]) / (knots[after] - knots[after - 1]);
  const double p = knot_level(after - 1, n) + share / static_cast<double>(n + 1);
  return {p, 1 - p};
}

double knot_tail_quantile(std::span<const double> knots, double level) {
  const std::size_t n = knots.size();
  const double outer = knot_level(0, n);
  if (level < outer) {
    return knots.front() + tail_length(knots, knots.front(), knots[1]) * std::log(level / outer);
  }
  if (1 - level < outer) {
    return knots.back() -
           tail_length(knots, knots.back(), knots[n - 2]) * std::log((1 - level) / outer);
  }
  return knot_quantile(knots, level);
}

StepReader::StepReader(const Forecast& forecast)
    : forecast_(forecast),
      mixture_(forecast.parameters.components > 0 && !forecast.parameters.df.empty()),
      distribution_(std::max<std::size_t>(1, forecast.parameters.components)) {
  if (!mixture_) knots_.resize(forecast.levels.size());
}

void StepReader::select(std::size_t variate, std::size_t step) {
  const std::size_t cells = forecast_.variates * forecast_.horizon;
  const std::size_t cell = variate * forecast_.horizon + step;
  if (!mixture_) {
    for (std::size_t q = 0; q < knots_.size(); ++q) {
      knots_[q] = static_cast<double>(forecast_.quantiles[q * cells + cell]);
    }
    std::ranges::sort(knots_);
    return;
  }
  const Parameters& p = forecast_.parameters;
  const auto part = [&](const std::vector<double>& all) {
    return std::span(all).subspan(cell * p.components, p.components);
  };
  distribution_.assign(part(p.df), part(p.loc), part(p.scale), part(p.probability));
  loc_ = p.affine_loc[cell];
  scale_ = p.affine_scale[cell];
}

Tails StepReader::tails(double x) const {
  if (!mixture_) return knot_tails(knots_, x);
  const double z = (x - loc_) / scale_;
  return {distribution_.cdf(z), distribution_.upper(z)};
}

double StepReader::quantile(double level) const {
  if (!mixture_) return knot_tail_quantile(knots_, level);
  return loc_ + scale_ * distribution_.quantile(level);
}

}  // namespace toto::detect
