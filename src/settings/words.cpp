// SPDX-License-Identifier: Apache-2.0
#include "settings/words.h"

#include <charconv>
#include <limits>

namespace toto {
namespace {

struct Unit {
  std::string_view text;
  std::uint64_t bytes;
};
constexpr Unit kUnits[] = {
    {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20},  {"GiB", 1ULL << 30},
    {"KB", 1'000ULL},    {"MB", 1'000'000ULL}, {"GB", 1'000'000'000ULL},
};

constexpr LogCategories kAll = {true, true, true, true, true, true};

}  // namespace

std::optional<bool> read_switch(std::string_view text) {
  std::string lower(text);
  for (char& ch : lower) {
    if (ch >= 'A' && ch <= 'Z') ch = static_cast<char>(ch - 'A' + 'a');
  }
  return find_word(kSwitches, lower);
}

std::optional<int> index_of_gpu(std::string_view text) {
  constexpr std::string_view kPrefix = "cuda:";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const auto index =
      read_whole(text.substr(kPrefix.size()), 0, std::numeric_limits<std::int32_t>::max());
  return index ? std::optional(static_cast<int>(*index)) : std::nullopt;
}

std::optional<std::uint64_t> read_whole(std::string_view text, std::uint64_t least,
                                        std::uint64_t most) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || value < least || value > most) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_bytes(std::string_view text) {
  std::uint64_t unit = 1;
  for (const Unit& candidate : kUnits) {
    if (!text.ends_with(candidate.text)) continue;
    unit = candidate.bytes;
    text.remove_suffix(candidate.text.size());
    break;
  }
  const auto count = read_whole(text, 0, std::numeric_limits<std::uint64_t>::max() / unit);
  if (!count) return std::nullopt;
  return *count * unit;
}

std::optional<LogCategories> read_log(std::string_view text) {
  LogCategories log;
  if (text == "none") return log;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, comma - begin);
    const auto category = find_word(kLogCategories, item);
    if (!category && item != "all") return std::nullopt;
    if (category) log.** category = true;
    if (!category) log = kAll;
    begin = comma + 1;
  }
  return log;
}

bool LogCategories::has(Topic topic) const {
  const auto category = find_word(kLogCategories, word(topic));
  return category && this->**category;
}

std::string write_log(const LogCategories& log) {
  if (log == kAll) return "all";
  std::string list;
  for (const auto& [text, category] : kLogCategories) {
    if (log.*category) list.append(list.empty() ? "" : ",").append(text);
  }
  return list.empty() ? "none" : list;
}

std::string_view word(Mode mode) { return word_of(kModes, mode); }
std::string_view word(ContextCache cache) { return word_of(kKvCaches, cache); }
std::string_view word(Paths paths) { return word_of(kPaths, paths); }
std::string_view word(Tails tails) { return word_of(kTails, tails); }
std::string_view word(Device device) { return word_of(kDevices, device); }
std::string_view word(Precision precision) { return word_of(kPrecisions, precision); }
std::string_view word(CachePolicy policy) { return word_of(kCachePolicies, policy); }
std::string_view word(Preset preset) { return word_of(kPresets, preset); }
std::string_view word(Source source) { return word_of(kSources, source); }

}  // namespace toto
