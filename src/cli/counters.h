// SPDX-License-Identifier: Apache-2.0
// --counters: what a command's work cost.
#pragma once

#include "toto/forecast.hpp"

namespace toto::cli {

/// One line on standard error, which --quiet does not hide: it was asked for.
void show_counters(const Counters& counters);

}  // namespace toto::cli
