// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/cells.h"

#include <fmt/format.h>

#include <vector>

#include "core/printable.h"

namespace toto {

std::string mebibytes(std::uint64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

std::string markdown_row(std::span<const std::string> cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += ' ' + markdown_text(cell) + " |";
  return text + '\n';
}

std::string markdown_head(std::span<const std::string_view> columns) {
  std::string text = markdown_row(std::vector<std::string>(columns.begin(), columns.end()));
  for (std::size_t i = 0; i < columns.size(); ++i) text += i < 2 ? "|---" : "|---:";
  return text + "|\n";
}

}  // namespace toto
