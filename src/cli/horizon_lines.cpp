// SPDX-License-Identifier: Apache-2.0
#include "cli/horizon_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.h"

namespace toto::cli {
namespace {

std::string shown(const std::string& name) { return to_utf8(printable(name)); }

std::string crossing(std::string_view side, double level, double anywhere,
                     const std::vector<double>& steps) {
  const auto most = std::ranges::max_element(steps) - steps.begin();
  return fmt::format(
      "  {} {:g}: {:.3g} % anywhere in the horizon, at most {:.3g} % at one step ({})\n", side,
      level, 100 * anywhere, 100 * steps[static_cast<std::size_t>(most)], most + 1);
}

}  // namespace

std::string horizon_lines(std::span<const data::TimeSeries> series,
                          std::span<const Forecast> forecasts,
                          const data::HorizonQuestion& question) {
  std::string text;
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (std::size_t v = 0; v < series[i].targets(); ++v) {
      const data::HorizonAnswer answer =
          data::over_horizon(forecasts[i], v, question, series[i].offset_of(v));
      text += fmt::format("{}{}, {} steps\n", shown(series[i].id),
                          series[i].targets() > 1 ? fmt::format(" {}", shown(series[i].variates[v]))
                                                  : std::string(),
                          forecasts[i].horizon);
      if (question.aggregate != data::HorizonAggregate::none) {
        text += fmt::format("  {}: mean {:.6g}", data::word(question.aggregate), answer.mean);
        for (std::size_t q = 0; q < question.levels.size(); ++q) {
          text += fmt::format(", {:g} {:.6g}", question.levels[q], answer.quantiles[q]);
        }
        text += '\n';
      }
      if (question.above) {
        text += crossing("above", *question.above, answer.above_anywhere, answer.above);
      }
      if (question.below) {
        text += crossing("below", *question.below, answer.below_anywhere, answer.below);
      }
    }
  }
  return text;
}

}  // namespace toto::cli
