// SPDX-License-Identifier: Apache-2.0
// Forecasts as a short table for reading in a terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace toto::cli {

/// A further interval, beside the first.
struct TableInterval {
  std::string name;
  std::vector<double> lower, upper;  ///< [H]
};

/// One series and its forecast over H steps.
struct TableSeries {
  std::string name;                 ///< any bytes
  std::vector<std::string> times;   ///< [H] as they are to be written
  std::vector<double> centre;       ///< [H] median or mean
  std::vector<double> lower;        ///< [H] limits of the interval; empty: none
  std::vector<double> upper;        ///< [H]
  std::vector<TableInterval> more;  ///< shown as far as they fit
  std::vector<double> history;      ///< what came before, for the sparkline; may be empty
};

struct TableLook {
  std::string centre_name = "median";
  std::string interval_name = "80 % interval";
  std::size_t width = 80;  ///< columns; the interval is left out where it does not fit
};

/// A block of lines for each series: its name with a sparkline of history and forecast, then the
/// first steps and the last ones. Of many series the first are shown and the others counted.
[[nodiscard]] std::string forecast_table(std::span<const TableSeries> series,
                                         const TableLook& look = {});

}  // namespace toto::cli
