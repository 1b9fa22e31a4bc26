// SPDX-License-Identifier: Apache-2.0
// Settings as lines for people and programs.
#include <fmt/format.h>

#include "settings/presets.h"
#include "settings/words.h"
#include "toto/settings.hpp"

namespace toto {
namespace {

constexpr std::array<std::string_view, 11> kVariables = {
    "TOTO_COMPILE",      "TOTO_COMPILE_BACKEND",
    "TOTO_COMPILE_MODE", "TOTO_DISABLE_COMPILE",
    "TOTO_KV_CACHE",     "TOTO_LOG",
    "TOTO_MAX_PLANS",    "TOTO_MODEL_ID",
    "TOTO_NUM_THREADS",  "TOTO_PLAN_CACHE_DIR",
    "TOTO_SEED"};

std::string on_off(bool on) { return on ? "on" : "off"; }

template <typename T>
SettingLine line(std::string_view name, const Setting<T>& setting) {
  return {name, std::string(word(setting.value)), setting.origin};
}

}  // namespace

std::span<const std::string_view> setting_variables() { return kVariables; }

std::string describe(const Origin& origin) {
  std::string source(word(origin.source));
  if (origin.name.empty()) return source;
  return origin.source == Source::built_in ? source + " (" + origin.name + ")"
                                           : source + " " + origin.name;
}

namespace {

std::string device_name(const Settings& s) {
  const std::string_view name = word(s.device.value);
  return s.device.value == Device::cuda ? fmt::format("{}:{}", name, s.device_index)
                                        : std::string(name);
}

}  // namespace

std::vector<SettingLine> describe(const Settings& s) {
  const auto& preset = s.preset.value;
  return {
      {"preset", preset ? std::string(word(*preset)) : "none", s.preset.origin},
      line("mode", s.mode),
      line("kv-cache", s.kv_cache),
      {"device", device_name(s), s.device.origin},
      {"backend", s.backend.value, s.backend.origin},
      line("precision", s.precision),
      {"threads", std::to_string(s.threads.value), s.threads.origin},
      {"seed", std::to_string(s.seed.value), s.seed.origin},
      {"model", s.model.value.empty() ? "the one that ships with toto" : s.model.value,
       s.model.origin},
      line("plan-cache", s.plan_cache),
      {"plan-cache-dir", s.plan_cache_dir.value.empty() ? "none" : s.plan_cache_dir.value,
       s.plan_cache_dir.origin},
      {"max-plans", std::to_string(s.max_plans.value), s.max_plans.origin},
      {"memory-limit",
       s.memory_limit.value == 0 ? "none" : std::to_string(s.memory_limit.value) + " bytes",
       s.memory_limit.origin},
      {"log", write_log(s.log.value), s.log.origin},
      {"strict-counters", on_off(s.strict_counters.value), s.strict_counters.origin},
      {"deterministic-checks", on_off(s.deterministic_checks.value), s.deterministic_checks.origin},
  };
}

std::vector<PresetLine> describe_presets() {
  std::vector<PresetLine> lines;
  for (const auto& [name, preset] : kPresets) {
    const PresetValues values = preset_values(preset);
    const Origin origin = {Source::preset, std::string(name)};
    PresetLine line = {name, {}};
    const auto add = [&](std::string_view setting, std::string value) {
      line.settings.push_back({setting, std::move(value), origin});
    };
    if (values.mode) add("mode", std::string(word(*values.mode)));
    if (values.precision) add("precision", std::string(word(*values.precision)));
    if (values.log) add("log", write_log(*values.log));
    if (values.strict_counters) add("strict-counters", on_off(*values.strict_counters));
    if (values.deterministic_checks) {
      add("deterministic-checks", on_off(*values.deterministic_checks));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace toto
