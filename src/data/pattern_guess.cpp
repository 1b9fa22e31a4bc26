// SPDX-License-Identifier: Apache-2.0
// From one written time to the patterns it may follow: numbers are told by their place and length.
#include <algorithm>
#include <string>
#include <vector>

#include "data/number.h"
#include "data/pattern.h"
#include "data/pattern_words.h"

namespace toto::data {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

constexpr std::size_t kLongest = 48;  // bytes of a written time

/// A text as tokens: a run of digits, a run of letters, or another character.
struct Token {
  enum class Type { number, word, other } type = Type::other;
  std::string_view text;
  std::string field;  // of the pattern; empty: the text itself
};

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    Token token;
    if (is_digit(text[at])) {
      token.type = Token::Type::number;
      while (end < text.size() && is_digit(text[end])) ++end;
    } else if (is_letter(text[at])) {
      token.type = Token::Type::word;
      while (end < text.size() && is_letter(text[end])) ++end;
    }
    token.text = text.substr(at, end - at);
    tokens.push_back(token);
    at = end;
  }
  return tokens;
}

class Guesser {
 public:
  explicit Guesser(std::string_view text) : tokens_(tokens_of(text)) {
    short_ = std::ranges::any_of(tokens_, [](const Token& token) {
      return token.type == Token::Type::number && token.text.size() == 1;
    });
  }

  std::vector<std::string> guess() {
    if (tokens_.empty() || tokens_.back().type == Token::Type::other) return {};
    if (!words() || !clock()) return {};
    if (!date()) return {};
    if (first_ == npos) return {pattern()};
    // Day and month, in either order.
    tokens_[first_].field = field('d');
    tokens_[second_].field = field('m');
    std::vector<std::string> both = {pattern()};
    if (day_first_only_) return both;
    tokens_[first_].field = field('m');
    tokens_[second_].field = field('d');
    both.push_back(pattern());
    return both;
  }

 private:
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  /// One number without a leading zero: others will have none either.
  std::string field(char letter) const { return std::string(short_ ? "%-" : "%") + letter; }

  std::string pattern() const {
    std::string out;
    for (const Token& token : tokens_) out += token.field.empty() ? token.text : token.field;
    return out;
  }

  bool is(std::size_t i, Token::Type type) const {
    return i < tokens_.size() && tokens_[i].type == type;
  }
  bool is_mark(std::size_t i, char c) const {
    return is(i, Token::Type::other) && tokens_[i].text[0] == c;
  }

  /// Names of months and days, AM and PM, quarters and weeks, and the words of a zone.
  bool words() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      Token& token = tokens_[i];
      if (token.type != Token::Type::word) continue;
      std::string_view rest = token.text;
      if (take_month_name(rest) > 0 && rest.empty()) {
        if (month_name_ != npos) return false;
        month_name_ = i;
        token.field = token.text.size() == 3 ? "%b" : "%B";
      } else if (rest = token.text; take_weekday_name(rest) && rest.empty()) {
        token.field = token.text.size() == 3 ? "%a" : "%A";
      } else if (equals_ignoring_case(token.text, "am") || equals_ignoring_case(token.text, "pm")) {
        token.field = "%p";
        half_ = true;
      } else if (token.text == "Q" || token.text == "W") {
        if (!is(i + 1, Token::Type::number) || tokens_[i + 1].text.size() > 2) return false;
        tokens_[i + 1].field = token.text == "Q" ? "%q" : "%V";
        (token.text == "Q" ? quarter_ : week_) = true;
      } else if (token.text == "Z") {
        token.field = "%z";
      } else if (token.text == "T") {
        if (!is(i + 1, Token::Type::number)) return false;
      } else if (token.text != "UTC" && token.text != "GMT") {
        return false;
      }
    }
    return true;
  }

  bool clock() {
    for (std::size_t i = 0; i + 2 < tokens_.size(); ++i) {
      if (!is(i, Token::Type::number) || !is_mark(i + 1, ':') || !is(i + 2, Token::Type::number)) {
        continue;
      }
      // The number of a week or a quarter is no hour: 2018-W01:00:00.
      if (tokens_[i].text.size() > 2 || !tokens_[i].field.empty()) return false;
      tokens_[i].field = field(half_ ? 'I' : 'H');
      tokens_[i + 2].field = "%M";
      std::size_t end = i + 3;
      if (is_mark(end, ':') && is(end + 1, Token::Type::number)) {
        tokens_[end + 1].field = "%S";
        end += 2;
        if ((is_mark(end, '.') || is_mark(end, ',')) && is(end + 1, Token::Type::number)) {
          drop(end, 2);  // %S reads the fraction too
        }
      }
      return zone(end);
    }
    return compact_clock();
  }

  void drop(std::size_t from, std::size_t count) {
    const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(from);
    tokens_.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  }

  /// +01:00, +0100 or +01 behind the clock.
  bool zone(std::size_t at) {
    if (is_mark(at, ' ') && (is_mark(at + 1, '+') || is_mark(at + 1, '-'))) ++at;
    if (!is_mark(at, '+') && !is_mark(at, '-')) return true;
    if (!is(at + 1, Token::Type::number)) return false;
    if (tokens_[at + 1].text.size() != 2 && tokens_[at + 1].text.size() != 4) return false;
    tokens_[at].field = "%z";
    const bool colon = is_mark(at + 2, ':') && is(at + 3, Token::Type::number);
    drop(at + 1, colon ? 3 : 1);
    return true;
  }

  /// 20240102 153000, 20240102T1530 and 20240102153000.
  bool compact_clock() {
    if (tokens_.empty() || !is(0, Token::Type::number)) return true;
    if (tokens_.size() == 1 && tokens_[0].text.size() == 14) {
      tokens_[0].field = "%Y%m%d%H%M%S";
      compact_ = true;
      return true;
    }
    if (tokens_[0].text.size() != 8 || tokens_.size() < 3) return true;
    const bool separated = is_mark(1, ' ') || tokens_[1].text == "T";
    if (!separated || !is(2, Token::Type::number)) return true;
    if (tokens_[2].text.size() == 6) tokens_[2].field = "%H%M%S";
    if (tokens_[2].text.size() == 4) tokens_[2].field = "%H%M";
    return !tokens_[2].field.empty();
  }

  bool date() {
    if (compact_) return true;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].type == Token::Type::number && tokens_[i].field.empty()) numbers.push_back(i);
    }
    if (numbers.empty()) return false;
    const auto digits = [&](std::size_t i) { return tokens_[numbers[i]].text.size(); };
    const auto set = [&](std::size_t i, const char* field) { tokens_[numbers[i]].field = field; };
    const auto set_short = [&](std::size_t i, char letter) {
      tokens_[numbers[i]].field = field(letter);
    };
    if (quarter_ || week_) {
      if (numbers.size() != 1 || digits(0) != 4) return false;
      set(0, week_ ? "%G" : "%Y");
      return true;
    }
    if (numbers.size() == 1 && digits(0) == 8) {
      set(0, "%Y%m%d");
      return tokens_.size() > 1;  // alone it is read elsewhere
    }
    if (month_name_ != npos) return date_with_name(numbers);
    if (numbers.size() == 2) {  // 01/2013
      if (digits(0) > 2 || digits(1) != 4) return false;
      set_short(0, 'm');
      set(1, "%Y");
      return true;
    }
    if (numbers.size() != 3 || digits(1) > 2) return false;
    const std::size_t mark = numbers[0] + 1;
    if (!is(mark, Token::Type::other) || !is(mark + 2, Token::Type::other) ||
        tokens_[mark].text != tokens_[mark + 2].text || numbers[1] != mark + 1) {
      return false;
    }
    if (digits(0) == 4 && digits(2) <= 2) {
      set(0, "%Y");
      set_short(1, 'm');
      set_short(2, 'd');
      return true;
    }
    if (digits(0) > 2 || (digits(2) != 4 && digits(2) != 2)) return false;
    if (digits(2) == 2 && is_mark(mark, '-')) return false;  // a code of some kind
    set(2, digits(2) == 4 ? "%Y" : "%y");
    first_ = numbers[0];
    second_ = numbers[1];
    // Where dates have points, the day comes first.
    day_first_only_ = is_mark(mark, '.');
    return true;
  }

  /// Jan-18 and Jan '18, nothing else: which of them are months their column tells.
  bool is_short_month(std::size_t year) const {
    if (month_name_ != 0 || tokens_[year].text.size() != 2 || year + 1 != tokens_.size())
      return false;
    if (year == 2) return is_mark(1, '-') || is_mark(1, '\'');
    return year == 3 && is_mark(1, ' ') && is_mark(2, '\'');
  }

  /// 2 Jan 2013, Jan 2, 2013, Jan 2013, 02-Jan-13.
  bool date_with_name(const std::vector<std::size_t>& numbers) {
    const auto set_day = [&](std::size_t i) {
      tokens_[i].field = field('d');
      return tokens_[i].text.size() <= 2;
    };
    const auto set_year = [&](std::size_t i) {
      const std::size_t size = tokens_[i].text.size();
      tokens_[i].field = size == 4 ? "%Y" : "%y";
      return size == 4 || size == 2;
    };
    if (numbers.size() == 1) {
      const std::size_t i = numbers[0];
      return (tokens_[i].text.size() == 4 || is_short_month(i)) && set_year(i);
    }
    if (numbers.size() != 2) return false;
    if (tokens_[numbers[0]].text.size() == 4) return set_year(numbers[0]) && set_day(numbers[1]);
    return set_day(numbers[0]) && set_year(numbers[1]);
  }

  std::vector<Token> tokens_;
  std::size_t month_name_ = npos;
  std::size_t first_ = npos, second_ = npos;  // day and month, in either order
  bool short_ = false;
  bool half_ = false, quarter_ = false, week_ = false, compact_ = false;
  bool day_first_only_ = false;
};

}  // namespace

std::vector<std::string> guess_patterns(std::string_view text) {
  text = trim(text);
  if (text.empty() || text.size() > kLongest || text.find('%') != text.npos) return {};
  std::vector<std::string> good;
  for (std::string& pattern : Guesser(text).guess()) {
    if (read_pattern(text, pattern)) good.push_back(std::move(pattern));
  }
  return good;
}

}  // namespace toto::data
