// SPDX-License-Identifier: Apache-2.0
// JSON as programs give out series, turned into a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/text.h"

namespace toto::data {

/// A text that begins as a JSON document or as JSON lines does.
bool looks_like_json(std::string_view text);

struct JsonTable {
  Text text;                     // as CSV
  std::string format;            // "JSON" or "JSON lines"
  std::vector<std::string> ids;  // where the column "id" holds numbers of these; else empty
  std::vector<std::string> notes;
};

/// Finds the rows of a document wherever they are in it:
///   an array of arrays    [[time, value], ...]        Prometheus, Datadog, Binance
///   an array of objects   [{"t": ..., "o": ...}, ...]  Alpaca; JSON lines are one
///   objects by their time {"2024-01-02": {...}, ...}  Alpha Vantage
/// The object around an array of arrays tells its labels. One row of the table for each; numbers
/// keep their digits. Throws Error (65): invalid_json, no_rows.
JsonTable read_json_table(const Text& text);

}  // namespace toto::data
