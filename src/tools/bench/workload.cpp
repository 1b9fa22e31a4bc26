// SPDX-License-Identifier: Apache-2.0
#include "core/sizes.h"
#include "toto/tools/bench.hpp"

namespace toto {
namespace {

constexpr std::size_t kMaxNumber = 1'000'000;

[[noreturn]] void refuse(std::string_view text) {
  throw Error(
      ExitStatus::usage, "invalid_workload", "'" + std::string(text) + "' is no workload", {},
      "use a, b, c or SERIESxVARIATESxCONTEXTxHORIZON[xSAMPLES], for example 50x1x512x7x4096");
}

}  // namespace

Workload parse_workload(std::string_view text) {
  if (text == "a") return {"a", 1, 1, 512, 8, 256, false};
  if (text == "b") return {"b", 1, 7, 4096, 336, 256, false};
  if (text == "c") return {"c", 500, 1, 512, 7, 4096, false};
  const std::vector<std::size_t> numbers = parse_sizes(text, kMaxNumber);
  if (numbers.size() < 4 || numbers.size() > 5) refuse(text);
  Workload w{std::string(text), numbers[0], numbers[1], numbers[2], numbers[3], 256, false};
  if (numbers.size() == 5) w.samples = numbers[4];
  return w;
}

}  // namespace toto
