// SPDX-License-Identifier: Apache-2.0
// Headings of --help that several files use.
#pragma once

namespace toto::cli {

/// The flags that most people need; they come first.
inline constexpr const char* kFirstFlags = "Most used";

}  // namespace toto::cli
