// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/reality_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/philox.h"
#include "tools/backtest/measures.h"

namespace toto::backtest {
namespace {

constexpr std::size_t kResamples = 2000;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

constexpr std::uint64_t kSeed = 0x746F746F;  // any: fixed, so that p is the same again

/// A number below `count`, addressed by the resample and its place in it.
std::size_t draw_below(std::size_t count, std::size_t resample, std::size_t place) {
  const PhiloxWords words = philox4x32_10(
      {{static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(resample), 0, 0}}, kSeed);
  return static_cast<std::size_t>(std::uint64_t{words.x[0]} * count >> 32);
}

/// How often each origin is in a resample: blocks of consecutive ones, the last cut to size.
std::vector<double> draw_counts(std::size_t origins, std::size_t block, std::size_t resample) {
  std::vector<double> counts(origins, 0);
  std::size_t drawn = 0;
  for (std::size_t b = 0; drawn < origins; ++b) {
    const std::size_t first = draw_below(origins, resample, b);
    for (std::size_t i = 0; i < block && drawn < origins; ++i, ++drawn) {
      counts[(first + i) % origins] += 1;
    }
  }
  return counts;
}

}  // namespace

double reality_check(const std::vector<std::vector<double>>& leads, std::size_t overlap) {
  if (leads.empty()) return 1;
  const std::size_t origins = leads.front().size();
  if (origins < fewest_origins(overlap)) return NAN;
  std::vector<double> means;
  means.reserve(leads.size());
  for (const std::vector<double>& one : leads) means.push_back(mean(one));
  const double best = std::ranges::max(means);
  if (!(best > 0)) return 1;
  std::size_t as_large = 0;
  for (std::size_t r = 0; r < kResamples; ++r) {
    const std::vector<double> counts = draw_counts(origins, overlap + 1, r);
    double largest = -INFINITY;
    for (std::size_t c = 0; c < leads.size(); ++c) {
      const double again = std::inner_product(counts.begin(), counts.end(), leads[c].begin(), 0.0) /
                           static_cast<double>(origins);
      largest = std::max(largest, again - means[c]);
    }
    as_large += largest >= best ? 1 : 0;
  }
  return static_cast<double>(as_large) / static_cast<double>(kResamples);
}

}  // namespace toto::backtest
