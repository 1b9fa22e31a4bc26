// SPDX-License-Identifier: Apache-2.0
// The step between timestamps: inferring it, counting it, continuing it.
//
// Everything here works on local times, ms since 1970 by the clock on the wall (or the integers of
// an index), since days and months begin there.
#pragma once

#include <cstdint>
#include <span>

#include "toto/tools/data.hpp"

namespace toto::data {

struct Inferred {
  Interval interval;
  bool fill_gaps =
      false;  ///< every time lies on the grid of steps and at least half of it is there
};

/// `times` increase strictly and are at least two.
Inferred infer_interval(std::span<const std::int64_t> times, TimeStyle::Form form);

/// How many steps lie between two times on the grid. Not for business days, whose gaps are never
/// filled.
std::int64_t steps_between(std::int64_t from, std::int64_t to, const Interval& interval);

/// The time `steps` steps after `from`.
std::int64_t advance(std::int64_t from, const Interval& interval, std::int64_t steps);

}  // namespace toto::data
