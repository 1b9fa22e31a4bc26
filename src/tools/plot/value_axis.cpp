// SPDX-License-Identifier: Apache-2.0
// Robust ranges and number formatting.
#include "tools/plot/value_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/printable.h"

namespace toto::plot {
namespace {

constexpr double kInnerLevel = 0.8;       // bands up to this level shape the range
constexpr double kInnerAllowance = 3.0;   // ... by so many times the span of the lines
constexpr double kOuterAllowance = 0.6;   // wider bands: by so much of the span so far
constexpr double kPadding = 0.05;         // of the span, above and below
constexpr double kZeroWithin = 0.25;      // zero joins the axis if that costs no more of the height
constexpr double kRelativeFloor = 1e-13;  // spans below are rounding noise: a constant

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!plottable(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void add(const std::vector<double>& values, std::size_t first = 0) {
    for (std::size_t i = first; i < values.size(); ++i) add(values[i]);
  }
  [[nodiscard]] bool empty() const { return low > high; }
  [[nodiscard]] double span() const { return empty() ? 0.0 : high - low; }
  [[nodiscard]] bool constant() const {
    const double size = std::max(std::abs(low), std::abs(high));
    return !(span() > std::max(size * kRelativeFloor, 1e-290));
  }
};

bool inner(const Band& band) { return band.level <= kInnerLevel + 1e-6; }

// `base` widened to hold `wanted`, by no more than `allowance` on each side if that is a number.
Extent widened(const Extent& base, const Extent& wanted, double allowance) {
  if (wanted.empty()) return base;
  if (base.empty()) return wanted;
  Extent range = base;
  range.low = std::min(base.low, std::max(wanted.low, base.low - allowance));
  range.high = std::max(base.high, std::min(wanted.high, base.high + allowance));
  return range;
}

double allowance_of(const Extent& base, double factor) {
  if (base.empty() || base.constant()) return std::numeric_limits<double>::infinity();
  return factor * base.span();
}

ValueRange padded(const Extent& extent) {
  if (extent.empty()) return {};
  if (extent.constant()) {
    const double middle = extent.low / 2 + extent.high / 2;
    const double half = std::abs(middle) < 1e-290 ? 1.0 : std::abs(middle) * 0.1;
    return {middle - half, middle + half};
  }
  const double padding = kPadding * extent.span();
  ValueRange range{extent.low - padding, extent.high + padding};
  if (extent.low >= 0 && extent.low < kZeroWithin * extent.high) range.low = 0.0;
  if (extent.high <= 0 && extent.high > kZeroWithin * extent.low) range.high = 0.0;
  return range;
}

// The smallest of 1, 2, 5 times a power of ten that is at least `rough`.
double nice_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

int decade(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

struct Notation {
  double divisor = 1.0;
  int exponent = 0;  // divisor = 10^exponent
  std::string suffix;
  std::string unit;
};

Notation notation_of(double largest, double step) {
  constexpr std::array<const char*, 5> kSuffix = {"", "k", "M", "G", "T"};
  const int top = decade(largest);
  if (top < -3 || top >= 15) {
    const int exponent = static_cast<int>(std::floor(top / 3.0)) * 3;
    return {std::pow(10.0, exponent), exponent, "", fmt::format("\u00d7 1e{}", exponent)};
  }
  const int thousands = top >= 5 ? top / 3 : 0;
  const bool legible = thousands * 3 - decade(step) <= 3;  // at most three decimals
  if (thousands == 0 || !legible) return {};
  return {std::pow(10.0, thousands * 3), thousands * 3,
          kSuffix[static_cast<std::size_t>(thousands)], ""};
}

}  // namespace

bool plottable(double value) { return std::abs(value) <= 1e300; }

ValueRange value_range(const Panel& panel, std::size_t first_shown) {
  Extent lines;
  lines.add(panel.history, first_shown);
  for (const auto* values : {&panel.median, &panel.mean, &panel.actual}) lines.add(*values);
  Extent narrow;
  Extent wide;
  bool unbounded = false;
  for (const Band& band : panel.bands) {
    for (const auto* limit : {&band.lower, &band.upper}) {
      (inner(band) ? narrow : wide).add(*limit);
      unbounded |= std::any_of(limit->begin(), limit->end(),
                               [](double v) { return !std::isnan(v) && !plottable(v); });
    }
  }
  Extent range = widened(lines, narrow, allowance_of(lines, kInnerAllowance));
  range = widened(range, wide, allowance_of(range, kOuterAllowance));
  ValueRange shown = padded(range);
  shown.clipped = unbounded;
  for (const Extent& bands : {narrow, wide}) {
    if (!bands.empty()) shown.clipped |= bands.low < shown.low || bands.high > shown.high;
  }
  return shown;
}

ValueTicks value_ticks(const ValueRange& range, int wanted) {
  ValueTicks ticks;
  double step = nice_step((range.high - range.low) / wanted);
  const auto first_multiple = [&] { return std::ceil(range.low / step - 1e-9); };
  const auto last_multiple = [&] { return std::floor(range.high / step + 1e-9); };
  while (last_multiple() - first_multiple() < 2) step = nice_step(step * 0.4);  // one size down
  const double first = first_multiple();
  const double last = last_multiple();
  const auto count = static_cast<int>(last - first) + 1;
  for (int i = 0; i < count; ++i) ticks.values.push_back((first + i) * step);
  const double largest = std::max(std::abs(first), std::abs(last)) * step;
  const Notation notation = notation_of(largest, step);
  const int decimals = std::max(0, notation.exponent - decade(step));
  for (const double value : ticks.values) {
    std::string label = value == 0.0 ? "0" : grouped(value / notation.divisor, decimals);
    if (label.front() == '-') label.replace(0, 1, "\u2212");
    if (value != 0.0) label += notation.suffix;
    ticks.labels.push_back(std::move(label));
  }
  ticks.unit = notation.unit;
  return ticks;
}

}  // namespace toto::plot
