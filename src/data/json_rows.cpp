// SPDX-License-Identifier: Apache-2.0
#include "data/json_rows.h"

#include <algorithm>
#include <array>

#include "core/json.h"
#include "data/number.h"
#include "data/timestamp.h"

namespace toto::data {
namespace {

// Scalars that are kept of one array or object; what has more is no row.
constexpr std::size_t kMaxScalars = 4096;

constexpr auto kPlain = std::to_array<std::string_view>(
    {"bars", "data", "result", "results", "values", "items", "rows", "records", "quotes", "prices",
     "candles", "observations", "historical", "series", "points", "history", "hits", "list", ""});

/// up{job="node",instance="a:9100"}, as Prometheus writes it, or metric{scope}.
std::string label_of(const JsonMembers& labels, const JsonMembers& scalars) {
  std::string name, inside;
  for (const auto& [key, text] : labels) {
    if (key == "__name__") {
      name = text;
    } else {
      inside += (inside.empty() ? "" : ",") + key + "=" + quote(text);
    }
  }
  if (labels.empty()) {
    for (const auto& [key, text] : scalars) {
      if (key == "metric" || key == "target" || key == "name" || key == "symbol" ||
          key == "Label") {
        name = text;
      }
      if (key == "scope" || key == "tags") inside = text;
    }
  }
  if (inside.empty()) return name.empty() ? "series" : name;
  return name + "{" + inside + "}";
}

}  // namespace

bool JsonRows::scalar(std::string_view text) {
  if (frames_.empty()) return true;
  Frame& top = frames_.back();
  if (top.list != List::none) {
    Frame& around = frames_[frames_.size() - 2];
    std::string& list = top.list == List::times ? around.times : around.values;
    list.append(text.find('\n') == text.npos ? text : std::string_view()).push_back('\n');
    return true;
  }
  if (top.scalars.size() >= kMaxScalars) {
    top.flat = false;
    return true;
  }
  top.scalars.emplace_back(top.key, text);
  return true;
}

bool JsonRows::open(bool array) {
  if (frames_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
    error_ = "arrays and objects are nested too deep";
    return false;
  }
  Frame frame;
  frame.array = array;
  if (!frames_.empty()) {
    frames_.back().flat = false;
    frame.name = frames_.back().array ? frames_.back().name : frames_.back().key;
    if (array && !frames_.back().array) {
      if (equals_ignoring_case(frame.name, "timestamps")) frame.list = List::times;
      if (equals_ignoring_case(frame.name, "values")) frame.list = List::values;
    }
  }
  frames_.push_back(std::move(frame));
  return true;
}

bool JsonRows::key(std::string& name) {
  frames_.back().key = name;
  return true;
}

bool JsonRows::tell(bool by_name, std::size_t series, const JsonMembers& fields) {
  if (take_({by_name, series, fields})) return true;
  stopped_ = true;
  return false;
}

bool JsonRows::end_array() {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  const bool row =
      frame.flat && frame.scalars.size() >= 2 && !frames_.empty() && frames_.back().array;
  if (!row) return true;
  // The object around the rows tells what they are of.
  const auto object =
      std::find_if(frames_.rbegin(), frames_.rend(), [](const Frame& one) { return !one.array; });
  if (object == frames_.rend()) return tell(false, JsonRow::kNone, frame.scalars);
  if (object->series == JsonRow::kNone) {
    object->series = labels_.size();
    labels_.emplace_back("series");
  }
  return tell(false, object->series, frame.scalars);
}

bool JsonRows::end_object() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  Frame* const around = frames_.empty() ? nullptr : &frames_.back();
  if (frame.series != JsonRow::kNone) {
    labels_[frame.series] = label_of(frame.labels, frame.scalars);
    return true;
  }
  if (!frame.times.empty() && !frame.values.empty()) return tell_lists(frame);
  if (!frame.flat || frame.scalars.empty()) return true;
  const bool named = frame.name == "metric" || frame.name == "labels" || frame.name == "tags";
  if (around != nullptr && !around->array && named) {
    around->labels = std::move(frame.scalars);
    return true;
  }
  return tell_object(frame, around, frames_.size() > 1 ? &frames_[frames_.size() - 2] : nullptr);
}

/// Times and values in two lists of one length, as CloudWatch and VictoriaMetrics have them.
bool JsonRows::tell_lists(Frame& frame) {
  if (std::ranges::count(frame.times, '\n') != std::ranges::count(frame.values, '\n')) return true;
  const std::size_t series = labels_.size();
  labels_.push_back(label_of(frame.labels, frame.scalars));
  JsonMembers fields(2);
  std::string_view times = frame.times, values = frame.values;
  const auto take = [](std::string_view& lines) {
    const std::size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 1);
    return line;
  };
  while (!times.empty()) {
    fields[0].second = take(times);
    fields[1].second = take(values);
    if (!tell(false, series, fields)) return false;
  }
  return true;
}

bool JsonRows::tell_object(Frame& frame, const Frame* around, const Frame* further) {
  if (around != nullptr && !around->array) {
    if (!looks_like_time(frame.name)) return true;
    frame.scalars.insert(frame.scalars.begin(), {"time", frame.name});
    return tell(true, JsonRow::kNone, frame.scalars);
  }
  // {"bars": {"AAPL": [{...}]}}: the name of the array tells the series.
  const bool named = around != nullptr && further != nullptr && !further->array &&
                     std::ranges::find(kPlain, around->name) == kPlain.end();
  if (named) frame.scalars.insert(frame.scalars.begin(), {"symbol", around->name});
  return tell(true, JsonRow::kNone, frame.scalars);
}

bool JsonRows::parse_error(std::size_t at, const std::string&,
                           const nlohmann::json::exception& error) {
  error_ = error.what();
  // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
  if (const std::size_t colon = error_.find(": "); colon != std::string::npos) {
    error_.erase(0, colon + 2);
  }
  error_at_ = at;
  return false;
}

}  // namespace toto::data
