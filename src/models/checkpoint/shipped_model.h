// SPDX-License-Identifier: Apache-2.0
// Where the models that ship with the project lie: in a source tree, or in an installed prefix
// that may have been moved.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace toto {

inline constexpr std::string_view kShippedModel = "toto-nano-2";  // where none is named
inline constexpr std::array<std::string_view, 2> kShippedModels = {kShippedModel, "toto-nano"};

/// The folder of a shipped model. Looked for from where this library lies (libtoto.so, or what it
/// is linked into), then from where the program lies; then in the prefix of the CMake package that
/// a program with the static library was built with, and in the one that this build was configured
/// for. Empty where there is none.
std::string shipped_model(std::string_view name = kShippedModel);

/// Beside something that lies in `folder`: in its models/, or in models/ or share/toto/models/ of a
/// folder up to four levels above. Empty where there is none.
std::string find_shipped_model(const std::string& folder, std::string_view name = kShippedModel);

}  // namespace toto
