// SPDX-License-Identifier: Apache-2.0
// Counters as rates per second.
#pragma once

#include <cstddef>
#include <string_view>

#include "data/table.h"

namespace toto::data {

/// Replaces the first `targets` of the `width` columns by their rise per second since the last
/// value before. Where a counter falls it began anew at 0, as Prometheus takes it: all of the value
/// has come since. The first row says nothing and goes. Differences are formed in double, of the
/// values as they stand in the file (RowGroup::low). Returns how often a counter fell.
std::size_t to_rates(RowGroup& group, std::size_t targets, std::size_t width);

/// Whether a series called `name` (as Prometheus calls counters: ..._total) never falls but to
/// begin anew, so that it is most likely a counter.
bool looks_like_counter(const RowGroup& group, std::size_t column, std::size_t width,
                        std::string_view name);

}  // namespace toto::data
