// SPDX-License-Identifier: Apache-2.0
// The families of models. Those that are built in are named in registry.cpp and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"

namespace toto {

/// Adds a family; it is asked before all that are there. May be called from any thread, before a
/// model of the family is loaded. Throws Error (70) internal where its name is taken.
void register_family(Family family);

/// Parses config.json with the family that recognises it. A text that none does is taken for one of
/// the oldest family, whose errors then say what it lacks. Errors and warnings as for
/// Family::parse.
ConfigurationPtr parse_model_config(std::string_view text, std::string_view where, bool strict,
                                    std::vector<std::string>& warnings);

/// What can be said without knowing where the weights came from: `name`, `folder` and the
/// configuration's warnings are left to the caller.
ModelInfo describe_model(const Configuration& config, const WeightTable& weights);

/// The configuration of a published architecture. Throws Error: unknown_preset (2), with the list.
ConfigurationPtr find_preset(std::string_view preset);

}  // namespace toto
