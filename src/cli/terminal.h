// SPDX-License-Identifier: Apache-2.0
// What the command line knows of the terminal it writes to.
#pragma once

#include <cstddef>

namespace toto::cli {

/// Whether the file descriptor is a terminal that understands control sequences.
[[nodiscard]] bool is_terminal(int descriptor);

/// Its columns, at least 20; 80 if it does not say.
[[nodiscard]] std::size_t terminal_width(int descriptor);

}  // namespace toto::cli
