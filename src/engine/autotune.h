// SPDX-License-Identifier: Apache-2.0
// Mode `max-autotune`: for each (N, K, epilogue) of a model the fastest way to carry out the
// product, by measurement. The number of rows is no part of it, and no candidate changes a bit; one
// that did would be refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan_entry.h"
#include "models/network.h"
#include "toto/log.hpp"

namespace toto {

/// "gated f32": what tells products of one (N, K) apart.
std::string product_tag(Epilogue epilogue, const Backend& backend);

/// Measures every product that `known` does not name, chooses, and returns all choices. `log` is
/// told about each.
std::vector<KernelChoice> autotune(const Network& net, std::vector<KernelChoice> known,
                                   const LogSink& log, std::uint64_t& measured);

}  // namespace toto
