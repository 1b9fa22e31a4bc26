// SPDX-License-Identifier: Apache-2.0
// Parts of Result::cells, which are sorted by symbol, target, window and step.
#pragma once

#include <algorithm>
#include <span>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// Those with one value of a member that they are sorted by.
inline std::span<const Cell> cells_with(std::span<const Cell> cells, std::uint32_t Cell::*member,
                                        std::size_t value) {
  const auto first = std::ranges::lower_bound(cells, value, {}, member);
  const auto last = std::ranges::upper_bound(cells, value, {}, member);
  return cells.subspan(static_cast<std::size_t>(first - cells.begin()),
                       static_cast<std::size_t>(last - first));
}

inline std::span<const Cell> cells_of(const Result& result, std::size_t symbol) {
  return cells_with(result.cells, &Cell::symbol, symbol);
}

}  // namespace toto::backtest
