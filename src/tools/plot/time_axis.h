// SPDX-License-Identifier: Apache-2.0
// The horizontal axis: where each step stands and what is written below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/plot/calendar.h"
#include "toto/tools/plot.hpp"

namespace toto::plot {

struct TimeTick {
  double x = 0.0;  ///< of the mark
  std::string label;
  double label_x = 0.0;  ///< middle of the label: x, moved where the label would be cut off
  std::string context;   ///< second line where it changes: the year below months, the date below
                         ///< hours
  double context_x = 0.0;
};

/// Room for the labels of an axis.
struct LabelRoom {
  double left = 0.0;
  double right = 0.0;
  double font_size = 11.0;
};

/// Maps steps to pixels. Time runs evenly, except where the data leave out nights or weekends
/// throughout, as markets do: there every step has the same width.
class TimeAxis {
 public:
  /// `times` increases and holds milliseconds, or step numbers if `style` is index; `style` is not
  /// automatic. One step stands in the middle, more reach from `left` to `right`.
  TimeAxis(std::vector<std::int64_t> times, TimeStyle style, double left, double right);

  [[nodiscard]] std::size_t size() const { return times_.size(); }
  [[nodiscard]] double x(std::size_t step) const { return x_[step]; }
  [[nodiscard]] std::int64_t time(std::size_t step) const { return times_[step]; }
  [[nodiscard]] TimeStyle style() const { return style_; }
  [[nodiscard]] bool even_steps() const { return even_steps_; }

  /// Marks at round times, as many as fit without labels touching.
  [[nodiscard]] std::vector<TimeTick> ticks(const LabelRoom& room) const;

 private:
  [[nodiscard]] double between(double time) const;
  [[nodiscard]] std::optional<TimeTick> tick_at(const Period& period, std::int64_t start) const;
  [[nodiscard]] TimeTick labelled(const Period& period, double x, std::int64_t time) const;
  [[nodiscard]] std::vector<TimeTick> ticks_every(const Period& period) const;
  [[nodiscard]] std::vector<TimeTick> step_ticks(const LabelRoom& room) const;
  [[nodiscard]] std::vector<TimeTick> end_ticks(const LabelRoom& room) const;

  std::vector<std::int64_t> times_;
  TimeStyle style_;
  double step_ms_ = 0.0;  // median distance of neighbours
  bool even_steps_ = false;
  std::vector<double> x_;
};

}  // namespace toto::plot
