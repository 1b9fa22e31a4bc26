// SPDX-License-Identifier: Apache-2.0
// Paths are written with relative coordinates in whole tenths of a pixel: about half the bytes, and
// no rounding adds up, since differences are taken between rounded positions.
#include "tools/plot/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace toto::plot {
namespace {

std::string tenths(long value) {
  const long size = std::abs(value);
  std::string text = value < 0 ? "-" : "";
  if (size >= 10 || size % 10 == 0) text += fmt::format("{}", size / 10);
  if (size % 10 != 0) text += fmt::format(".{}", size % 10);
  return text;
}

class PathWriter {
 public:
  void move(Point to) {
    x_ = std::lround(to.x * 10);
    y_ = std::lround(to.y * 10);
    text_ += 'M' + tenths(x_) + ' ' + tenths(y_);
    drawing_ = false;
  }
  void line(Point to) {
    const long x = std::lround(to.x * 10);
    const long y = std::lround(to.y * 10);
    if (!drawing_) text_ += 'l';
    number(x - x_, drawing_);
    number(y - y_, true);
    drawing_ = true;
    x_ = x;
    y_ = y;
  }
  void dot(Point at) {
    move(at);
    text_ += "h0";
  }
  void close() { text_ += 'z'; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void number(long value, bool follows) {
    if (follows && value >= 0) text_ += ' ';  // a minus sign separates by itself
    text_ += tenths(value);
  }

  std::string text_;
  long x_ = 0;
  long y_ = 0;
  bool drawing_ = false;
};

double column(Point point) { return std::floor(point.x); }

// Calls keep(column's points that are no gaps) for each pixel column; for a column that holds only
// gaps with an empty span.
template <typename Keep>
void for_each_column(std::span<const Point> points, Keep keep) {
  std::vector<Point> inside;
  for (std::size_t i = 0; i < points.size();) {
    inside.clear();
    const double here = column(points[i]);
    for (; i < points.size() && column(points[i]) == here; ++i) {
      if (!std::isnan(points[i].y)) inside.push_back(points[i]);
    }
    keep(std::span<const Point>(inside), here);
  }
}

bool higher(Point a, Point b) { return a.y < b.y; }  // y grows downwards

std::vector<Point> thinned(std::span<const Point> points) {
  std::vector<Point> kept;
  for_each_column(points, [&](std::span<const Point> inside, double here) {
    if (inside.empty()) {
      kept.push_back({here, std::nan("")});
    } else if (inside.size() <= 2) {
      kept.insert(kept.end(), inside.begin(), inside.end());
    } else {
      const auto [top, bottom] = std::minmax_element(inside.begin(), inside.end(), higher);
      kept.push_back(*std::min(top, bottom));
      kept.push_back(*std::max(top, bottom));
    }
  });
  return kept;
}

// The end of the run of points without a gap that starts at `begin`.
std::size_t run_end(std::span<const Point> points, std::size_t begin) {
  std::size_t end = begin;
  while (end < points.size() && !std::isnan(points[end].y)) ++end;
  return end;
}

std::string area_of_run(std::span<const Point> upper, std::span<const Point> lower) {
  constexpr double kHalfWidth = 3.0;
  PathWriter path;
  if (upper.size() == 1) {
    const double x = upper[0].x;
    path.move({x - kHalfWidth, upper[0].y});
    path.line({x + kHalfWidth, upper[0].y});
    path.line({x + kHalfWidth, lower[0].y});
    path.line({x - kHalfWidth, lower[0].y});
    path.close();
    return path.take();
  }
  std::vector<Point> outline;
  for_each_column(upper, [&](std::span<const Point> inside, double) {
    outline.push_back(*std::min_element(inside.begin(), inside.end(), higher));
  });
  const std::size_t turn = outline.size();
  for_each_column(lower, [&](std::span<const Point> inside, double) {
    outline.push_back(*std::max_element(inside.begin(), inside.end(), higher));
  });
  outline[0].x = outline[turn].x = upper.front().x;  // the ends stay where the run ends
  outline[turn - 1].x = outline.back().x = upper.back().x;
  std::reverse(outline.begin() + static_cast<std::ptrdiff_t>(turn), outline.end());
  path.move(outline[0]);
  for (std::size_t i = 1; i < outline.size(); ++i) path.line(outline[i]);
  path.close();
  return path.take();
}

}  // namespace

std::string coordinate(double value) { return tenths(std::lround(value * 10)); }

LinePath line_path(std::span<const Point> points) {
  const std::vector<Point> kept = thinned(points);
  PathWriter lines;
  PathWriter dots;
  for (std::size_t i = 0; i < kept.size();) {
    const std::size_t end = run_end(kept, i);
    if (end == i + 1) {
      dots.dot(kept[i]);
    } else if (end > i) {
      lines.move(kept[i]);
      for (std::size_t k = i + 1; k < end; ++k) lines.line(kept[k]);
    }
    i = end + 1;
  }
  return {lines.take(), dots.take()};
}

std::string area_path(std::span<const Point> upper, std::span<const Point> lower) {
  std::string path;
  for (std::size_t i = 0; i < upper.size();) {
    const std::size_t end = std::min(run_end(upper, i), run_end(lower, i));
    if (end > i) path += area_of_run(upper.subspan(i, end - i), lower.subspan(i, end - i));
    i = end + 1;
  }
  return path;
}

}  // namespace toto::plot
