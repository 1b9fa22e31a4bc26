// SPDX-License-Identifier: Apache-2.0
// Reads path data back into points: M, L, l, H, h, v and z, as the drawing uses them.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/plot/path.h"

namespace toto::plot::test {

inline std::vector<Point> path_points(const std::string& data) {
  std::vector<Point> points;
  Point at;
  char command = 0;
  const char* rest = data.c_str();
  // A second point directly after ".5" must not be read as one number: strtod stops at it.
  const auto number = [&] {
    char* end = nullptr;
    const double value = std::strtod(rest, &end);
    if (end == rest) throw std::runtime_error("no number at: " + std::string(rest, 20));
    rest = end;
    return value;
  };
  while (*rest != '\0') {
    if (std::string_view("MLlHhvz").find(*rest) != std::string_view::npos) {
      command = *rest++;
      if (command == 'z') continue;
    }
    switch (command) {
      case 'M':
      case 'L':
        at.x = number();
        at.y = number();
        break;
      case 'l':
        at.x += number();
        at.y += number();
        break;
      case 'H':
        at.x = number();
        break;
      case 'h':
        at.x += number();
        break;
      case 'v':
        at.y += number();
        break;
      default:
        throw std::runtime_error("unknown command");
    }
    points.push_back(at);
  }
  return points;
}

}  // namespace toto::plot::test
