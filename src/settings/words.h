// SPDX-License-Identifier: Apache-2.0
// The words that settings are written in, and strict readers for their values. A reader gives
// nothing for a value that is not valid.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "toto/forecast.hpp"
#include "toto/settings.hpp"

namespace toto {

template <typename T>
struct Word {
  std::string_view text;
  T value;
};

inline constexpr std::array<Word<Mode>, 4> kModes = {{
    {"eager", Mode::eager},
    {"default", Mode::planned},
    {"reduce-overhead", Mode::reduce_overhead},
    {"max-autotune", Mode::max_autotune},
}};
inline constexpr std::array<Word<ContextCache>, 2> kKvCaches = {
    {{"shared", ContextCache::shared}, {"private", ContextCache::per_trajectory}}};
inline constexpr std::array<Word<Device>, 3> kDevices = {
    {{"cpu", Device::cpu}, {"cuda", Device::cuda}, {"auto", Device::automatic}}};
inline constexpr std::array<Word<std::string_view>, 2> kBackends = {
    {{"cpu", "cpu"}, {"reference", "reference"}}};
// The long words first: they are the ones shown.
inline constexpr std::array<Word<Precision>, 8> kPrecisions = {{
    {"float32", Precision::float32},
    {"tf32", Precision::tf32},
    {"bfloat16", Precision::bfloat16},
    {"float64", Precision::float64},
    {"int8", Precision::int8},
    {"f32", Precision::float32},
    {"bf16", Precision::bfloat16},
    {"f64", Precision::float64},
}};
inline constexpr std::array<Word<CachePolicy>, 3> kCachePolicies = {
    {{"prefer", CachePolicy::prefer}, {"only", CachePolicy::only}, {"never", CachePolicy::never}}};
inline constexpr std::array<Word<Preset>, 3> kPresets = {{
    {"production", Preset::production},
    {"development", Preset::development},
    {"validation", Preset::validation},
}};
inline constexpr std::array<Word<Source>, 4> kSources = {{
    {"flag", Source::flag},
    {"environment", Source::environment},
    {"preset", Source::preset},
    {"built-in", Source::built_in},
}};
inline constexpr std::array<Word<Paths>, 3> kPaths = {{{"auto", Paths::automatic},
                                                       {"independent", Paths::independent},
                                                       {"coherent", Paths::coherent}}};
inline constexpr std::array<Word<Tails>, 4> kTails = {{{"auto", Tails::automatic},
                                                       {"clamp", Tails::clamp},
                                                       {"exponential", Tails::exponential},
                                                       {"normal", Tails::normal}}};
inline constexpr std::array<Word<bool>, 8> kSwitches = {{{"0", false},
                                                         {"1", true},
                                                         {"off", false},
                                                         {"on", true},
                                                         {"no", false},
                                                         {"yes", true},
                                                         {"false", false},
                                                         {"true", true}}};
inline constexpr std::array<Word<bool LogCategories::*>, 6> kLogCategories = {{
    {"plans", &LogCategories::plans},
    {"graphs", &LogCategories::graphs},
    {"cache", &LogCategories::cache},
    {"memory", &LogCategories::memory},
    {"device", &LogCategories::device},
    {"settings", &LogCategories::settings},
}};

template <typename Words>
auto find_word(const Words& words, std::string_view text)
    -> std::optional<decltype(words[0].value)> {
  for (const auto& word : words) {
    if (word.text == text) return word.value;
  }
  return std::nullopt;
}

/// The first word of `value`, which has one.
template <typename Words>
std::string_view word_of(const Words& words, decltype(words[0].value) value) {
  std::size_t i = 0;
  while (words[i].value != value) ++i;
  return words[i].text;
}

/// "eager, default, ...".
template <typename Words>
std::string list_words(const Words& words) {
  std::string list;
  for (const auto& word : words) list.append(list.empty() ? "" : ", ").append(word.text);
  return list;
}

/// One of kSwitches, in any case: True, ON.
std::optional<bool> read_switch(std::string_view text);

/// N of "cuda:N", a whole number that fits an int.
std::optional<int> index_of_gpu(std::string_view text);

/// A decimal whole number in [least, most], nothing around it.
std::optional<std::uint64_t> read_whole(std::string_view text, std::uint64_t least,
                                        std::uint64_t most);

/// A number of bytes: a whole number and possibly KB, MB, GB (powers of 1000) or KiB, MiB, GiB
/// (powers of 1024). 0 is "none".
std::optional<std::uint64_t> read_bytes(std::string_view text);

/// Categories and "all", with commas between them, or "none".
std::optional<LogCategories> read_log(std::string_view text);

/// The same, written: "plans,cache", "all", "none".
std::string write_log(const LogCategories& log);

}  // namespace toto
