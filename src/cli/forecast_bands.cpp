// SPDX-License-Identifier: Apache-2.0
#include "cli/forecast_bands.h"

#include <algorithm>
#include <cmath>

#include "cli/arguments.h"

namespace toto::cli {
namespace {

/// 99.9 percent leave 0.0005 on either side, and not 0.00049999999999997.
double rounded(double share) { return std::round(share * 1e15) / 1e15; }

}  // namespace

std::vector<BandLevels> parse_bands(std::string_view text, std::string_view where) {
  std::vector<BandLevels> bands;
  while (true) {
    const std::string_view word = text.substr(0, text.find(','));
    const double percent = parse_number(word, where, "invalid_level", 0, 100);
    const double lower = rounded((100 - percent) / 200);
    const double upper = rounded((100 + percent) / 200);
    if (!(percent > 0 && lower > 0 && upper < 1)) {
      throw Error(ExitStatus::usage, "invalid_level",
                  "expected percent between 0 and 100, found '" + std::string(word) + "'", where);
    }
    bands.push_back({percent / 100, lower, upper});
    if (word.size() == text.size()) break;
    text.remove_prefix(word.size() + 1);
  }
  std::ranges::sort(bands, {}, &BandLevels::level);
  const auto same = [](const BandLevels& a, const BandLevels& b) { return a.level == b.level; };
  bands.erase(std::unique(bands.begin(), bands.end(), same), bands.end());
  return bands;
}

std::vector<BandLevels> bands_of(std::span<const double> levels) {
  std::vector<BandLevels> bands;
  for (const double lower : levels) {
    if (lower >= 0.5) continue;
    for (const double upper : levels) {
      if (std::abs(lower + upper - 1) > 1e-9) continue;
      // 0.95 - 0.05 is no round number; what was asked for is.
      bands.push_back({std::round((upper - lower) * 1e9) / 1e9, lower, upper});
    }
  }
  std::ranges::sort(bands, {}, &BandLevels::level);
  return bands;
}

std::vector<BandLevels> default_table_bands() { return {{0.8, 0.1, 0.9}}; }

void add_levels(std::span<const BandLevels> bands, std::vector<double>& levels) {
  for (const BandLevels& band : bands) levels.insert(levels.end(), {band.lower, band.upper});
  std::ranges::sort(levels);
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
}

}  // namespace toto::cli
