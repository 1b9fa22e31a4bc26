// SPDX-License-Identifier: Apache-2.0
// Drawing the progress bar and estimating the time left.
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "cli/process.h"
#include "cli/terminal.h"
#include "core/printable.h"

namespace toto::cli {
namespace {

constexpr double kFirstDraw = 0.5;      // seconds
constexpr double kBetweenDraws = 0.1;   // seconds
constexpr double kLongest = 360'000.0;  // seconds left: beyond that it is no estimate
constexpr std::size_t kMaxColumns = 100;
constexpr std::size_t kWidestBar = 40;
constexpr std::size_t kNarrowestBar = 8;

struct Scale {
  double divisor;
  std::string name;
};

// Bytes are shown in the unit of the total, so that the numbers do not jump.
Scale scale_for(double largest, ProgressUnit unit) {
  if (unit == ProgressUnit::items) return {1.0, ""};
  constexpr std::array<const char*, 5> kNames = {" B", " kB", " MB", " GB", " TB"};
  std::size_t step = 0;
  while (step + 1 < kNames.size() && largest >= 10000.0) {
    largest /= 1000.0;
    ++step;
  }
  return {std::pow(1000.0, static_cast<double>(step)), kNames[step]};
}

std::string rate_text(double per_second, ProgressUnit unit) {
  const Scale scale = scale_for(per_second, unit);
  const double value = per_second / scale.divisor;
  return grouped(value, value < 10 && scale.divisor <= 1 ? 1 : 0) + scale.name + "/s";
}

std::string duration_text(double seconds) {
  const auto s = static_cast<long>(std::ceil(seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string bar_text(double share, std::size_t width) {
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  std::string bar(filled, '=');
  if (filled < width) bar += '>';
  bar.resize(width, ' ');
  return '[' + bar + ']';
}

}  // namespace

std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total,
                          double seconds, std::size_t width, ProgressUnit unit) {
  done = std::min(done, total);
  const auto did = static_cast<double>(done);
  const auto all = static_cast<double>(total);
  const double share = total == 0 ? 0.0 : did / all;
  const Scale scale = scale_for(all, unit);
  std::string numbers =
      fmt::format("{} of {}{}, {:.0f} %", grouped(did / scale.divisor, 0),
                  grouped(all / scale.divisor, 0), scale.name, std::floor(share * 100));
  if (done > 0 && seconds > 0) {
    numbers += ", " + rate_text(did / seconds, unit);
    const double left = seconds * (all - did) / did;
    if (left < kLongest) numbers += ", " + duration_text(left) + " left";
  }
  std::string line(label);
  const std::size_t fixed = label.size() + numbers.size() + 4;  // two brackets, two spaces
  if (fixed + kNarrowestBar <= width) {
    line += ' ' + bar_text(share, std::min(kWidestBar, width - fixed));
  }
  line += ' ' + numbers;
  return line.substr(0, width);
}

ProgressBar::ProgressBar(std::string_view label, bool quiet, ProgressUnit unit)
    : ProgressBar(label, Screen{}, unit) {
  if (quiet || !is_terminal(STDERR_FILENO)) return;
  screen_.write = write_to_stderr;
  screen_.seconds = [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
  };
  screen_.width = [] { return terminal_width(STDERR_FILENO); };
  begun_ = screen_.seconds();
  next_draw_ = begun_ + kFirstDraw;
}

ProgressBar::ProgressBar(std::string_view label, Screen screen, ProgressUnit unit)
    : label_(label), screen_(std::move(screen)), unit_(unit) {
  if (!screen_.write) return;
  begun_ = screen_.seconds();
  next_draw_ = begun_ + kFirstDraw;
}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  if (!screen_.write) return;
  const double now = screen_.seconds();
  if (now < next_draw_) return;
  next_draw_ = now + kBetweenDraws;
  drawn_ = true;
  // One column stays free: a character in the last one makes some terminals wrap.
  const std::size_t width = std::min(kMaxColumns, screen_.width() - 1);
  screen_.write("\r\x1b[K" + progress_line(label_, done, total, now - begun_, width, unit_));
}

void ProgressBar::finish() {
  if (drawn_) screen_.write("\r\x1b[K");
  drawn_ = false;
  screen_.write = nullptr;
}

}  // namespace toto::cli
