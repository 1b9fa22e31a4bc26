// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "toto/tools/data.hpp"

namespace toto::data {

TimeSeries last_steps(const TimeSeries& series, std::size_t limit) {
  TimeSeries out = series;
  out.steps = std::min(limit, series.steps);
  out.values.clear();
  out.mask.clear();
  for (std::size_t v = 0; v < series.variates.size(); ++v) {
    const auto end = static_cast<std::ptrdiff_t>((v + 1) * series.steps);
    const auto begin = end - static_cast<std::ptrdiff_t>(out.steps);
    out.values.insert(out.values.end(), series.values.begin() + begin, series.values.begin() + end);
    out.mask.insert(out.mask.end(), series.mask.begin() + begin, series.mask.begin() + end);
  }
  // Series that were made by hand may have no times.
  const std::size_t times = std::min(out.steps, series.times.size());
  out.times = Times::Vector(series.times.end() - times, series.times.end());
  return out;
}

}  // namespace toto::data
