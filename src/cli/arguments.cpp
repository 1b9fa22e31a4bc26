// SPDX-License-Identifier: Apache-2.0
// Values of flags: strict decimal numbers and quantile levels.
#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace toto::cli {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace

std::uint64_t parse_whole(std::string_view text, std::string_view where, std::string_view code,
                          std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || value < least || value > most) {
    throw Error(ExitStatus::usage, code,
                "expected a whole number from " + std::to_string(least) + " to " +
                    std::to_string(most) + ", found " + quoted(text),
                where);
  }
  return value;
}

double parse_number(std::string_view text, std::string_view where, std::string_view code,
                    double least, double most) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || !(value >= least) || !(value <= most)) {
    throw Error(ExitStatus::usage, code,
                fmt::format("expected a number from {} to {}, found {}", least, most, quoted(text)),
                where);
  }
  return value;
}

std::vector<double> parse_levels(std::string_view text, std::string_view where) {
  std::vector<double> levels;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, comma - begin);
    double level = 0;
    const char* const end = item.data() + item.size();
    const auto [at, error] = std::from_chars(item.data(), end, level);
    if (error != std::errc() || at != end || !(level > 0 && level < 1)) {
      throw Error(
          ExitStatus::usage, "invalid_quantile",
          "expected numbers between 0 and 1, both excluded, with commas between them, found " +
              quoted(item),
          where);
    }
    levels.push_back(level);
    begin = comma + 1;
  }
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

}  // namespace toto::cli
