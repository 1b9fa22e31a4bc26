// SPDX-License-Identifier: Apache-2.0
// A progress bar for work that takes a while; nothing is seen of it unless stderr is a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace toto::cli {

enum class ProgressUnit { items, bytes };

/// What the bar looks like after `seconds`, in no more than `width` columns:
/// `writing [=====>     ] 301 of 605 MB, 49 %, 212 MB/s, 0:02 left`.
[[nodiscard]] std::string progress_line(std::string_view label, std::uint64_t done,
                                        std::uint64_t total, double seconds, std::size_t width,
                                        ProgressUnit unit);

/// Redraws its line at most ten times a second, first after half a second, so that quick work
/// leaves no trace; removes it when it ends.
class ProgressBar {
 public:
  /// What the bar needs of a terminal and a clock.
  struct Screen {
    std::function<void(std::string_view)> write;
    std::function<double()> seconds;  ///< since any fixed moment
    std::function<std::size_t()> width;
  };

  /// On stderr; silent if `quiet` or if stderr is not a terminal.
  ProgressBar(std::string_view label, bool quiet, ProgressUnit unit = ProgressUnit::items);
  /// On a screen of the caller's.
  ProgressBar(std::string_view label, Screen screen, ProgressUnit unit = ProgressUnit::items);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(std::uint64_t done, std::uint64_t total);
  /// Removes the line. Later updates do nothing.
  void finish();

 private:
  std::string label_;
  Screen screen_;  // without functions: silent
  ProgressUnit unit_;
  double begun_ = 0.0;
  double next_draw_ = 0.0;
  bool drawn_ = false;
};

}  // namespace toto::cli
