// SPDX-License-Identifier: Apache-2.0
// What a program left open in the options of a forecaster, filled in.
#pragma once

#include "toto/forecast.hpp"

namespace toto {

/// The same options with nothing left open. Throws Error (78) for variables that hold nonsense.
ForecasterOptions complete(const ForecasterOptions& options);

}  // namespace toto
