// SPDX-License-Identifier: Apache-2.0
// One setting at a time: flag > environment > preset > built-in. Only the variables of settings
// that are asked for are looked at, so that nonsense in another does no harm.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "settings/presets.h"
#include "toto/settings.hpp"

namespace toto {

/// A value as it was written, and where.
struct Written {
  std::string text;
  Origin origin;
};

/// The flags and variables must outlive it. Every function throws what resolve_settings throws.
class Resolver {
 public:
  Resolver(const SettingsFlags& flags, const Variables& variables);

  [[nodiscard]] const Setting<std::optional<Preset>>& preset() const { return preset_; }
  /// The mode that outranks even what a program or a flag says: eager, by TOTO_DISABLE_COMPILE.
  [[nodiscard]] std::optional<Setting<Mode>> forced_mode() const;
  [[nodiscard]] Setting<Mode> mode() const;
  /// That of the mode where nothing names one.
  [[nodiscard]] Setting<ContextCache> kv_cache(Mode mode) const;
  [[nodiscard]] Setting<Device> device() const;
  /// Which GPU: N of "cuda:N", else 0.
  [[nodiscard]] int device_index() const;
  [[nodiscard]] Setting<Precision> precision() const;
  [[nodiscard]] Setting<std::string> backend(Precision precision) const;
  /// The reference backend has none: what a variable says about them is not looked at.
  [[nodiscard]] Setting<int> threads(std::string_view backend) const;
  [[nodiscard]] Setting<std::uint64_t> seed() const;
  [[nodiscard]] Setting<std::string> model() const;
  [[nodiscard]] Setting<CachePolicy> plan_cache() const;
  /// What a flag or a variable names; nothing where none does.
  [[nodiscard]] std::optional<Setting<std::string>> named_plan_cache_dir() const;
  [[nodiscard]] Setting<std::string> plan_cache_dir() const;
  [[nodiscard]] Setting<std::size_t> max_plans() const;
  [[nodiscard]] Setting<std::uint64_t> memory_limit() const;
  [[nodiscard]] Setting<LogCategories> log() const;
  [[nodiscard]] Setting<bool> strict_counters() const;
  [[nodiscard]] Setting<bool> deterministic_checks() const;

 private:
  [[nodiscard]] std::optional<std::string> variable(const char* name) const;
  [[nodiscard]] std::optional<Written> written(const SettingsFlags::Text& flag,
                                               std::string_view flag_name,
                                               std::initializer_list<const char*> variables) const;
  [[nodiscard]] std::optional<bool> switched(const char* name) const;
  [[nodiscard]] std::optional<Written> written_mode() const;
  template <typename T>
  [[nodiscard]] Setting<T> fallback(const std::optional<T>& from_preset, T built_in) const;

  const SettingsFlags& flags_;
  const Variables& variables_;
  Setting<std::optional<Preset>> preset_;
  PresetValues values_;  // of the preset
};

}  // namespace toto
