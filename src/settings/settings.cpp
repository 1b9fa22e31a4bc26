// SPDX-License-Identifier: Apache-2.0
// Flag > environment > preset > built-in.
#include "toto/settings.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <utility>

#include "core/cpu_info.h"
#include "core/json.h"
#include "settings/presets.h"
#include "settings/words.h"

namespace toto {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::size_t kMaxPlans = 65'536;
constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

constexpr std::array<std::string_view, 10> kVariables = {"TOTO_COMPILE",
                                                         "TOTO_COMPILE_BACKEND",
                                                         "TOTO_COMPILE_MODE",
                                                         "TOTO_DISABLE_COMPILE",
                                                         "TOTO_LOG",
                                                         "TOTO_MAX_PLANS",
                                                         "TOTO_MODEL_ID",
                                                         "TOTO_NUM_THREADS",
                                                         "TOTO_PLAN_CACHE_DIR",
                                                         "TOTO_SEED"};

// A value as it was written, and where.
struct Written {
  std::string text;
  Origin origin;
};

// How a value is read, and what an error says.
template <typename Read>
struct Kind {
  std::string_view code;
  std::string valid;
  Read read;
};

template <typename Read>
Kind<Read> kind_of(std::string_view code, std::string valid, Read read) {
  return {code, std::move(valid), read};
}

template <typename Words>
auto one_of(std::string_view code, const Words& words) {
  return kind_of(code, "one of " + list_words(words),
                 [&words](std::string_view text) { return find_word(words, text); });
}

auto whole(std::string_view code, std::uint64_t least, std::uint64_t most) {
  return kind_of(code, fmt::format("a whole number from {} to {}", least, most),
                 [=](std::string_view text) { return read_whole(text, least, most); });
}

std::optional<std::string> any_text(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

template <typename Read>
auto read(const Written& written, const Kind<Read>& kind) {
  const auto value = kind.read(written.text);
  if (!value) {
    throw Error(written.origin.source == Source::flag ? ExitStatus::usage : ExitStatus::bad_config,
                kind.code, fmt::format("expected {}, found {}", kind.valid, quote(written.text)),
                written.origin.name);
  }
  return *value;
}

class Resolver {
 public:
  explicit Resolver(const EnvironmentLookup& environment) : environment_(environment) {}

  std::optional<std::string> variable(const char* name) const {
    if (environment_) {
      auto value = environment_(name);
      return value && value->empty() ? std::nullopt : value;
    }
    const char* const value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
  }

  /// What the flag says, else the first of the variables that is set.
  std::optional<Written> written(const SettingsFlags::Text& flag, std::string_view flag_name,
                                 std::initializer_list<const char*> variables) const {
    if (flag) return Written{*flag, {Source::flag, std::string(flag_name)}};
    for (const char* name : variables) {
      if (auto value = variable(name)) return Written{*value, {Source::environment, name}};
    }
    return std::nullopt;
  }

  bool is_on(const char* name) const { return switched(name).value_or(false); }
  bool is_off(const char* name) const { return !switched(name).value_or(true); }

 private:
  std::optional<bool> switched(const char* name) const {
    const auto found = written({}, {}, {name});
    if (!found) return std::nullopt;
    return read(*found, one_of("invalid_setting", kSwitches));
  }

  const EnvironmentLookup& environment_;
};

template <typename T>
Setting<T> fallback(const std::optional<T>& from_preset, const std::optional<Preset>& preset,
                    T built_in) {
  if (from_preset && preset) return {*from_preset, {Source::preset, std::string(word(*preset))}};
  return {std::move(built_in), {}};
}

template <typename T, typename Read>
Setting<T> choose(const std::optional<Written>& written, const Kind<Read>& kind,
                  Setting<T> otherwise) {
  if (!written) return otherwise;
  return {static_cast<T>(read(*written, kind)), written->origin};
}

Setting<bool> choose(const std::optional<bool>& flag, std::string_view flag_name,
                     Setting<bool> otherwise) {
  if (!flag) return otherwise;
  return {*flag, {Source::flag, std::string(flag_name)}};
}

Setting<Mode> choose_mode(const Resolver& from, const SettingsFlags& flags,
                          const Setting<std::optional<Preset>>& preset,
                          const PresetValues& values) {
  const auto eager = [](const char* variable) {
    return Setting<Mode>{Mode::eager, {Source::environment, variable}};
  };
  if (from.is_on("TOTO_DISABLE_COMPILE")) return eager("TOTO_DISABLE_COMPILE");
  if (!flags.mode && from.is_off("TOTO_COMPILE")) return eager("TOTO_COMPILE");
  Setting<Mode> otherwise = fallback(values.mode, preset.value, kDefaultMode);
  const auto written =
      from.written(flags.mode, "--mode", {"TOTO_COMPILE_MODE", "TORCH_COMPILE_MODE"});
  if (!written && otherwise.value == Mode::eager && from.is_on("TOTO_COMPILE")) {
    return {kDefaultMode, {Source::environment, "TOTO_COMPILE"}};
  }
  return choose<Mode>(written, one_of("unknown_mode", kModes), std::move(otherwise));
}

// A relative XDG_CACHE_HOME is to be ignored, says the XDG Base Directory Specification.
Setting<std::string> default_cache_dir(const Resolver& from) {
  const auto cache = from.variable("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) {
    return {*cache + "/toto/plans", {Source::built_in, "in XDG_CACHE_HOME"}};
  }
  const auto home = from.variable("HOME");
  if (!home) return {"", {Source::built_in, "HOME is not set"}};
  return {*home + "/.cache/toto/plans", {}};
}

}  // namespace

Settings resolve_settings(const SettingsFlags& flags, const EnvironmentLookup& environment) {
  const Resolver from(environment);
  Settings s;
  s.preset = choose<std::optional<Preset>>(from.written(flags.preset, "--preset", {}),
                                           one_of("unknown_preset", kPresets), {});
  const std::optional<Preset> preset = s.preset.value;
  const PresetValues values = preset ? preset_values(*preset) : PresetValues{};

  s.mode = choose_mode(from, flags, s.preset, values);
  s.device = choose<Device>(from.written(flags.device, "--device", {"TOTO_COMPILE_BACKEND"}),
                            one_of("unknown_device", kDevices), {Device::cpu, {}});
  s.precision = choose<Precision>(from.written(flags.precision, "--precision", {}),
                                  one_of("unknown_dtype", kPrecisions),
                                  fallback(values.precision, preset, Precision::float32));
  // Only the reference computes in float64.
  Setting<std::string> backend = {"cpu", {}};
  if (s.precision.value == Precision::float64) {
    backend = {"reference", {Source::built_in, "for float64"}};
  }
  s.backend = choose<std::string>(from.written(flags.backend, "--backend", {}),
                                  one_of("unknown_backend", kBackends), std::move(backend));
  s.threads = choose<int>(from.written(flags.threads, "--threads", {"TOTO_NUM_THREADS"}),
                          whole("invalid_threads", 1, kMaxThreads),
                          {available_cores(), {Source::built_in, "available cores"}});
  s.seed = choose<std::uint64_t>(from.written(flags.seed, "--seed", {"TOTO_SEED"}),
                                 whole("invalid_seed", 0, kLargest), {0, {}});
  const auto text = kind_of("invalid_setting", "a value", any_text);
  s.model =
      choose<std::string>(from.written(flags.model, "--model", {"TOTO_MODEL_ID"}), text, {"", {}});
  s.plan_cache_dir = choose<std::string>(
      from.written(flags.plan_cache_dir, "--plan-cache-dir", {"TOTO_PLAN_CACHE_DIR"}), text,
      default_cache_dir(from));
  s.plan_cache =
      choose<CachePolicy>(from.written(flags.plan_cache, "--plan-cache", {}),
                          one_of("invalid_setting", kCachePolicies), {CachePolicy::prefer, {}});
  s.max_plans =
      choose<std::size_t>(from.written(flags.max_plans, "--max-plans", {"TOTO_MAX_PLANS"}),
                          whole("invalid_setting", 1, kMaxPlans), {kDefaultMaxPlans, {}});
  const auto bytes =
      kind_of("invalid_setting",
              "a number of bytes such as 2000000000, 2GB, 512MiB, or 0 for no limit", read_bytes);
  s.memory_limit =
      choose<std::uint64_t>(from.written(flags.memory_limit, "--memory-limit", {}), bytes, {0, {}});
  const auto categories = kind_of(
      "invalid_setting",
      "some of " + list_words(kLogCategories) + " with commas between them, or all, or none",
      read_log);
  s.log = choose<LogCategories>(from.written(flags.log, "--log", {"TOTO_LOG"}), categories,
                                fallback(values.log, preset, LogCategories{}));
  s.strict_counters = choose(flags.strict_counters, "--strict-counters",
                             fallback(values.strict_counters, preset, false));
  s.deterministic_checks = choose(flags.deterministic_checks, "--deterministic-checks",
                                  fallback(values.deterministic_checks, preset, false));
  return s;
}

std::span<const std::string_view> setting_variables() { return kVariables; }

}  // namespace toto
