// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <vector>

#include "toto/bench.hpp"

namespace toto {
namespace {

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
  std::vector<std::size_t> numbers;
  std::string_view rest = text;
  while (true) {
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (error != std::errc() || n == 0 || n > 1000000) refuse(text);
    numbers.push_back(n);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty()) break;
    if (rest.front() != 'x') refuse(text);
    rest.remove_prefix(1);
  }
  if (numbers.size() < 4 || numbers.size() > 5) refuse(text);
  Workload w{std::string(text), numbers[0], numbers[1], numbers[2], numbers[3], 256, false};
  if (numbers.size() == 5) w.samples = numbers[4];
  return w;
}

}  // namespace toto
