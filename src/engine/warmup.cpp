// SPDX-License-Identifier: Apache-2.0
// Shapes to warm up for, as they are written on a command line.
#include <fmt/format.h>

#include "core/sizes.h"
#include "toto/forecast.hpp"

namespace toto {
namespace {

constexpr std::size_t kMaxNumber = 10'000'000;

[[noreturn]] void refuse(std::string_view shape) {
  throw Error(ExitStatus::usage, "invalid_warmup",
              fmt::format("expected CONTEXTxHORIZON[xVARIATES[xBATCH]], found '{}'", shape),
              "warm-up", "for example 512x8 or 4096x336x7, several separated by commas");
}

WarmupShape parse_shape(std::string_view text) {
  std::vector<std::size_t> numbers = parse_sizes(text, kMaxNumber);
  if (numbers.size() < 2 || numbers.size() > 4) refuse(text);
  numbers.resize(4, 1);
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

}  // namespace

std::vector<WarmupShape> parse_warmup(std::string_view text) {
  std::vector<WarmupShape> shapes;
  while (true) {
    const std::size_t comma = text.find(',');
    shapes.push_back(parse_shape(text.substr(0, comma)));
    if (comma == std::string_view::npos) return shapes;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace toto
