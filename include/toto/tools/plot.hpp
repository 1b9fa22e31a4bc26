// SPDX-License-Identifier: Apache-2.0
// Plots: histories and forecasts as one SVG picture or one HTML page that needs no network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "toto/error.hpp"
#include "toto/model.hpp"

#pragma GCC visibility push(default)
namespace toto::plot {

/// How the horizontal axis is written.
enum class TimeStyle {
  automatic,  ///< dates when every timestamp is midnight UTC, else times; steps without timestamps
  date,
  time,
  index,  ///< step numbers, timestamps or not
};

/// The central interval that holds `level` of the probability. NaN leaves a gap, infinite limits
/// are drawn to the edge of the plot.
struct Band {
  double level = 0.0;         ///< in (0, 1), for example 0.8
  std::vector<double> lower;  ///< [H]
  std::vector<double> upper;  ///< [H]
};

/// A central interval and its ends, as levels of quantiles.
struct BandLevels {
  double level = 0;  ///< of the probability inside, in (0, 1)
  double lower = 0, upper = 0;
};

/// What plots show where nothing was asked for: 50, 80 and 95 %.
[[nodiscard]] std::vector<BandLevels> default_bands();
/// Those of them whose ends the model knows.
[[nodiscard]] std::vector<BandLevels> default_bands(const ModelInfo& model);

/// One series and its forecast. Every vector over the horizon has length H or is empty.
struct Panel {
  std::string name;     ///< any bytes; shown above the plot
  std::string y_label;  ///< unit or column, shown beside the name
  TimeStyle time_style = TimeStyle::automatic;

  std::vector<std::int64_t> history_time;  ///< [T] ms since 1970 UTC, increasing; empty: steps
  std::vector<double> history;             ///< [T]; NaN: a gap
  std::vector<std::uint8_t> observed;      ///< [T] 0 = filled in, drawn apart; empty: all observed

  std::vector<std::int64_t> future_time;  ///< [H], after the history; empty: steps
  std::vector<double> median;             ///< [H]
  std::vector<double> mean;               ///< [H]
  std::vector<Band> bands;
  std::vector<double> actual;       ///< [H] what came to pass, for a backtest
  std::vector<std::uint8_t> marks;  ///< [H] 1 = a ring around the actual value: an anomaly
};

struct Figure {
  std::string title;
  std::string subtitle;
  std::string footnote;       ///< names the model
  bool synthetic = false;     ///< weights are synthetic: the figure says so visibly
  std::vector<Panel> panels;  ///< drawn as a grid; the first 60, and a line says how many there are
  /// Steps of history to show. By default as many as keep the forecast readable: three horizons,
  /// and at least 40.
  std::optional<std::size_t> history_steps;
};

/// A stand-alone SVG image, UTF-8, the same bytes for the same figure. Timestamps outside the years
/// 1 to 9999 are drawn as steps. Throws Error invalid_figure (65) when lengths do not fit or times
/// do not increase.
[[nodiscard]] std::string to_svg(const Figure& figure);

/// The same picture as a page of its own: it follows a dark colour scheme and reads out the values
/// under the pointer. Errors as for to_svg.
[[nodiscard]] std::string to_html(const Figure& figure);

}  // namespace toto::plot
#pragma GCC visibility pop
