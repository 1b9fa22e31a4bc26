// SPDX-License-Identifier: Apache-2.0
// Golden folders of Toto 2.0: every call of a folder, compared tensor by tensor.
#pragma once

#include <memory>
#include <string>

#include "models/golden.h"
#include "models/toto2/config.h"

namespace toto {

/// Throws Error: invalid_golden (65), and what the folder's files throw.
std::unique_ptr<GoldenOutputs> read_toto2_golden(const Toto2Config& config,
                                                 const std::string& folder);

}  // namespace toto
