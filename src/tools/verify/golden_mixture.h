// SPDX-License-Identifier: Apache-2.0
// Golden folders of models whose distribution is a mixture.
#pragma once

#include <memory>
#include <string>

#include "models/family.h"

namespace toto {

/// Throws Error: file_not_found (66), invalid_golden (65), and what the folder's files throw.
std::unique_ptr<GoldenOutputs> read_mixture_golden(const Configuration& config,
                                                   const std::string& folder);

}  // namespace toto
