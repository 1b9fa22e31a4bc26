// SPDX-License-Identifier: Apache-2.0
// What a call of the Toto 2.0 network costs.
#pragma once

#include "models/cost.h"
#include "models/toto2/toto2.h"

namespace toto {

Cost forward_cost(const Toto2& net, const Call& all, const Call& wanted);

}  // namespace toto
