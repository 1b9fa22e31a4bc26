// SPDX-License-Identifier: Apache-2.0
// What a preset sets, and what holds where nothing is set.
#pragma once

#include <optional>

#include "toto/settings.hpp"

namespace toto {

struct PresetValues {
  std::optional<Mode> mode;
  std::optional<Precision> precision;
  std::optional<LogCategories> log;
  std::optional<bool> strict_counters;
  std::optional<bool> deterministic_checks;
};

constexpr PresetValues preset_values(Preset preset) {
  PresetValues values;
  switch (preset) {
    case Preset::production:
      values.mode = Mode::reduce_overhead;
      values.strict_counters = true;
      break;
    case Preset::development:
      values.mode = Mode::planned;
      values.log = LogCategories{.plans = true};
      break;
    case Preset::validation:
      values.mode = Mode::eager;
      values.precision = Precision::float32;
      values.deterministic_checks = true;
      break;
  }
  return values;
}

inline constexpr Mode kDefaultMode = Mode::reduce_overhead;
constexpr ContextCache default_kv_cache(Mode mode) {
  return mode == Mode::eager ? ContextCache::per_trajectory : ContextCache::shared;
}
inline constexpr std::size_t kDefaultMaxPlans = 256;

}  // namespace toto
