// SPDX-License-Identifier: Apache-2.0
// Views: several jobs in the place of one, and the average of their results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/forecast_writer.h"
#include "engine/season.h"
#include "toto/forecast.hpp"

namespace toto {

/// Throws Error (2) invalid_views: no such view, or an option that does not go with views.
void check_views(const ForecastOptions& options);

/// As views_of without them; `seasons` are those of the series if they are asked for.
Views views_of(const Series& series, const ForecastOptions& options, Seasons& seasons);

/// The jobs of a call with those of all their views, and the way back. Memory is used again.
class ViewedJobs {
 public:
  /// Jobs that take the place of `jobs`, which must outlive them: those without views as they are,
  /// the others as one job for each view. Results of these belong to this object.
  std::span<const ForecastJob> start(const Backend& backend, std::span<const ForecastJob> jobs);
  /// Averages what the views say into the jobs that were given, and applies their bounds.
  void finish(const Backend& backend);

 private:
  enum class Kind : std::uint8_t { plain, flip, log, season, shorter };

  /// One view of one series.
  struct View {
    Kind kind = Kind::plain;
    std::size_t part = 1;  // of `shorter`
    const ForecastJob* given = nullptr;
    const Seasons* seasons = nullptr;
    Series series;
    ForecastOptions options;
    Forecast out;
    std::vector<double> mirrored;         // of flip: the level asked for in the place of each
    std::vector<double> lowest, highest;  // of what guards know not: [targets], observed
    std::vector<float> values;
    std::vector<std::uint8_t> mask;
    std::vector<std::int32_t> groups;
    std::vector<double> offsets;

    [[nodiscard]] bool of_log() const {
      return kind == Kind::log || (kind == Kind::season && seasons->log);
    }
    /// In the average of a variate that is forecast.
    [[nodiscard]] double weight(std::size_t variate) const;
  };
  /// One job that was given, and where its views are.
  struct Viewed {
    const ForecastJob* given = nullptr;
    std::size_t first = 0, count = 0;  // of views_
    Views taken;
    Seasons seasons;
  };

  void add(Viewed& viewed, Kind kind, std::size_t part = 1);
  static void make(View& view);
  static void flip(View& view);
  static void note_ranges(View& view);
  static void take_log(View& view);
  static void take_season(View& view);
  static void shorten(View& view);
  static void bring_back(View& view);
  static void take_moments(View& view);
  void average(const Viewed& viewed) const;

  std::vector<View> views_;
  std::size_t used_ = 0;
  std::vector<Viewed> viewed_;
  std::vector<ForecastJob> jobs_;
};

}  // namespace toto
