// SPDX-License-Identifier: Apache-2.0
// Rows at regular times: counters as rates, steps that rows are gathered into, a grid that stamps
// are moved to.
#pragma once

#include "data/table.h"

namespace toto::data {

/// Does what the options ask for, group by group, in this order: rate, then resample or freq.
/// Without either, stamps that waver about a grid of a usual step (a scrape every 15 s, some ms
/// late) are moved to it. Adds warnings. Throws Error (2) invalid_frequency, invalid_resample,
/// conflicting_flags; (65) frequency_mismatch.
void make_regular(Table& table, const CsvOptions& options);

}  // namespace toto::data
