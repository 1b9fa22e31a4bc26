// SPDX-License-Identifier: Apache-2.0
// Tables with a series in each row: an id, and a column for each step (M4, M5, web traffic, World
// Bank).
#pragma once

#include <optional>

#include "data/table.h"

namespace toto::data {

/// Reads such a table if it is clearly one, or if options.layout says so. Nothing: another layout.
///
/// Columns called by times give their times. Numbered ones are the steps 0, 1, ... (d_1, t5, 1: as
/// they are numbered); there the empty fields at the end of a row are behind its series' end.
///
/// `spent`: where given, the bytes of the text: those of rows that float32 holds exactly are given
/// back as soon as the rows are read.
///
/// Throws Error (65) as for read_csv, and ambiguous_layout where the table may be of either kind,
/// missing_id, ambiguous_id; (2) conflicting_flags.
std::optional<Table> read_row_series(const Text& text, const CsvOptions& options,
                                     Bytes* spent = nullptr);

}  // namespace toto::data
