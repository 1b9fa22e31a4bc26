// SPDX-License-Identifier: Apache-2.0
#include "data/fill.h"

#include <algorithm>

namespace toto::data {
namespace {

/// Steps 1 .. gap.size() of the gap.size() + 1 steps from `from` to `to`, of which the last `shown`
/// are at hand.
void interpolate(std::span<float> shown, float from, float to, std::size_t steps) {
  const double slope = (double{to} - from) / static_cast<double>(steps);
  const std::size_t first = steps - shown.size();
  for (std::size_t i = 0; i < shown.size(); ++i) {
    shown[i] = static_cast<float>(from + slope * static_cast<double>(first + i));
  }
}

}  // namespace

void fill_missing(std::span<float> values, std::span<const std::uint8_t> mask, Missing missing,
                  const std::optional<Earlier>& earlier, float zero, std::size_t season) {
  const bool lines =
      missing == Missing::linear || missing == Missing::seasonal || missing == Missing::model;
  std::optional<Earlier> last = earlier;  // seen from position i
  for (std::size_t i = 0; i < values.size();) {
    if (mask[i] != 0) {
      last = Earlier{values[i], 1};
      ++i;
      continue;
    }
    const auto next = std::find_if(mask.begin() + static_cast<std::ptrdiff_t>(i), mask.end(),
                                   [](std::uint8_t observed) { return observed != 0; });
    const auto end = static_cast<std::size_t>(next - mask.begin());
    const std::span<float> gap = values.subspan(i, end - i);
    const bool inside = last && end < values.size();
    if (missing == Missing::zero || (!last && end == values.size())) {
      std::ranges::fill(gap, zero);
    } else if (lines && inside) {
      interpolate(gap, last->value, values[end], gap.size() + last->steps);
    } else {
      std::ranges::fill(gap, last ? last->value : values[end]);
    }
    i = end;
  }
  if (missing == Missing::seasonal) fill_seasonal(values, mask, season);
}

}  // namespace toto::data
