// SPDX-License-Identifier: Apache-2.0
// What people who come from PyTorch have in their environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace toto {

/// A backend of torch.compile ("inductor", "eager", ...): it names no device here.
bool is_pytorch_backend(std::string_view text);

/// The mode here for a mode that only torch.compile has ("max-autotune-no-cudagraphs").
std::optional<std::string> mode_of_pytorch(std::string_view text);

}  // namespace toto
