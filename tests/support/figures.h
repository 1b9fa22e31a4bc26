// SPDX-License-Identifier: Apache-2.0
// Figures for the tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "toto/tools/plot.hpp"

namespace toto::plot::test {

/// A noisy wave with a forecast, bands of 50, 80 and 95 % and, if asked for, hourly timestamps.
inline Panel wave(std::string name, std::size_t steps, std::size_t horizon, bool timed = true) {
  std::mt19937 random(static_cast<unsigned>(steps + horizon));
  std::normal_distribution<double> noise(0.0, 0.3);
  const auto level = [](std::size_t i) { return 10 + 3 * std::sin(static_cast<double>(i) / 12); };
  Panel panel;
  panel.name = std::move(name);
  panel.y_label = "req/s";
  for (std::size_t i = 0; i < steps; ++i) panel.history.push_back(level(i) + noise(random));
  panel.bands = {{0.5, {}, {}}, {0.8, {}, {}}, {0.95, {}, {}}};
  for (std::size_t i = 0; i < horizon; ++i) {
    panel.median.push_back(level(steps + i) + 0.2 * noise(random));
    double width = 0.3;
    for (Band& band : panel.bands) {
      width += 0.4 + 0.01 * std::abs(noise(random));
      band.lower.push_back(panel.median[i] - width);
      band.upper.push_back(panel.median[i] + width);
    }
  }
  if (!timed) return panel;
  const std::int64_t start = 1'700'000'000'000 / 3'600'000 * 3'600'000;
  for (std::size_t i = 0; i < steps + horizon; ++i) {
    const std::int64_t time = start + static_cast<std::int64_t>(i) * 3'600'000;
    (i < steps ? panel.history_time : panel.future_time).push_back(time);
  }
  return panel;
}

inline Figure figure_of(std::size_t panels, std::size_t steps, std::size_t horizon) {
  Figure figure;
  figure.title = "Waves";
  figure.subtitle = "Hourly";
  figure.footnote = "Model: test";
  for (std::size_t i = 0; i < panels; ++i) {
    figure.panels.push_back(wave("series " + std::to_string(i), steps, horizon));
  }
  return figure;
}

}  // namespace toto::plot::test
