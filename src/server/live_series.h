// SPDX-License-Identifier: Apache-2.0
// A series that grows: what is kept of it, and the bodies that make and extend it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/call.h"

namespace toto::server {

struct LiveSeries {
  std::string id;
  std::string frequency, start;  ///< as they were given; empty: not known
  std::size_t variates = 1;
  bool univariate = true;   ///< answered as a list of numbers
  std::uint64_t count = 0;  ///< steps since it was made
  std::vector<float> rows;  ///< [steps][variates], the last ones; NaN is missing

  [[nodiscard]] std::size_t steps() const { return rows.size() / variates; }
  /// Adds rows and keeps the last `context` steps.
  void append(const std::vector<float>& more, std::size_t context);
};

/// Steps that come at a time.
struct Points {
  std::vector<float> rows;  ///< [steps][variates]; NaN is missing
  std::size_t variates = 1;
  bool univariate = true;
  std::optional<std::uint64_t> at;  ///< how many steps there must be before them
};

/// {"values": [...], "frequency": "H", "start": "2026-01-01", "variates": 2}: all of it may be left
/// out. Throws Error invalid_request and the like.
LiveSeries parse_series(const std::string& id, const std::string& body, const Limits& limits);
/// {"values": [...], "at": 17}: one list of numbers, or time-major rows.
Points parse_points(const std::string& body, const Limits& limits);

/// Throws Error invalid_request for an id that is empty, above 200 bytes, or not printable UTF-8.
void check_series_id(const std::string& id);

/// What is forecast: the last `context` steps. Its index is 0, its options are those of `options`.
SeriesInput input_of(const LiveSeries& series, std::size_t context, const ForecastOptions& options);

/// As JSON, with the last `last` steps.
std::string describe(const LiveSeries& series, std::size_t last);

}  // namespace toto::server
