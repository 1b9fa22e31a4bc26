// SPDX-License-Identifier: Apache-2.0
// Gaps that take the shape of what was observed a season before and after them.
#include <algorithm>
#include <vector>

#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

class SeasonalFill {
 public:
  SeasonalFill(std::span<float> values, std::span<const std::uint8_t> mask, std::size_t season)
      : values_(values), mask_(mask), season_(season) {}

  void run() {
    const std::size_t least = std::max<std::size_t>(2, (season_ + 3) / 4);
    for (std::size_t begin = 0; begin < values_.size();) {
      if (mask_[begin] != 0) {
        ++begin;
        continue;
      }
      std::size_t end = begin;
      while (end < values_.size() && mask_[end] == 0) ++end;
      if (begin == 0) {
        repeat_backwards(end);
      } else if (end == values_.size()) {
        repeat(begin);
      } else if (end - begin >= least) {
        fill(begin, end);
      }
      begin = end;
    }
  }

 private:
  void repeat(std::size_t begin) {
    for (std::size_t t = std::max(begin, season_); t < values_.size(); ++t) {
      values_[t] = values_[t - season_];
    }
  }

  void repeat_backwards(std::size_t end) {
    for (std::size_t t = end; t-- > 0;) {
      if (t + season_ < values_.size()) values_[t] = values_[t + season_];
    }
  }

  /// Adds to shape_ what the steps `lag` away do beside the straight line between their ends. The
  /// gap is (first, last).
  void add_shape(std::size_t first, std::size_t last, std::ptrdiff_t lag) {
    const auto at = [&](std::size_t t) {
      return double{values_[static_cast<std::size_t>(static_cast<std::ptrdiff_t>(t) + lag)]};
    };
    const double slope = (at(last) - at(first)) / static_cast<double>(last - first);
    for (std::size_t t = first + 1; t < last; ++t) {
      shape_[t - first - 1] += at(t) - at(first) - slope * static_cast<double>(t - first);
    }
  }

  /// As many seasons away as it takes to be clear of the gap: what is before it has been filled,
  /// what is after it must have been observed.
  void fill(std::size_t begin, std::size_t end) {
    const std::size_t first = begin - 1;  // the observed steps around it
    const std::size_t lag = (end - first + season_ - 1) / season_ * season_;
    shape_.assign(end - begin, 0.0);
    double sides = 0;
    if (first >= lag) {
      add_shape(first, end, -static_cast<std::ptrdiff_t>(lag));
      ++sides;
    }
    const auto later = [&] { return mask_.subspan(first + lag, end - first + 1); };
    if (end + lag < values_.size() && std::ranges::find(later(), 0) == later().end()) {
      add_shape(first, end, static_cast<std::ptrdiff_t>(lag));
      ++sides;
    }
    if (sides == 0) return;
    const double slope =
        (double{values_[end]} - double{values_[first]}) / static_cast<double>(end - first);
    for (std::size_t t = begin; t < end; ++t) {
      values_[t] =
          static_cast<float>(double{values_[first]} + slope * static_cast<double>(t - first) +
                             shape_[t - begin] / sides);
    }
  }

  std::span<float> values_;
  std::span<const std::uint8_t> mask_;
  std::size_t season_;
  std::vector<double> shape_;
};

}  // namespace

void fill_seasonal(std::span<float> values, std::span<const std::uint8_t> mask,
                   std::size_t season) {
  if (season >= 2) SeasonalFill(values, mask, season).run();
}

}  // namespace toto::data
