// SPDX-License-Identifier: Apache-2.0
// From points to SVG path data, thinned so that dense series stay small without losing a spike.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace toto::plot {

/// In pixels; a NaN y is a gap.
struct Point {
  double x = 0.0;
  double y = 0.0;
};

/// A coordinate to a tenth of a pixel, without needless zeros.
[[nodiscard]] std::string coordinate(double value);

struct LinePath {
  std::string line;  ///< runs of two points and more
  std::string dots;  ///< points that stand alone, as lines of no length: for round caps
};

/// Of each pixel column the lowest and the highest point.
[[nodiscard]] LinePath line_path(std::span<const Point> points);

/// The area between two limits over the same x; of each pixel column the outermost. Runs of one
/// step are drawn a few pixels wide.
[[nodiscard]] std::string area_path(std::span<const Point> upper, std::span<const Point> lower);

}  // namespace toto::plot
