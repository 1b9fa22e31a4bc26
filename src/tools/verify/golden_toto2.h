// SPDX-License-Identifier: Apache-2.0
// `toto verify --golden` for Toto 2.0: every call of a folder, compared tensor by tensor.
#pragma once

#include <string>

#include "toto/tools/verify.hpp"

namespace toto {

/// Throws what verify_golden() throws.
GoldenCase verify_toto2_golden(const std::string& folder, const LoadOptions& options);

}  // namespace toto
