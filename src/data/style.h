// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "toto/tools/data.hpp"

namespace toto::data {

/// Makes `style` tell the steps of `step` apart, where it is too coarse for them: days for steps of
/// hours, hh:mm for steps of seconds, quarters for months. A pattern of strftime that is too coarse
/// gives way to ISO 8601.
void tell_steps_apart(TimeStyle& style, const Interval& step);

}  // namespace toto::data
