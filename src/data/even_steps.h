// SPDX-License-Identifier: Apache-2.0
// Whether large whole numbers are likely times: they go on by steps that people choose.
#pragma once

#include <cstdint>
#include <span>

namespace toto::data {

/// `values` that never fall, or never rise. Whether they lie between 1998 and 2100 in seconds,
/// milli-, micro- or nanoseconds, and go on by even steps: nine of ten of the differences that are
/// not 0 are multiples of the middle one, within a twentieth of it, and that one is what people
/// choose (a second, 5 minutes, a day, within half a percent), or they are months, quarters or
/// years. Counters and sums rise by what they like.
bool goes_on_like_time(std::span<const std::int64_t> values);

/// Whether they lie between those years, whatever the steps.
bool may_be_time(std::span<const std::int64_t> values);

}  // namespace toto::data
