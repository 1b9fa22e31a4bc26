// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/band_width.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace toto::backtest {
namespace {

constexpr double kInside = 0.9;  // of the cells, on one side of a limit of the 80 % band
constexpr double kMostWidth = 4;

/// How far `actual` is from the median, in widths of that side of the band. Negative on the other
/// side.
double distance(double actual, double median, double limit) {
  const double width = limit - median;
  const double off = actual - median;
  if (width != 0) return off / width;
  return off == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), off);
}

double rank_of(std::vector<double>& distances) {
  const auto count = static_cast<double>(distances.size());
  const double rank = std::ceil((count + 1) * kInside);
  if (rank > count) return 1;
  const auto at = distances.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(distances.begin(), at, distances.end());
  return std::clamp(*at, 1 / kMostWidth, kMostWidth);
}

/// Whether the share that is beyond the band is a tenth but for chance. `excess` [windows]: that
/// share less a tenth.
bool may_be_chance(std::span<const double> excess, std::size_t overlap) {
  constexpr double kNormal95 = 1.96;
  const auto count = static_cast<double>(excess.size());
  double mean = 0;
  for (const double e : excess) mean += e / count;
  double variance = 0;
  for (std::size_t lag = 0; lag <= overlap && lag < excess.size(); ++lag) {
    double sum = 0;
    for (std::size_t w = lag; w < excess.size(); ++w) sum += excess[w] * excess[w - lag];
    const double weight = 1 - static_cast<double>(lag) / static_cast<double>(overlap + 1);
    variance += (lag == 0 ? 1 : 2) * weight * sum / (count - static_cast<double>(lag));
  }
  return std::abs(mean) <= kNormal95 * std::sqrt(std::max(variance, 0.0) / count);
}

/// One side; the distances by cell, and the window of each.
double width_of(std::vector<double>& distances, std::span<const BandCell> cells,
                const WindowShape& shape) {
  std::vector<double> excess;
  std::size_t count = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == 0 || cells[i].window != cells[i - 1].window) {
      if (count > 0) excess.back() = excess.back() / static_cast<double>(count) - (1 - kInside);
      excess.push_back(0);
      count = 0;
    }
    excess.back() += distances[i] > 1 ? 1 : 0;
    ++count;
  }
  if (count > 0) excess.back() = excess.back() / static_cast<double>(count) - (1 - kInside);
  if (excess.size() < kFewestWindows) return 1;
  const std::size_t stride = std::max<std::size_t>(1, shape.stride);
  if (may_be_chance(excess, (shape.horizon + stride - 1) / stride - 1)) return 1;
  constexpr double kLittle = 10;  // windows
  const double apart =
      static_cast<double>(std::min(stride, shape.horizon)) / static_cast<double>(shape.horizon);
  const double windows = static_cast<double>(excess.size()) * apart;
  return std::pow(rank_of(distances), windows / (windows + kLittle));
}

constexpr std::size_t kLow = 1, kHigh = kLevels - 2;  // 0.1 and 0.9 of levels()

}  // namespace

BandCell band_cell(std::span<const float> quantiles, double actual, std::size_t window) {
  return {quantiles[kLow], quantiles[kLevels / 2], quantiles[kHigh], actual, window};
}

void BandScore::add(std::span<const float> quantiles, double actual, double scale) {
  ++count_;
  if (actual >= double{quantiles[kLow]} && actual <= double{quantiles[kHigh]}) ++inside_;
  double sum = 0;
  for (std::size_t q = 0; q < kLevels; ++q) {
    const double off = actual - double{quantiles[q]};
    sum += std::max(levels()[q] * off, (levels()[q] - 1) * off);
  }
  loss_ += sum / static_cast<double>(kLevels) / scale;
}

double BandScore::coverage() const { return inside_ / count_; }
double BandScore::loss() const { return loss_ / count_; }

Widths find_widths(std::span<const BandCell> cells, const WindowShape& shape) {
  std::vector<double> below, above;
  below.reserve(cells.size());
  above.reserve(cells.size());
  for (const BandCell& cell : cells) {
    below.push_back(distance(-cell.actual, -cell.median, -cell.low));
    above.push_back(distance(cell.actual, cell.median, cell.high));
  }
  return {width_of(below, cells, shape), width_of(above, cells, shape)};
}

void stretch(std::span<float> read, const Wanted& wanted, std::size_t median,
             const Parameters& parameters) {
  if (parameters.width_below == 1 && parameters.width_above == 1) return;
  const std::size_t first = wanted.points.size() + 1;
  for (std::size_t row = 0; row < read.size(); row += wanted.size()) {
    const double middle = read[row + median];
    for (std::size_t q = 0; q < wanted.levels.size(); ++q) {
      if (wanted.levels[q] == 0.5) continue;
      const double width = wanted.levels[q] < 0.5 ? parameters.width_below : parameters.width_above;
      float& value = read[row + first + q];
      value = static_cast<float>(middle + width * (double{value} - middle));
    }
  }
}

}  // namespace toto::backtest
