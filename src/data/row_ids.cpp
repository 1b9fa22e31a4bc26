// SPDX-License-Identifier: Apache-2.0
#include "data/row_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/json.h"
#include "core/utf8.h"
#include "data/column_words.h"
#include "data/guess.h"
#include "data/number.h"

namespace toto::data {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

}  // namespace

RowIds::RowIds(const CsvReader& csv, const std::vector<std::string>& names,
               std::vector<std::size_t> columns, const std::vector<std::string>& told)
    : csv_(csv), names_(names), columns_(std::move(columns)) {
  for (const std::string& name : told) {
    const auto at = std::ranges::find_if(columns_, [&](std::size_t column) {
      return names_[column] == name || plain_name(names_[column]) == plain_name(name);
    });
    if (at == columns_.end()) {
      csv_.fail("missing_column",
                fmt::format("there is no column {} beside the steps of the series", quote(name)),
                {1, 1}, "--id names columns that tell rows apart");
    }
    told_.push_back(static_cast<std::size_t>(at - columns_.begin()));
  }
}

void RowIds::add(const CsvReader& csv) {
  lines_.push_back(csv.line());
  for (const std::size_t column : columns_) {
    const std::string_view one = column < csv.size() ? trim(csv[column]) : std::string_view();
    if (first_invalid_utf8(one) != std::string_view::npos) {
      csv.fail("encoding", "the name is not UTF-8", csv.place(column), "save the file as UTF-8");
    }
    words_ += one;
    ends_.push_back(words_.size());
  }
}

std::string RowIds::id_of(std::size_t row, const std::vector<std::size_t>& by) const {
  std::string id;
  for (const std::size_t i : by) {
    const std::string_view part = field(row, i);
    if (part.empty()) continue;
    if (!id.empty()) id.push_back('/');
    id.append(part);
  }
  return id;
}

/// The first row that has no id, or one that a row before it has.
std::size_t RowIds::first_repeated(const std::vector<std::size_t>& by) const {
  std::unordered_set<std::string> seen;
  for (std::size_t row = 0; row < lines_.size(); ++row) {
    std::string id = id_of(row, by);
    if (id.empty() || !seen.insert(std::move(id)).second) return row;
  }
  return kNone;
}

bool RowIds::is_text(std::size_t i) const {
  constexpr std::size_t kLooked = 1000;
  std::size_t words = 0, others = 0;
  for (std::size_t row = 0; row < std::min(lines_.size(), kLooked); ++row) {
    if (field(row, i).empty()) continue;
    ++(is_word(field(row, i)) ? words : others);
  }
  return words > 0 && words >= others;
}

std::vector<std::vector<std::size_t>> RowIds::candidates() const {
  std::vector<std::vector<std::size_t>> out;
  std::vector<std::size_t> words, all;
  for (const std::string_view word : id_words()) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (plain_name(names_[columns_[i]]) == word) out.push_back({i});
    }
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool text = is_text(i);
    if (text) words.push_back(i);
    const std::string plain = plain_name(names_[columns_[i]]);
    const bool named = std::ranges::find(id_words(), std::string_view(plain)) != id_words().end();
    if (text || named || is_group_word(plain)) all.push_back(i);
  }
  for (const std::size_t i : words) out.push_back({i});
  if (words.size() > 1) out.push_back(words);
  if (!all.empty()) out.push_back(all);
  if (words.empty() && all.empty() && !columns_.empty()) out.push_back({0});
  return out;
}

std::vector<std::string> RowIds::settle() {
  std::vector<std::string> ids;
  const std::vector<std::vector<std::size_t>> all =
      told_.empty() ? candidates() : std::vector<std::vector<std::size_t>>{told_};
  if (all.empty()) {
    for (std::size_t row = 0; row < lines_.size(); ++row)
      ids.push_back(fmt::format("row{}", row + 1));
    return ids;
  }
  std::size_t repeated = kNone;
  for (const std::vector<std::size_t>& by : all) {
    repeated = first_repeated(by);
    if (repeated != kNone && &by != &all.back()) continue;
    for (const std::size_t i : by) by_.push_back(columns_[i]);
    if (repeated != kNone) break;
    for (std::size_t row = 0; row < lines_.size(); ++row) ids.push_back(id_of(row, by));
    return ids;
  }
  const std::string id = id_of(repeated, all.back());
  if (id.empty()) csv_.fail("missing_id", "the id is empty", {lines_[repeated], 1});
  csv_.fail("ambiguous_id", fmt::format("a row before this one is series {} already", quote(id)),
            {lines_[repeated], 1}, "name the columns that tell rows apart: --id A,B");
}

}  // namespace toto::data
