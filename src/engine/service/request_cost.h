// SPDX-License-Identifier: Apache-2.0
// What a request takes, counted from its shape.
#pragma once

#include <cstdint>

#include "toto/service.hpp"

namespace toto {

/// Tokens that go through the network: of the context, once or in `eager` mode for each trajectory;
/// and of every further patch, for each trajectory.
double tokens_of(const Request& request, const ModelInfo& model, bool eager);

/// Bytes of working memory for one trajectory, below which a forecaster refuses, and of the results
/// and what they are formed of. `element`: bytes of an activation.
std::uint64_t least_bytes(const Request& request, const ModelInfo& model, std::size_t element,
                          bool eager);

}  // namespace toto
