// SPDX-License-Identifier: Apache-2.0
// The season of a series, found in its values alone (docs/statistics.md).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "toto/forecast.hpp"

namespace toto {

/// A shape that comes again every `period` steps.
struct Season {
  std::size_t period = 0;       ///< 0: none is found
  double strength = 0;          ///< how much of what was held back it foretells; at most 1
  std::vector<double> profile;  ///< [period], about a running level; the first is that of step 0

  [[nodiscard]] bool any() const { return period != 0; }
  /// How much its forecast counts beside others.
  [[nodiscard]] double weight() const;
};

/// All values are finite.
Season find_season(std::span<const double> y);

/// Those of the targets of one series.
struct Seasons {
  bool log = false;                ///< all are those of log y, which they explain better
  std::vector<Season> of;          ///< [targets]; step 0 is that of `first`
  std::vector<std::size_t> first;  ///< [targets], the first observed step

  [[nodiscard]] bool any() const;
  /// What the profile of a variate says of step `t` of the series, or after it.
  [[nodiscard]] double at(std::size_t variate, std::size_t t) const;
};

/// `positive`: every observed value of the targets is above 0.
void find_seasons(const Series& series, std::size_t targets, bool positive, Seasons& found);

}  // namespace toto
