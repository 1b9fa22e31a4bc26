// SPDX-License-Identifier: Apache-2.0
// That draws are those of (seed, series, variate, sample, step), stay with more of them, and change
// with the seed. A check that met no draw has measured nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/draw.h"
#include "core/philox.h"
#include "tools/verify/request.h"

namespace toto::verify {
namespace {

/// `count` of nothing is not a number.
double of_some(std::size_t count, std::size_t all) {
  return all == 0 ? std::nan("") : static_cast<double>(count);
}

/// Where a draw must lie: at a value, or between two quantiles.
struct Range {
  double low, high;
};

/// `cell` of the arrays [V][H].
Range of_mixture(const Forecast& f, std::size_t cell, const PhiloxWords& words) {
  const Parameters& p = f.parameters;
  const std::size_t k = p.components;
  const double drawn =
      draw_mixture(p.df.data() + cell * k, p.loc.data() + cell * k, p.scale.data() + cell * k,
                   p.probability.data() + cell * k, 1, static_cast<int>(k), words);
  const double y = p.affine_loc[cell] + p.affine_scale[cell] * drawn;
  return {y, y};
}

/// Between the quantiles that were asked for on either side of the draw's level.
Range of_quantiles(const Forecast& f, std::size_t cell, const PhiloxWords& words) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const std::size_t cells = f.variates * f.horizon;
  const double level = quantile_level(words);
  const auto above = static_cast<std::size_t>(
      std::upper_bound(f.levels.begin(), f.levels.end(), level) - f.levels.begin());
  const auto at = [&](std::size_t i) { return static_cast<double>(f.quantiles[i * cells + cell]); };
  return {above == 0 ? -kNone : at(above - 1), above == f.levels.size() ? kNone : at(above)};
}

Check addresses(const ForecastOptions& options, const std::vector<Forecast>& all) {
  std::size_t wrong = 0, count = 0;
  bool mixture = true;
  std::string where;
  for (const Forecast& f : all) {
    const std::size_t cells = f.variates * f.horizon;
    mixture = f.parameters.components > 0;
    for (std::size_t at = 0; at < f.samples.size(); ++at) {
      const std::size_t sample = at / cells;
      const std::size_t cell = at % cells;
      const std::size_t step = cell % f.horizon;
      // Beyond the exact steps the parameters that were kept are those of trajectory 0, and
      // quantiles are those of the trajectories.
      if (step >= f.exact_steps && (sample > 0 || !mixture)) continue;
      const DrawAddress address{series_key(f.id), static_cast<std::uint32_t>(cell / f.horizon),
                                static_cast<std::uint32_t>(sample),
                                static_cast<std::uint32_t>(step)};
      const PhiloxWords words = draw_words(options.seed.value_or(0), address);
      const Range range = mixture ? of_mixture(f, cell, words) : of_quantiles(f, cell, words);
      const auto found = static_cast<double>(f.samples[at]);
      const double slack = 1e-5 * (std::abs(found) + std::abs(f.parameters.affine_scale[cell]));
      ++count;
      if (found >= range.low - slack && found <= range.high + slack) continue;
      ++wrong;
      if (where.empty()) {
        where =
            fmt::format("first: series '{}', variate {}, sample {}, step {}: {} is not in {} .. {}",
                        f.id, address.variate, sample, step, found, range.low, range.high);
      }
    }
  }
  return measured(
      "draw addresses", "draws that are not those of (seed, series, variate, sample, step)",
      of_some(wrong, count), 0, "draws",
      !where.empty() ? where
      : mixture      ? fmt::format("{} draws made again from the parameters", count)
                : fmt::format("{} draws held against the quantiles around their levels", count));
}

Check more_samples(Forecaster& forecaster, const Request& request,
                   const std::vector<Forecast>& all) {
  ForecastOptions options = request.options;
  options.num_samples *= 2;
  const std::vector<Forecast> more = forecaster.forecast(request.series, options);
  std::size_t moved = 0, count = 0;
  for (std::size_t i = 0; i < more.size(); ++i) {
    const std::size_t kept = all[i].samples.size();
    count += kept;
    const bool same =
        kept > 0 && more[i].samples.size() == 2 * kept &&
        std::memcmp(more[i].samples.data(), all[i].samples.data(), kept * sizeof(float)) == 0;
    moved += same ? 0 : 1;
  }
  return measured("more samples", "series whose first trajectories change with more",
                  of_some(moved, count), 0, "series", fmt::format("{} draws", count));
}

/// The steps that are computed from the mixture do not depend on the seed.
bool same_exact_steps(const Forecast& a, const Forecast& b) {
  if (a.quantiles.size() != b.quantiles.size()) return false;
  for (std::size_t i = 0; i < a.quantiles.size(); ++i) {
    if (i % a.horizon < a.exact_steps && a.quantiles[i] != b.quantiles[i]) return false;
  }
  return true;
}

Check another_seed(Forecaster& forecaster, const Request& request,
                   const std::vector<Forecast>& all) {
  ForecastOptions options = request.options;
  options.seed = options.seed.value_or(0) + 1;
  const std::vector<Forecast> other = forecaster.forecast(request.series, options);
  std::size_t equal = 0, count = 0, changed = 0;
  for (std::size_t i = 0; i < other.size(); ++i) {
    changed += same_exact_steps(other[i], all[i]) ? 0 : 1;
    const std::size_t draws = std::min(other[i].samples.size(), all[i].samples.size());
    count += draws;
    for (std::size_t j = 0; j < draws; ++j) {
      equal += other[i].samples[j] == all[i].samples[j] ? 1 : 0;
    }
  }
  Check c =
      measured("another seed", "draws that are equal under another seed",
               of_some(equal, count) / static_cast<double>(count), 0.5, "of all",
               fmt::format("{} draws; exact statistics changed in {} series", count, changed));
  if (changed > 0) c.verdict = Verdict::fails;
  return c;
}

}  // namespace

std::vector<Check> check_draws(Forecaster& forecaster, const Request& request,
                               const std::vector<Forecast>& all) {
  return {addresses(request.options, all), more_samples(forecaster, request, all),
          another_seed(forecaster, request, all)};
}

}  // namespace toto::verify
