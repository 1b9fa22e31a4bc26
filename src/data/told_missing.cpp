// SPDX-License-Identifier: Apache-2.0
#include "data/told_missing.h"

#include <algorithm>

#include "data/number.h"
#include "toto/error.hpp"

namespace toto::data {

ToldMissing::ToldMissing(const std::vector<std::string>& told) {
  for (const std::string& one : told) {
    std::string word(trim(one));
    if (word.empty()) {
      throw Error(ExitStatus::usage, "invalid_missing_value", "one of the words is empty",
                  "--missing-values", "an empty field is missing in any case; leave it out");
    }
    if (equals_ignoring_case(word, "none")) {
      guesses_ = false;
      continue;
    }
    const Number number = parse_number(word);
    if (number.kind == NumberKind::value) numbers_.push_back(number.exact);
    std::ranges::transform(word, word.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    words_.push_back(std::move(word));
  }
}

bool ToldMissing::has_word(std::string_view field) const {
  field = trim(field);
  return std::ranges::any_of(
      words_, [&](const std::string& word) { return equals_ignoring_case(field, word); });
}

bool ToldMissing::has_number(double exact) const {
  return std::ranges::find(numbers_, exact) != numbers_.end();
}

bool ToldMissing::has(std::string_view field) const {
  if (empty()) return false;
  if (has_word(field)) return true;
  if (numbers_.empty()) return false;
  const Number number = parse_number(field);
  return number.kind == NumberKind::value && has_number(number.exact);
}

}  // namespace toto::data
