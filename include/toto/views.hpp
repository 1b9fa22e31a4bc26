// SPDX-License-Identifier: Apache-2.0
// Other looks at a series, forecast beside the series itself and averaged with it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace toto {

struct Series;
struct ForecastOptions;

/// Each view is one more pass of the model. Its quantiles, brought back to the units of the series,
/// are averaged with those of the series level by level, and so are means (docs/statistics.md).
/// There are no trajectories, no parameters and no mean mode with views.
struct Views {
  bool flip = false;                      ///< -y, its quantiles mirrored
  bool log = false;                       ///< log y; left out where an observed value is 0 or less
  std::vector<std::size_t> shorter = {};  ///< K, 2 to 1,024: the last 1/K of the context; left out
                                          ///< where a variate has fewer than 16 observations there
  bool season = false;  ///< y less the season found in its values, which is added to the forecast;
                        ///< left out where none is found

  [[nodiscard]] bool any() const { return flip || log || season || !shorter.empty(); }
  /// Passes of the model, that over the series itself among them.
  [[nodiscard]] std::size_t passes() const;
  /// Those that `taken` does not have.
  [[nodiscard]] Views without(const Views& taken) const;
  bool operator==(const Views&) const = default;
};

/// "flip,log,season,context/2", each once, in any order; "none" or empty: none. Throws Error (2)
/// invalid_views.
Views parse_views(std::string_view text);
/// What parse_views takes, in one order; empty: none.
std::string to_text(const Views& views);

/// The views of `asked` that can be taken of a series, options being what they are.
Views views_of(const Series& series, const ForecastOptions& options);

}  // namespace toto
#pragma GCC visibility pop
