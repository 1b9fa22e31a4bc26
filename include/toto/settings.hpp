// SPDX-License-Identifier: Apache-2.0
// Settings: how forecasts are run, where each value came from, and the one place where flags,
// environment, presets and built-in values meet (docs/settings.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/log.hpp"
#include "toto/model.hpp"

#pragma GCC visibility push(default)
namespace toto {

struct ForecasterOptions;
struct ForecastOptions;

/// What is done with plans kept on disk.
enum class CachePolicy {
  prefer,  ///< used where there are any, and written
  only,    ///< used; what is not there is an error (plan_cache_miss)
  never,   ///< neither read nor written
};

/// Several settings under one name.
enum class Preset { production, development, validation };

/// What is logged as it happens.
struct LogCategories {
  bool plans = false;     ///< plans built, with the reason, and evicted
  bool graphs = false;    ///< captures, splits and fallbacks
  bool cache = false;     ///< the plan cache on disk
  bool memory = false;    ///< sizes of arenas, batches split to fit
  bool device = false;    ///< where a model computes
  bool settings = false;  ///< variables that mean something else here
  [[nodiscard]] bool has(Topic topic) const;
  bool operator==(const LogCategories&) const = default;
};

enum class Source { flag, environment, preset, built_in };

struct Origin {
  Source source = Source::built_in;
  std::string name;  ///< "--mode", "TOTO_COMPILE_MODE", "production"; built-in: why, or empty
  bool operator==(const Origin&) const = default;
};

template <typename T>
struct Setting {
  T value{};
  Origin origin;
};

/// Variables by name, as an environment holds them. An empty value counts as unset.
using Variables = std::map<std::string, std::string, std::less<>>;
/// Those of the process, now.
Variables process_variables();

/// A variable that is set, and what it means here: one of PyTorch's, or a TOTO_* name that nothing
/// reads.
struct VariableNote {
  std::string name, value;
  std::string meaning;  ///< one line that names the variable
  Severity severity = Severity::info;
};
/// Sorted by name. None for a variable that is read and means here what it says.
std::vector<VariableNote> explain(const Variables& variables);

/// How forecasts are run: every value, and where it came from.
struct Settings {
  Setting<std::optional<Preset>> preset;
  Setting<Mode> mode;
  Setting<ContextCache> kv_cache;
  Setting<Device> device;
  int device_index = 0;          ///< of cuda, as in "cuda:1"
  Setting<std::string> backend;  ///< on a CPU: "cpu", or "reference", the plain loops
  Setting<Precision> precision;
  Setting<int> threads;  ///< at least 1
  Setting<std::uint64_t> seed;
  Setting<std::string> model;           ///< empty: the model that ships with toto
  Setting<std::string> plan_cache_dir;  ///< empty: no home folder, so no plan cache
  Setting<CachePolicy> plan_cache;
  Setting<std::size_t> max_plans;       ///< at least 1; the least recently used plan goes
  Setting<std::uint64_t> memory_limit;  ///< bytes; 0: none
  Setting<LogCategories> log;
  Setting<bool> strict_counters;       ///< what should be 0 after warm-up and is not, is told
  Setting<bool> deterministic_checks;  ///< the checks of the `validation` preset
  std::vector<VariableNote> notes;     ///< variables that mean something else here (explain)

  /// From TOTO_* variables, then what is built in; errors as resolve_settings.
  static Settings from_environment(const Variables& variables = process_variables());
  /// What is built in, whatever the environment says.
  static Settings built_in() { return from_environment({}); }

  /// Takes over every setting that the options have, and closes them to the environment. A `log`
  /// that is empty becomes log_to_stderr(log). The first logs the notes and chooses the device.
  /// Throws Error: device_unavailable (69); unsupported_precision, conflicting_flags (2 where a
  /// flag asked for the device, 78 where a variable did).
  void apply(LoadOptions& options) const;
  void apply(ModelQuery& query) const;
  void apply(ForecasterOptions& options) const;
  void apply(ForecastOptions& options) const;
};

/// A sink that writes "toto: ..." lines to standard error: every warning, and infos of these
/// topics. Empty where no topic is asked for.
LogSink log_to_stderr(const LogCategories& topics);

/// Flags as they were typed; nothing where a flag was not given.
struct SettingsFlags {
  using Text = std::optional<std::string>;
  Text preset;
  Text mode;
  Text kv_cache;
  Text device;
  Text backend;
  Text precision;
  Text threads;
  Text seed;
  Text model;
  Text plan_cache_dir;
  Text plan_cache;
  Text max_plans;
  Text memory_limit;
  Text log;
  std::optional<bool> strict_counters;
  std::optional<bool> deterministic_checks;
};

/// Flag > environment > preset > built-in; TOTO_DISABLE_COMPILE=1 makes the mode `eager` whatever
/// the others say. An empty variable counts as unset, and a value that another one outranks is not
/// looked at. Values that only PyTorch knows (TOTO_COMPILE_BACKEND=inductor) choose nothing, and
/// explain() says so.
///
/// Throws Error: unknown_mode, unknown_kv_cache, unknown_device, unknown_backend, unknown_dtype,
/// invalid_threads, invalid_seed, invalid_setting; exit status 2 for a flag and 78 for a variable.
/// The message names flag or variable, what was found and what is valid.
Settings resolve_settings(const SettingsFlags& flags = {},
                          const Variables& variables = process_variables());

/// The environment variables that are read here, sorted; TORCH_COMPILE_MODE is not among them.
std::span<const std::string_view> setting_variables();

/// A setting for people and programs: "mode", "reduce-overhead", where from.
struct SettingLine {
  std::string_view name;
  std::string value;
  Origin origin;
};
std::vector<SettingLine> describe(const Settings& settings);

/// "flag --mode", "environment TOTO_COMPILE_MODE", "preset production", "built-in".
std::string describe(const Origin& origin);

/// What a preset sets: {"mode", "eager"}, ...
struct PresetLine {
  std::string_view preset;
  std::vector<SettingLine> settings;
};
std::vector<PresetLine> describe_presets();

/// The words that users write and read.
std::string_view word(Mode mode);
std::string_view word(ContextCache cache);
std::string_view word(Device device);
std::string_view word(Paths paths);
std::string_view word(Tails tails);
std::string_view word(Precision precision);
std::string_view word(CachePolicy policy);
std::string_view word(Preset preset);
std::string_view word(Source source);

}  // namespace toto
#pragma GCC visibility pop
