// SPDX-License-Identifier: Apache-2.0
// The backend a user asked for.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "toto/model.hpp"

namespace toto {

/// Throws Error (2): unknown_backend, unsupported_precision; the valid ones are listed.
std::shared_ptr<Backend> make_backend(const LoadOptions& options);

}  // namespace toto
