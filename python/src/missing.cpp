// SPDX-License-Identifier: Apache-2.0
#include "missing.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "errors.h"

namespace toto::python {

/// Looks at all of them, so that it looks at many at a time.
bool has_nan(std::span<const float> values) {
  std::uint32_t found = 0;
  for (const float v : values) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(v) & 0x7FFFFFFFU;
    found |= magnitude > 0x7F800000U ? 1U : 0U;
  }
  return found != 0;
}

void fill(std::span<float> values, std::span<std::uint8_t> mask, data::Missing missing,
          std::size_t season, double offset, std::string_view where) {
  using enum data::Missing;
  if (missing == seasonal && season == 0) {
    throw Error(ExitStatus::usage, "invalid_season", "arrays do not say how long a season is",
                "season", "give season=, the steps of one");
  }
  const bool lines = missing == linear || missing == seasonal || missing == model;
  const float nothing = offset == 0 ? 0.0F : static_cast<float>(-offset);
  const std::size_t size = values.size();
  const std::size_t none = size;
  std::size_t last = none;  // the last observed step before i
  for (std::size_t i = 0; i < size; ++i) {
    if (!std::isnan(values[i])) {
      last = i;
      continue;
    }
    if (missing == error) {
      throw Error(ExitStatus::bad_data, "missing_value", fmt::format("no value at step {}", i),
                  where, "give missing=\"ffill\" or another word");
    }
    std::size_t end = i;  // the gap is [i, end)
    while (end < size && std::isnan(values[end])) mask[end++] = 0;
    const float before = last != none ? values[last] : 0.0F;
    const float after = end < size ? values[end] : 0.0F;
    const double slope = (double{after} - before) / static_cast<double>(end - i + 1);
    for (std::size_t t = i; t < end; ++t) {
      if (missing == zero || (last == none && end == size)) {
        values[t] = nothing;
      } else if (lines && last != none && end < size) {
        values[t] = static_cast<float>(before + slope * static_cast<double>(t - i + 1));
      } else {
        values[t] = last != none ? before : after;
      }
    }
    i = end - 1;
  }
  if (missing == seasonal) data::fill_seasonal(values, mask, season);
}

std::size_t missing_end(std::span<const std::uint8_t> mask, std::size_t rows, std::size_t all) {
  const auto observed = [&](std::size_t step) {
    for (std::size_t r = 0; r < rows; ++r) {
      if (mask[r * all + step] != 0) return true;
    }
    return false;
  };
  if (mask.empty()) return 0;
  for (std::size_t gap = 0; gap < all; ++gap) {
    if (observed(all - 1 - gap)) return gap;
  }
  return 0;
}

void check_context(std::size_t context) {
  if (context > 0) return;
  refuse("invalid_context", "expected a context of at least 1 step, found 0", "context");
}

}  // namespace toto::python
