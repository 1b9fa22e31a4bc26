// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/without_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "models/model_impl.h"

namespace toto::verify {
namespace {

constexpr double kRounding = 1e-6;  // of scale: a device forms statistics in another order

struct Unlike {
  std::size_t numbers = 0, count = 0;
  double largest = 0;  // |a - b| / (scale + |b|)
  std::string where;
};

/// Bit by bit, and in units of the scale of a cell; cells repeat along the arrays.
void compare(const Forecast& kept, const std::vector<float>& plain,
             const std::vector<float>& wanted, Unlike& all) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const std::vector<double>& scale = kept.parameters.affine_scale;
  if (plain.size() != wanted.size() || scale.empty()) {
    ++all.numbers;
    all.largest = kNone;
    return;
  }
  all.count += wanted.size();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(plain[i]) == std::bit_cast<std::uint32_t>(wanted[i])) continue;
    ++all.numbers;
    const auto b = static_cast<double>(wanted[i]);
    const double error =
        std::abs(static_cast<double>(plain[i]) - b) / (scale[i % scale.size()] + std::abs(b));
    all.largest = std::isfinite(error) ? std::max(all.largest, error) : kNone;
    if (all.where.empty()) {
      all.where = fmt::format("first in series '{}', step {}", kept.id, i % kept.horizon + 1);
    }
  }
}

}  // namespace

std::vector<Check> without_parameters(Forecaster& forecaster, std::span<const Series> series,
                                      ForecastOptions options, const std::vector<Forecast>& kept,
                                      const std::string& name) {
  options.keep_parameters = false;
  const std::vector<Forecast> plain = forecaster.forecast(series, options);
  Unlike statistics, trajectories;
  if (plain.size() != kept.size()) {
    ++statistics.numbers;
    statistics.largest = std::numeric_limits<double>::infinity();
  }
  for (std::size_t i = 0; i < std::min(plain.size(), kept.size()); ++i) {
    compare(kept[i], plain[i].mean, kept[i].mean, statistics);
    compare(kept[i], plain[i].median, kept[i].median, statistics);
    compare(kept[i], plain[i].std, kept[i].std, statistics);
    compare(kept[i], plain[i].quantiles, kept[i].quantiles, statistics);
    compare(kept[i], plain[i].samples, kept[i].samples, trajectories);
  }
  const auto none = std::numeric_limits<double>::quiet_NaN();
  const Counters counters = forecaster.counters();
  const std::string how = fmt::format("; {} graphs played", counters.graph_replays);
  std::vector<Check> checks;
  // Trajectories are bits of the network and the draws on every device; statistics are formed by
  // the device itself where it records forecasts.
  if (forecaster.model().impl().net->backend().capture() == nullptr) {
    checks.push_back(measured(
        name + ", statistics", "numbers that differ when parameters are not kept",
        statistics.count == 0 ? none : static_cast<double>(statistics.numbers), 0, "numbers",
        (statistics.where.empty() ? fmt::format("{} numbers", statistics.count)
                                  : statistics.where) +
            how));
  } else {
    checks.push_back(
        measured(name + ", statistics", "largest difference when parameters are not kept",
                 statistics.count == 0 ? none : statistics.largest, kRounding, "of scale",
                 fmt::format("formed by the device, so not bit by bit; {} of {} numbers differ",
                             statistics.numbers, statistics.count) +
                     how));
  }
  if (!options.keep_samples) return checks;
  checks.push_back(measured(
      name + ", trajectories", "draws that differ when parameters are not kept",
      trajectories.count == 0 ? none : static_cast<double>(trajectories.numbers), 0, "draws",
      (trajectories.where.empty() ? fmt::format("{} draws", trajectories.count)
                                  : trajectories.where) +
          how));
  return checks;
}

}  // namespace toto::verify
