// SPDX-License-Identifier: Apache-2.0
// What a file writes for "missing", as its owner says: -9999, NA2, <1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace toto::data {

class ToldMissing {
 public:
  ToldMissing() = default;
  /// As CsvOptions::missing_values has them. Throws Error (2) invalid_missing_value.
  explicit ToldMissing(const std::vector<std::string>& told);

  [[nodiscard]] bool empty() const { return words_.empty(); }
  /// False: "none" is among them, and no number is taken for missing that was not named.
  [[nodiscard]] bool guesses() const { return guesses_; }

  /// Whether a field stands for missing: a word in any case, or a number however it is written.
  [[nodiscard]] bool has(std::string_view field) const;
  [[nodiscard]] bool has_word(std::string_view field) const;
  [[nodiscard]] bool has_number(double exact) const;

 private:
  std::vector<std::string> words_;  // numbers as well, as they are written
  std::vector<double> numbers_;
  bool guesses_ = true;
};

}  // namespace toto::data
