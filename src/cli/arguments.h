// SPDX-License-Identifier: Apache-2.0
// Values of flags and of their twins in the environment: strict, and errors that name the flag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/flags.h"
#include "toto/error.hpp"

namespace toto::cli {

/// A decimal whole number in [least, most]. `where` is the flag or the variable. Throws Error (2)
/// with `code`.
std::uint64_t parse_whole(std::string_view text, std::string_view where, std::string_view code,
                          std::uint64_t least, std::uint64_t most);

/// A decimal number in [least, most]; likewise.
double parse_number(std::string_view text, std::string_view where, std::string_view code,
                    double least, double most);

/// Comma-separated quantile levels, each in (0, 1), sorted, without repeats. Throws Error (2):
/// invalid_quantile.
std::vector<double> parse_levels(std::string_view text, std::string_view where);

/// One of a few words. Throws Error (2): invalid_choice, with all of them listed.
template <typename T>
T parse_choice(std::string_view text, std::string_view where,
               const std::vector<std::pair<std::string_view, T>>& choices) {
  std::string valid;
  for (const auto& [word, value] : choices) {
    if (word == text) return value;
    valid.append(valid.empty() ? "" : ", ").append(word);
  }
  throw Error(ExitStatus::usage, "invalid_choice",
              "expected one of " + valid + ", found '" + std::string(text) + "'", where);
}

/// `--output` of `--output,-o`.
inline std::string_view first_name(std::string_view flag) { return flag.substr(0, flag.find(',')); }

/// A flag whose value is a whole number within limits; `code` is that of the error.
template <typename T>
Flag add_whole(const Command& command, const std::string& flag, T& value, std::uint64_t least,
               std::uint64_t most, const std::string& code, const std::string& help) {
  return command
      .add_option_function(
          flag,
          [&value, flag, least, most, code](const std::string& text) {
            value = static_cast<T>(parse_whole(text, first_name(flag), code, least, most));
          },
          help)
      .type_name("N");
}

/// A flag whose value is a number within limits; `code` is that of the error.
template <typename T>
Flag add_number(const Command& command, const std::string& flag, T& value, double least,
                double most, const std::string& code, const std::string& help) {
  return command
      .add_option_function(
          flag,
          [&value, flag, least, most, code](const std::string& text) {
            value = parse_number(text, first_name(flag), code, least, most);
          },
          help)
      .type_name("X");
}

/// A flag whose value is one of a few words.
template <typename T>
Flag add_choice(const Command& command, const std::string& flag, T& value,
                const std::vector<std::pair<std::string_view, T>>& choices,
                const std::string& help) {
  return command
      .add_option_function(
          flag,
          [&value, flag, choices](const std::string& text) {
            value = parse_choice<T>(text, first_name(flag), choices);
          },
          help)
      .type_name("WORD");
}

/// The words of src/settings/words.h as choices.
template <typename Words>
auto choices_of(const Words& words) {
  std::vector<std::pair<std::string_view, decltype(words[0].value)>> choices;
  choices.reserve(words.size());
  for (const auto& [text, value] : words) choices.emplace_back(text, value);
  return choices;
}

}  // namespace toto::cli
