// SPDX-License-Identifier: Apache-2.0
// Pictures of forecasts for notebooks without matplotlib.
#include "toto/tools/plot.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "plot.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

namespace toto::python {
namespace {

using Row = std::vector<double>;
/// Name, history, median, mean, and (level, lower, upper) for each band.
using PanelRow = std::tuple<std::string, Row, Row, Row, std::vector<std::tuple<double, Row, Row>>>;

std::string svg_of(const std::string& title, const std::vector<PanelRow>& panels) {
  plot::Figure figure;
  figure.title = title;
  for (const auto& [name, history, median, mean, bands] : panels) {
    plot::Panel panel;
    panel.name = name;
    panel.time_style = plot::TimeStyle::index;
    panel.history = history;
    panel.median = median;
    panel.mean = mean;
    for (const auto& [level, lower, upper] : bands) panel.bands.push_back({level, lower, upper});
    figure.panels.push_back(std::move(panel));
  }
  return plot::to_svg(figure);
}

}  // namespace

void bind_plot(nb::module_& module) { module.def("svg", &svg_of, "title"_a, "panels"_a); }

}  // namespace toto::python
