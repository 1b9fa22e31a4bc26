// SPDX-License-Identifier: Apache-2.0
#include "data/dialect.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "data/guess.h"
#include "data/number.h"

namespace toto::data {
namespace {

constexpr std::size_t kLooked = std::size_t{1} << 16;
constexpr std::size_t kLines = 200;
constexpr std::string_view kDelimiters = ",;\t|";
constexpr std::string_view kMark = "\xEF\xBB\xBF";

struct Line {
  std::size_t begin = 0, end = 0;  // bytes
  std::size_t number = 1;
  std::array<std::size_t, kDelimiters.size()> counts{};
  bool comment = false;

  [[nodiscard]] std::size_t width(std::size_t delimiter) const { return counts[delimiter] + 1; }
};

/// The lines that are not empty; a line break within quotes ends none.
std::vector<Line> lines_of(std::string_view text, std::size_t at, std::size_t number) {
  std::vector<Line> lines;
  const std::size_t stop = std::min(text.size(), at + kLooked);
  while (at < stop && lines.size() < kLines) {
    Line line;
    line.begin = at;
    line.number = number;
    line.comment = text[at] == '#';
    bool quoted = false;
    // As in the reader, a quote opens a field at its beginning only.
    bool field_begins = true;
    for (; at < stop; ++at) {
      const char c = text[at];
      if (c == '"' && (quoted || field_begins)) quoted = !quoted;
      field_begins = false;
      if (c == '\n') ++number;
      if (quoted) continue;
      if (c == '\n' || c == '\r') break;
      if (const std::size_t k = kDelimiters.find(c); k != kDelimiters.npos) {
        ++line.counts[k];
        field_begins = true;
      }
    }
    line.end = at;
    if (at < stop && text[at] == '\r') {
      if (at + 1 < text.size() && text[at + 1] == '\n') ++at;
      ++number;
    }
    ++at;
    if (line.end > line.begin) lines.push_back(line);
  }
  return lines;
}

std::size_t usual_width(const std::vector<Line>& lines, std::size_t delimiter,
                        std::size_t* share = nullptr) {
  std::map<std::size_t, std::size_t> found;
  for (const Line& line : lines) {
    if (!line.comment) ++found[line.width(delimiter)];
  }
  std::size_t width = 1, most = 0;
  for (const auto& [one, count] : found) {
    if (count >= most) width = one, most = count;
  }
  if (share != nullptr) *share = most;
  return width;
}

std::size_t find_delimiter(const std::vector<Line>& lines) {
  std::size_t best = 0, best_share = 0, best_first = 0;
  for (std::size_t k = 0; k < kDelimiters.size(); ++k) {
    std::size_t share = 0;
    if (usual_width(lines, k, &share) == 1) share = 0;
    const auto first = std::ranges::find(lines, false, &Line::comment);
    const std::size_t in_first = first == lines.end() ? 0 : first->counts[k];
    if (share < best_share || (share == best_share && in_first <= best_first)) continue;
    best = k, best_share = share, best_first = in_first;
  }
  return best;
}

std::vector<std::string_view> fields_of(std::string_view text, const Line& line, char delimiter) {
  std::vector<std::string_view> fields;
  std::size_t at = line.begin;
  while (at <= line.end) {
    std::size_t end = at;
    bool quoted = false;
    for (; end < line.end && (quoted || text[end] != delimiter); ++end) {
      if (text[end] == '"') quoted = !quoted;
    }
    std::string_view field = trim(text.substr(at, end - at));
    if (field.size() > 1 && field.front() == '"' && field.back() == '"') {
      field = field.substr(1, field.size() - 2);
    }
    fields.push_back(field);
    at = end + 1;
  }
  return fields;
}

/// Nothing but numbers, times and empty fields.
bool holds_data_only(std::string_view text, const Line& line, char delimiter) {
  bool any = false;
  for (const std::string_view field : fields_of(text, line, delimiter)) {
    const Kind kind = kind_of(field);
    if (kind == Kind::text) return false;
    any = any || kind != Kind::empty;
  }
  return any;
}

/// A first line "sep=;", which Excel reads and writes. Its length, or 0.
std::size_t separator_line(std::string_view text, std::size_t at, char& delimiter) {
  const std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
  std::string_view line = text.substr(at, end - at);
  if (line.size() > 2 && line.front() == '"' && line.back() == '"') {
    line = line.substr(1, line.size() - 2);
  }
  if (line.size() != 5 || !equals_ignoring_case(line.substr(0, 4), "sep=")) return 0;
  if (kDelimiters.find(line[4]) == kDelimiters.npos) return 0;
  delimiter = line[4];
  return end - at;
}

std::string_view text_of(std::string_view text, const Line& line) {
  return trim(text.substr(line.begin, line.end - line.begin));
}

/// Tables as people and databases print them.
void find_rules(Dialect& out, std::string_view text, const std::vector<Line>& lines,
                std::size_t bars) {
  std::size_t boxed = 0, open = 0;
  for (const Line& line : lines) {
    if (line.comment) continue;
    const std::string_view all = text_of(text, line);
    if (is_rule(all)) {
      out.ruled = true;
    } else if (line.width(bars) > 1) {
      ++(all.size() > 1 && all.starts_with('|') && all.ends_with('|') ? boxed : open);
    }
  }
  out.boxed = out.ruled && boxed > 0 && open == 0;
}

void start_at(Dialect& out, const Line& line) {
  out.begin = line.begin;
  out.line = line.number;
}

}  // namespace

bool is_rule(std::string_view line) {
  line = trim(line);
  // "| - | - |" is a row of missing values.
  return line.find_first_not_of("-+|: ") == line.npos && line.find("---") != line.npos &&
         line.find_first_of("+|") != line.npos;
}

bool is_row_count(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('(') || (!line.ends_with(" rows)") && !line.ends_with(" row)"))) {
    return false;
  }
  const std::string_view count = line.substr(1, line.find(' ') - 1);
  return !count.empty() && count.find_first_not_of("0123456789") == count.npos;
}

Dialect sniff(std::string_view text) {
  Dialect out;
  out.begin = text.starts_with(kMark) ? kMark.size() : 0;
  if (const std::size_t size = separator_line(text, out.begin, out.delimiter); size > 0) {
    out.told = true;
    out.begin += size;
  }
  const std::vector<Line> lines = lines_of(text, out.begin, 1);
  if (lines.empty()) return out;
  std::size_t k = kDelimiters.find(out.delimiter);
  if (!out.told) k = find_delimiter(lines);
  out.delimiter = kDelimiters[k];

  if (out.delimiter == '|') find_rules(out, text, lines, k);

  const std::size_t width = usual_width(lines, k);
  const auto is_table = [](const Line& line) { return !line.comment; };
  auto first = std::ranges::find_if(lines, is_table);
  if (first == lines.end()) return out;
  if (first->width(k) < width) {
    const auto usual = std::find_if(first, lines.end(), [&](const Line& line) {
      return !line.comment && line.width(k) >= width;
    });
    if (usual != lines.end() && !holds_data_only(text, *usual, out.delimiter)) first = usual;
  }
  start_at(out, *first);
  out.skipped = static_cast<std::size_t>(first - lines.begin());
  // A comment of as many fields right above data names its columns.
  if (first != lines.begin() && std::prev(first)->comment &&
      std::prev(first)->width(k) == first->width(k) &&
      holds_data_only(text, *first, out.delimiter) && first->width(k) > 1) {
    start_at(out, *std::prev(first));
    out.hash_header = true;
    --out.skipped;
  }
  return out;
}

}  // namespace toto::data
