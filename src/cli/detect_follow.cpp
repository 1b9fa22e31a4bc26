// SPDX-License-Identifier: Apache-2.0
// Rows of standard input, scored as they come.
//
// One reader reads everything: each time whole lines have come, it reads the head of the table and
// the last lines of it anew, and the detector takes the steps that it has not seen. So a row is
// understood as it would be in a file.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sstream>

#include "cli/detect_request.h"
#include "cli/process.h"
#include "core/descriptor.h"
#include "core/input_file.h"
#include "core/json.h"

namespace toto::cli {
namespace {

constexpr std::size_t kMaxLine = std::size_t{1} << 24;
constexpr std::size_t kMaxHistory = std::size_t{1} << 30;  // bytes of a file of the past
constexpr std::size_t kLinesKept = 2;                      // times as many as the forecasts look at

/// Lines with their ends; one is added to the last if it has none.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    if (lines.back().back() != '\n') lines.back() += '\n';
    text.remove_prefix(end);
  }
  return lines;
}

/// The lines of a table that grows, without those that nothing looks at any more.
class Tail {
 public:
  explicit Tail(const DetectRequest& request) : request_(request) {}

  /// A row, or the head again (of a second file), which adds nothing.
  void add(std::string line) {
    if (std::ranges::find(head_, line) == head_.end()) lines_.push_back(std::move(line));
  }
  /// Whether line `number` of what was read, from 1, is a row and not of the head.
  [[nodiscard]] bool has(std::size_t number) const {
    return number > head_.size() && number <= head_.size() + lines_.size();
  }
  std::string remove(std::size_t number) {
    const auto at = lines_.begin() + static_cast<std::ptrdiff_t>(number - head_.size() - 1);
    std::string line = std::move(*at);
    lines_.erase(at);
    return line;
  }

  data::Dataset read() {
    std::string text;
    for (const std::string& line : head_) text += line;
    for (const std::string& line : lines_) text += line;
    std::istringstream stream(text);
    data::Dataset data = data::read_csv(stream, "<stdin>", request_.csv);
    if (!known_) learn(data);
    return data;
  }

  /// Keeps what forecasts of every series look at.
  void trim(const data::Dataset& data) {
    const std::size_t steps = request_.options.context + request_.options.min_history + 1;
    const std::size_t rows =
        steps * (data.layout == data::Layout::wide ? 1 : std::max<std::size_t>(1, groups(data)));
    if (lines_.size() < 2 * kLinesKept * rows) return;
    lines_.erase(lines_.begin(), lines_.end() - static_cast<std::ptrdiff_t>(kLinesKept * rows));
  }

 private:
  /// The lines before the first row stay in front of the later ones.
  void learn(const data::Dataset& data) {
    const bool timed = std::ranges::any_of(
        data.reading.columns,
        [](const data::Reading::Column& c) { return c.role == "time" || c.role == "date"; });
    if (!timed) {
      throw Error(ExitStatus::bad_data, "no_timestamps",
                  "--follow needs a column of timestamps: it tells new rows from old ones",
                  "<stdin>");
    }
    known_ = true;
    if (!data.reading.has_header || data.reading.format != "CSV") return;
    const std::size_t count = std::min(data.reading.header_line, lines_.size());
    for (std::size_t i = 0; i < count; ++i) {
      head_.push_back(std::move(lines_.front()));
      lines_.pop_front();
    }
  }

  static std::size_t groups(const data::Dataset& data) {
    return data.series.size() + data.errors.size();
  }

  const DetectRequest& request_;
  std::vector<std::string> head_;
  std::deque<std::string> lines_;
  bool known_ = false;
};

/// Of "<stdin>:12:3"; 0 where the error names no line.
std::size_t line_of(const Error& error) {
  constexpr std::string_view kName = "<stdin>:";
  if (!error.where().starts_with(kName)) return 0;
  return std::strtoull(error.where().c_str() + kName.size(), nullptr, 10);
}

class Follower {
 public:
  Follower(const DetectRequest& request, detect::Detector& detector, bool synthetic)
      : detector_(detector), write_(request.write), tail_(request) {
    write_.synthetic = synthetic;
  }

  /// Rows of the past: they are scored, since scores are calibrated with them, and not written.
  void seed(const std::string& text) {
    write_scores_ = false;
    take(lines_of(text), true);
    write_scores_ = true;
  }

  /// Whole lines that came together. One that cannot be read is told and left out.
  void take(const std::vector<std::string>& lines, bool at_end) {
    for (const std::string& line : lines) tail_.add(line);
    if (lines.empty() && (read_once_ || !at_end)) return;
    while (true) {
      try {
        score(tail_.read());
        return;
      } catch (const Error& error) {
        if (error.status() != ExitStatus::bad_data || error.code() == "no_timestamps") throw;
        const std::size_t line = line_of(error);
        const bool begins = error.code() == "no_rows" || error.code() == "no_header";
        if (!read_once_ && !at_end && begins) return;  // a table that begins
        if (line == 0 || !tail_.has(line)) throw;
        failed_ = true;
        const std::string row = tail_.remove(line);
        report(Error(error.status(), error.code(), error.message(),
                     "<stdin>: the row " + quote(row.substr(0, row.find_last_not_of("\r\n") + 1)),
                     "it is left out"));
      }
    }
  }

  [[nodiscard]] ExitStatus status() const {
    if (failed_) return ExitStatus::bad_data;
    return found_ ? ExitStatus::attention : ExitStatus::ok;
  }

 private:
  void score(const data::Dataset& data) {
    read_once_ = true;
    for (const detect::Scored& one : detector_.update(data.series)) {
      if (!write_scores_) continue;
      detect::write_lines(print, one, data.series[one.index].style, write_);
      found_ = found_ || one.anomalies > 0;
    }
    tail_.trim(data);
  }

  detect::Detector& detector_;
  detect::WriteOptions write_;
  Tail tail_;
  bool write_scores_ = true;
  bool read_once_ = false;
  bool failed_ = false;
  bool found_ = false;
};

}  // namespace

ExitStatus follow(const DetectRequest& request, detect::Detector& detector, bool synthetic) {
  Follower follower(request, detector, synthetic);
  for (const std::string& input : request.inputs) {
    if (input == "-") continue;
    follower.seed(read_text_file(input, kMaxHistory, ExitStatus::bad_data));
  }
  std::string pending;
  std::array<std::byte, std::size_t{1} << 16> piece{};
  while (true) {
    const ssize_t count = read_some(STDIN_FILENO, piece);
    if (count < 0) {
      throw Error(ExitStatus::io, "read_failed",
                  fmt::format("cannot read: {}", std::strerror(errno)), "<stdin>");
    }
    pending.append(reinterpret_cast<const char*>(piece.data()), static_cast<std::size_t>(count));
    if (count == 0 && !pending.empty() && pending.back() != '\n') pending += '\n';
    const std::size_t whole = pending.rfind('\n') + 1;  // 0 where there is none
    const std::vector<std::string> lines = lines_of(std::string_view(pending).substr(0, whole));
    pending.erase(0, whole);
    if (pending.size() > kMaxLine) {
      throw Error(ExitStatus::bad_data, "field_too_large", "a line of more than 16 MiB", "<stdin>");
    }
    follower.take(lines, count == 0);
    if (count == 0) return follower.status();
  }
}

}  // namespace toto::cli
