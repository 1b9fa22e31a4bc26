// SPDX-License-Identifier: Apache-2.0
// Bands are opaque mixtures of the forecast's colour with the background, so that nested bands
// look alike wherever they lie.
#include "tools/plot/style.h"

#include <fmt/format.h>

#include <cmath>

namespace toto::plot {
namespace {

struct Colour {
  int red, green, blue;
};

struct Palette {
  Colour background, ink, faint_ink, grid, history, forecast, actual, warning, warning_ink, mark;
};

constexpr Palette kLight = {{255, 255, 255}, {24, 29, 39},  {99, 107, 120}, {0, 0, 0},
                            {44, 52, 66},    {11, 87, 208}, {217, 72, 15},  {255, 236, 179},
                            {122, 70, 0},    {200, 0, 60}};
constexpr Palette kDark = {{22, 24, 29},    {232, 234, 238}, {155, 162, 174}, {255, 255, 255},
                           {214, 218, 225}, {106, 169, 255}, {255, 146, 72},  {82, 58, 10},
                           {255, 220, 150}, {255, 90, 130}};

std::string hex(Colour c) { return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue); }

Colour mixed(Colour from, Colour to, double share) {
  const auto mix = [share](int a, int b) {
    return static_cast<int>(std::lround(a + (b - a) * share));
  };
  return {mix(from.red, to.red), mix(from.green, to.green), mix(from.blue, to.blue)};
}

double tint(std::size_t band, std::size_t bands) {
  constexpr double kFaintest = 0.15;
  constexpr double kStrongest = 0.46;
  if (bands < 2) return 0.25;
  return kFaintest +
         (kStrongest - kFaintest) * static_cast<double>(band) / static_cast<double>(bands - 1);
}

}  // namespace

std::string style_rules(Scheme scheme, std::size_t bands) {
  const Palette& p = scheme == Scheme::light ? kLight : kDark;
  std::string css = fmt::format(
      ".bg{{fill:{}}}.t{{fill:{}}}.s{{fill:{}}}.grid{{stroke:{};stroke-opacity:.09}}"
      ".axis{{stroke:{};stroke-opacity:.55}}.h{{stroke:{}}}.f{{stroke:{};stroke-opacity:.6}}"
      ".m{{stroke:{}}}.e{{stroke:{}}}.a{{stroke:{}}}.x{{stroke:{}}}.now{{stroke:{}}}"
      ".warn{{fill:{}}}.warnt{{fill:{}}}",
      hex(p.background), hex(p.ink), hex(p.faint_ink), hex(p.grid), hex(p.faint_ink),
      hex(p.history), hex(p.history), hex(p.forecast), hex(p.forecast), hex(p.actual), hex(p.mark),
      hex(p.faint_ink), hex(p.warning), hex(p.warning_ink));
  for (std::size_t i = 0; i < bands; ++i) {
    css += fmt::format(".b{}{{fill:{}}}", i, hex(mixed(p.background, p.forecast, tint(i, bands))));
  }
  if (scheme == Scheme::dark) return css;
  return css +
         ".h,.f,.m,.e,.a,.x{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}"
         ".m{stroke-width:2}.a{stroke-width:1.3}.small .h,.small .a{stroke-width:1.1}"
         ".small .m{stroke-width:1.5}.f{stroke-dasharray:1 "
         "3}.e{stroke-width:1.2;stroke-dasharray:5 4}"
         ".d,.small .d{stroke-width:4.5;stroke-dasharray:none}.now{stroke-dasharray:2 3}"
         ".grid,.axis,.now{fill:none;shape-rendering:crispEdges}.k{font-weight:bold}"
         ".r{text-anchor:end}.c{text-anchor:middle}";
}

}  // namespace toto::plot
