// SPDX-License-Identifier: Apache-2.0
#include "data/row_layout.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "data/bad_number.h"
#include "data/column_words.h"
#include "data/guess.h"
#include "data/look.h"
#include "data/number.h"
#include "toto/error.hpp"

namespace toto::data {
namespace {

using Columns = std::vector<std::size_t>;  // of RowsSample::attributes

bool has(Words words, const std::string& plain) {
  return std::ranges::find(words, std::string_view(plain)) != words.end();
}

Look look_at_attribute(const RowsSample& sample, std::size_t i) {
  const std::vector<std::string_view> fields(sample.fields[i].begin(), sample.fields[i].end());
  return look_at(fields);
}

/// A column that says when a row was: then the other columns are no steps.
bool says_when(const std::string& name, const Look& look) {
  // What programs call a column that nobody named.
  constexpr auto kWeak =
      std::to_array<std::string_view>({"index", "step", "unnamed:0", "t", "data", "ts", "period"});
  if (look.dates || look.clocks || look.likely_epochs) return true;
  const std::string plain = plain_name(name);
  if (!has(time_words(), plain)) return false;
  return !look.text || std::ranges::find(kWeak, std::string_view(plain)) == kWeak.end();
}

/// 2NE1_zh.wikipedia.org begins like a number and is none.
bool holds_words(const std::vector<std::string>& fields) {
  const auto words = static_cast<std::size_t>(std::ranges::count_if(fields, is_word));
  return words > 0 && 2 * words >= fields.size();
}

/// Whether these columns together have another text in each row.
bool tell_apart(const RowsSample& sample, const Columns& columns) {
  if (columns.empty()) return false;
  std::set<std::string> seen;
  for (std::size_t row = 0; row < sample.rows; ++row) {
    std::string key;
    for (const std::size_t i : columns) key.append(sample.fields[i][row]).push_back('\n');
    if (key.size() == columns.size() || !seen.insert(std::move(key)).second) return false;
  }
  return true;
}

RowsLook look_at_times(const StepColumns& steps, const RowsSample& sample, const Columns& ids) {
  if (!ids.empty()) return RowsLook::yes;
  if (!sample.attributes.empty()) return RowsLook::unclear;
  const bool far_more = steps.columns.size() > sample.rows;
  return !sample.all_integers && far_more ? RowsLook::yes : RowsLook::unclear;
}

RowsLook look_at_numbers(const StepColumns& steps, const RowsSample& sample, const Columns& ids) {
  // So few numbers in order may stand in a first row of data.
  constexpr std::size_t kFewestWithoutPrefix = 8;
  const std::size_t count = steps.columns.size();
  if (steps.prefix.empty() && (count < kFewestWithoutPrefix || steps.first > 1)) {
    return RowsLook::no;
  }
  const bool far_more = sample.complete && count > 2 * sample.rows;
  const bool by_shape = sample.ragged || far_more;
  if (ids.empty()) {
    const bool may_be = steps.says_steps() && sample.attributes.empty();
    return !may_be ? RowsLook::no : by_shape ? RowsLook::yes : RowsLook::unclear;
  }
  if (!tell_apart(sample, ids)) return RowsLook::no;
  if (steps.says_steps()) return RowsLook::yes;
  if (steps.unnamed()) return by_shape ? RowsLook::yes : RowsLook::unclear;
  return by_shape ? RowsLook::unclear : RowsLook::no;
}

class Sampler {
 public:
  Sampler(RowsSample& out, const StepColumns& steps, const ToldMissing& told)
      : out_(out), steps_(steps), told_(told) {}

  void add(const CsvReader& csv) {
    ++out_.rows;
    for (std::size_t i = 0; i < out_.attributes.size(); ++i) {
      const std::size_t column = out_.attributes[i];
      out_.fields[i].emplace_back(column < csv.size() ? trim(csv[column]) : std::string_view());
    }
    std::size_t filled = 0, there = 0;  // one more than the last step with a number; how many have
    for (std::size_t i = 0; i < steps_.columns.size(); ++i) {
      const std::size_t column = steps_.columns[i];
      if (column >= csv.size()) break;
      const Kind kind = kind_of(csv[column]);
      if (kind == Kind::empty || told_.has(csv[column])) continue;
      if (trim(csv[column]).starts_with(':')) continue;  // Eurostat's ": c"
      filled = i + 1;
      ++there;
      out_.any = true;
      out_.all_numbers = out_.all_numbers && kind != Kind::time &&
                         (!is_word(csv[column]) || is_limit(csv[column]));
      if (out_.cells.size() < RowsSample::kMaxCells) out_.cells.emplace_back(csv[column]);
    }
    // One number that is missing at the end, or more within, may be missing anywhere.
    if (there > 0 && there == filled && filled + 1 < steps_.columns.size()) out_.ragged = true;
  }

 private:
  RowsSample& out_;
  const StepColumns& steps_;
  const ToldMissing& told_;
};

}  // namespace

bool holds_row(const CsvReader& csv) {
  if (csv[0].starts_with('#')) return false;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (!trim(csv[i]).empty()) return true;
  }
  return false;
}

RowsSample sample_rows(CsvReader csv, const std::vector<std::string>& names,
                       const StepColumns& steps, const ToldMissing& told) {
  RowsSample out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!std::ranges::binary_search(steps.columns, i)) out.attributes.push_back(i);
  }
  while (!out.attributes.empty() && out.attributes.back() > steps.columns.back() &&
         names[out.attributes.back()].empty()) {
    out.attributes.pop_back();  // behind a trailing comma
  }
  out.fields.resize(out.attributes.size());
  for (const std::size_t column : steps.columns) {
    out.all_integers = out.all_integers && time_in_name(names[column]).size() == 4;
  }
  Sampler sampler(out, steps, told);
  try {
    const std::size_t begin = csv.offset();
    while (out.rows < RowsSample::kMaxRows && csv.offset() - begin < RowsSample::kMaxBytes) {
      if (!csv.next()) {
        out.complete = true;
        break;
      }
      if (holds_row(csv)) sampler.add(csv);
    }
  } catch (const Error&) {
    out.complete = false;
  }
  return out;
}

RowsLook look_at_rows(const std::vector<std::string>& names, const StepColumns& steps,
                      const RowsSample& sample) {
  if (sample.rows == 0 || !sample.any || !sample.all_numbers) return RowsLook::no;
  Columns ids;
  for (std::size_t i = 0; i < sample.attributes.size(); ++i) {
    const std::string& name = names[sample.attributes[i]];
    const Look look = look_at_attribute(sample, i);
    if (says_when(name, look)) return RowsLook::no;
    const std::string plain = plain_name(name);
    if (look.empty) continue;
    if (look.text || holds_words(sample.fields[i]) || has(id_words(), plain) ||
        is_group_word(plain))
      ids.push_back(i);
  }
  return steps.times ? look_at_times(steps, sample, ids) : look_at_numbers(steps, sample, ids);
}

}  // namespace toto::data
