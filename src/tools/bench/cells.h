// SPDX-License-Identifier: Apache-2.0
// Tables of a benchmark as Markdown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace toto {

/// "12.3"; "-" for 0, which stands for a figure that was not taken.
[[nodiscard]] std::string mebibytes(std::uint64_t bytes);

/// The titles and the line below them. The first two columns are names, the others are numbers.
[[nodiscard]] std::string markdown_head(std::span<const std::string_view> columns);

/// A row of a table. Cells are text: what is special in Markdown is escaped.
[[nodiscard]] std::string markdown_row(std::span<const std::string> cells);

}  // namespace toto
