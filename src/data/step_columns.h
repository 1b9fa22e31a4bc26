// SPDX-License-Identifier: Apache-2.0
// Columns of a header whose names are the steps of series that lie in rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace toto::data {

struct StepColumns {
  std::vector<std::size_t> columns;  // in the order of the header, at least three
  bool times = false;                // their names are dates, times or years; else numbers
  std::string prefix;                // numbers: what stands before them, d_ of d_1913
  std::int64_t first = 0;            // numbers: of the first column

  /// The prefix says that the columns are steps: t, d, day, week, step and the like.
  [[nodiscard]] bool says_steps() const;
  /// V2, V3, ..., X1, X2, ... and 1, 2, ...: what programs call columns without a name.
  [[nodiscard]] bool unnamed() const;
};

/// Every column that is called by a time (one after the other, in either direction), else the
/// longest run of columns that are numbered one by one. Nothing where there are fewer than three.
std::optional<StepColumns> find_step_columns(std::span<const std::string> names);

/// The time in the name of such a column: 1960 of X1960 and of "1960 [YR1960]".
std::string_view time_in_name(std::string_view name);

}  // namespace toto::data
