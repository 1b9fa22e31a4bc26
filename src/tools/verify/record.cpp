// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/record.h"

#include <cmath>
#include <limits>

namespace toto::verify {

std::vector<double>& RecordProbe::patch(std::int32_t iteration) {
  const auto i = static_cast<std::size_t>(iteration);
  if (record.patches.size() <= i) record.patches.resize(i + 1);
  return record.patches[i];
}

void RecordProbe::parameters(const PatchView& at, std::span<const double> params,
                             std::span<const double> loc, std::span<const double> scale) {
  const bool first = at.iteration == 0;
  if (first && at.first_sample != 0) return;
  const auto k = static_cast<std::size_t>(at.components);
  const auto steps = static_cast<std::size_t>(at.patch);
  const std::size_t lanes =
      static_cast<std::size_t>(at.variates) * static_cast<std::size_t>(first ? 1 : at.trajectories);
  std::vector<double>& numbers = patch(at.iteration);
  const std::size_t count = lanes * static_cast<std::size_t>(at.steps) * 4 * k;
  for (std::size_t i = 0; i < count; ++i) {
    // Degrees of freedom have no scale of their own: their logarithm is compared.
    numbers.push_back(i / k % 4 == 0 ? std::log(params[i]) : params[i]);
  }
  for (std::size_t i = 0; i < lanes * steps; ++i) {
    numbers.push_back(loc[i] / scale[i]);
    numbers.push_back(std::log(scale[i]));
  }
  const auto own = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(at.variates) * steps);
  if (at.first_sample == 0) scale_[at.series].assign(scale.begin(), scale.begin() + own);
}

void RecordProbe::quantiles(const PatchView& at, std::span<const double> quantiles,
                            std::span<const double> loc, std::span<const double> scale) {
  std::vector<double>& numbers = patch(at.iteration);
  const auto q = static_cast<std::size_t>(at.components);
  const auto steps = static_cast<std::size_t>(at.steps);
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const std::size_t cell = i / q;
    const std::size_t lane = cell / steps;
    numbers.push_back(quantiles[i] /
                      scale[lane * static_cast<std::size_t>(at.patch) + cell % steps]);
  }
  for (std::size_t i = 0; i < loc.size(); ++i) {
    numbers.push_back(loc[i] / scale[i]);
    numbers.push_back(std::log(scale[i]));
  }
}

void RecordProbe::values(const PatchView& at, std::span<const double> y) {
  if (!values_ || at.first_sample != 0) return;
  const std::vector<double>& scale = scale_[at.series];
  std::vector<double>& numbers = patch(at.iteration);
  for (std::size_t i = 0; i < scale.size(); ++i) numbers.push_back(y[i] / scale[i]);
}

Distance distance(const Record& a, const Record& b) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  Distance d;
  std::size_t count = 0;
  if (a.patches.size() != b.patches.size() || a.patches.empty()) return {kNone, kNone, 0};
  for (std::size_t p = 0; p < a.patches.size(); ++p) {
    if (a.patches[p].size() != b.patches[p].size()) return {kNone, kNone, p};
    for (std::size_t i = 0; i < a.patches[p].size(); ++i) {
      const double wanted = b.patches[p][i];
      const double error = std::abs(a.patches[p][i] - wanted) / (1 + std::abs(wanted));
      if (!std::isfinite(error)) return {kNone, kNone, p};
      d.mean += error;
      ++count;
      if (error > d.largest) {
        d.largest = error;
        d.patch = p;
      }
    }
  }
  if (count == 0) return {kNone, kNone, 0};
  d.mean /= static_cast<double>(count);
  return d;
}

}  // namespace toto::verify
