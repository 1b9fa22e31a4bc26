// SPDX-License-Identifier: Apache-2.0
// The geometry of a figure: the grid of panels, and in each panel where data become pixels.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/plot/time_axis.h"
#include "tools/plot/value_axis.h"
#include "toto/tools/plot.hpp"

namespace toto::plot {

struct Rect {
  double left = 0.0;
  double top = 0.0;
  double right = 0.0;
  double bottom = 0.0;
};

/// A panel laid out. Its axis runs over the history that is shown and then the horizon.
struct Frame {
  const Panel* panel;
  Rect cell;                ///< all of the panel, name and labels included
  Rect plot;                ///< where data are drawn
  std::size_t first_shown;  ///< of the history
  std::size_t shown;        ///< steps of history
  std::size_t horizon;
  ValueRange range;
  ValueTicks ticks;
  TimeAxis axis;

  [[nodiscard]] double y(double value) const;  ///< inside the plot; NaN stays NaN
  [[nodiscard]] double history_value(std::size_t step) const;
  [[nodiscard]] bool observed(std::size_t step) const;
  /// Whether the forecast is drawn from the last value of the history on.
  [[nodiscard]] bool anchored() const;
};

struct Grid {
  std::size_t columns;
  double width;        ///< of the figure
  double plot_height;  ///< of each panel
  double font_size;    ///< of the labels
  bool roomy;          ///< panels have the width of the figure
};

inline constexpr double kMargin = 24.0;  ///< around the figure

[[nodiscard]] Grid grid_for(std::size_t panels);

/// One column as wide as a telephone: 360 px.
[[nodiscard]] Grid narrow_grid(std::size_t panels);

/// The first step of a panel's history that is drawn. Throws Error invalid_figure (65).
[[nodiscard]] std::size_t first_shown(const Figure& figure, const Panel& panel);

/// Lays out `count` panels from `top` on; `bottom` becomes where they end. Throws Error
/// invalid_figure (65).
[[nodiscard]] std::vector<Frame> lay_out(const Figure& figure, std::size_t count, const Grid& grid,
                                         double top, double& bottom);

}  // namespace toto::plot
