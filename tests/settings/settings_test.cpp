// SPDX-License-Identifier: Apache-2.0
// Settings: precedence, presets, the environment, malformed values.
#include "toto/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/cpu_info.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::error_of;
using testing::HasSubstr;

Settings resolve(const SettingsFlags& flags, const Variables& variables = {}) {
  return resolve_settings(flags, variables);
}

Origin flag(const char* name) { return {Source::flag, name}; }
Origin variable(const char* name) { return {Source::environment, name}; }
Origin preset(const char* name) { return {Source::preset, name}; }

TEST(Settings, BuiltIn) {
  const Settings s = resolve({}, {{"HOME", "/home/ann"}});
  EXPECT_EQ(s.preset.value, std::nullopt);
  EXPECT_EQ(s.mode.value, Mode::reduce_overhead);
  EXPECT_EQ(s.kv_cache.value, ContextCache::shared);
  EXPECT_EQ(s.device.value, Device::cpu);
  EXPECT_EQ(s.backend.value, "cpu");
  EXPECT_EQ(s.precision.value, Precision::float32);
  EXPECT_EQ(s.threads.value, available_cores());
  EXPECT_EQ(s.seed.value, 0U);
  EXPECT_EQ(s.model.value, "");
  EXPECT_EQ(s.plan_cache.value, CachePolicy::prefer);
  EXPECT_EQ(s.plan_cache_dir.value, "/home/ann/.cache/toto/plans");
  EXPECT_EQ(s.max_plans.value, 256U);
  EXPECT_EQ(s.memory_limit.value, 0U);
  EXPECT_EQ(s.log.value, LogCategories{});
  EXPECT_FALSE(s.strict_counters.value);
  EXPECT_FALSE(s.deterministic_checks.value);
  for (const SettingLine& line : describe(s)) {
    EXPECT_EQ(line.origin.source, Source::built_in) << line.name;
  }
}

TEST(Settings, EveryFlag) {
  SettingsFlags flags;
  flags.preset = "validation";
  flags.mode = "max-autotune";
  flags.kv_cache = "private";
  flags.device = "auto";
  flags.backend = "reference";
  flags.precision = "bf16";
  flags.threads = "3";
  flags.seed = "18446744073709551615";
  flags.model = "owner/name";
  flags.plan_cache_dir = "plans";
  flags.plan_cache = "only";
  flags.max_plans = "7";
  flags.memory_limit = "2GB";
  flags.log = "plans,memory";
  flags.strict_counters = true;
  flags.deterministic_checks = false;
  // Every variable says something else, and none is looked at.
  Variables variables;
  for (const std::string_view name : setting_variables()) variables[std::string(name)] = "nonsense";
  variables.erase("TOTO_DISABLE_COMPILE");
  const Settings s = resolve(flags, variables);
  EXPECT_EQ(s.preset.value, Preset::validation);
  EXPECT_EQ(s.mode.value, Mode::max_autotune);
  EXPECT_EQ(s.kv_cache.value, ContextCache::per_trajectory);
  EXPECT_EQ(s.device.value, Device::automatic);
  EXPECT_EQ(s.backend.value, "reference");
  EXPECT_EQ(s.precision.value, Precision::bfloat16);
  EXPECT_EQ(s.threads.value, 3);
  EXPECT_EQ(s.seed.value, 18446744073709551615U);
  EXPECT_EQ(s.model.value, "owner/name");
  EXPECT_EQ(s.plan_cache_dir.value, "plans");
  EXPECT_EQ(s.plan_cache.value, CachePolicy::only);
  EXPECT_EQ(s.max_plans.value, 7U);
  EXPECT_EQ(s.memory_limit.value, 2'000'000'000U);
  EXPECT_EQ(s.log.value, (LogCategories{.plans = true, .memory = true}));
  EXPECT_TRUE(s.strict_counters.value);
  EXPECT_FALSE(s.deterministic_checks.value);
  for (const SettingLine& line : describe(s)) {
    EXPECT_EQ(describe(line.origin), "flag --" + std::string(line.name));
  }
}

TEST(Settings, EveryVariable) {
  const Settings s = resolve({}, {{"TOTO_COMPILE_MODE", "default"},
                                  {"TOTO_KV_CACHE", "private"},
                                  {"TOTO_COMPILE_BACKEND", "cuda"},
                                  {"TOTO_PLAN_CACHE_DIR", "/plans"},
                                  {"TOTO_MAX_PLANS", "12"},
                                  {"TOTO_NUM_THREADS", "5"},
                                  {"TOTO_SEED", "9"},
                                  {"TOTO_MODEL_ID", "a/b"},
                                  {"TOTO_LOG", "all"}});
  EXPECT_EQ(s.mode.value, Mode::planned);
  EXPECT_EQ(s.mode.origin, variable("TOTO_COMPILE_MODE"));
  EXPECT_EQ(s.kv_cache.value, ContextCache::per_trajectory);
  EXPECT_EQ(s.kv_cache.origin, variable("TOTO_KV_CACHE"));
  EXPECT_EQ(s.device.value, Device::cuda);
  EXPECT_EQ(s.device.origin, variable("TOTO_COMPILE_BACKEND"));
  EXPECT_EQ(s.plan_cache_dir.value, "/plans");
  EXPECT_EQ(s.plan_cache_dir.origin, variable("TOTO_PLAN_CACHE_DIR"));
  EXPECT_EQ(s.max_plans.value, 12U);
  EXPECT_EQ(s.max_plans.origin, variable("TOTO_MAX_PLANS"));
  EXPECT_EQ(s.threads.value, 5);
  EXPECT_EQ(s.threads.origin, variable("TOTO_NUM_THREADS"));
  EXPECT_EQ(s.seed.value, 9U);
  EXPECT_EQ(s.seed.origin, variable("TOTO_SEED"));
  EXPECT_EQ(s.model.value, "a/b");
  EXPECT_EQ(s.model.origin, variable("TOTO_MODEL_ID"));
  EXPECT_EQ(s.log.value, (LogCategories{true, true, true, true, true, true}));
  EXPECT_EQ(s.log.origin, variable("TOTO_LOG"));
}

// Each of them is an error that names it, or the value of a setting.
TEST(Settings, TheListOfVariablesIsWhatIsRead) {
  EXPECT_TRUE(std::is_sorted(setting_variables().begin(), setting_variables().end()));
  for (const std::string_view name : setting_variables()) {
    const Variables variables = {{std::string(name), "nonsense"}};
    EXPECT_THAT(explain(variables), testing::IsEmpty()) << name;
    if (name == "TOTO_MODEL_ID" || name == "TOTO_PLAN_CACHE_DIR") {
      const Settings s = resolve({}, variables);
      EXPECT_EQ((name == "TOTO_MODEL_ID" ? s.model : s.plan_cache_dir).value, "nonsense");
      continue;
    }
    const Error error = error_of([&] { resolve({}, variables); });
    EXPECT_EQ(error.status(), ExitStatus::bad_config) << name;
    EXPECT_EQ(error.where(), name);
  }
}

TEST(Settings, TheReferenceHasNoThreadsToBeWrongAbout) {
  const Variables variables = {{"TOTO_NUM_THREADS", "0"}};
  EXPECT_EQ(error_of([&] { resolve({}, variables); }).status(), ExitStatus::bad_config);
  SettingsFlags flags;
  flags.backend = "reference";
  EXPECT_EQ(resolve(flags, variables).threads.value, available_cores());
  flags.threads = "0";
  EXPECT_EQ(error_of([&] { resolve(flags, variables); }).where(), "--threads");
}

TEST(Settings, AnEmptyVariableIsUnset) {
  const Settings s = resolve({}, {{"TOTO_COMPILE_MODE", ""}, {"TOTO_NUM_THREADS", ""}});
  EXPECT_EQ(s.mode.origin, Origin{});
  EXPECT_EQ(s.threads.value, available_cores());
}

TEST(Settings, TheEnvironmentOfTheProcess) {
  const test::ScopedEnvironment seed("TOTO_SEED", "77");
  EXPECT_EQ(resolve_settings().seed.value, 77U);
  SettingsFlags flags;
  flags.seed = "5";
  EXPECT_EQ(resolve_settings(flags).seed.value, 5U);
}

TEST(Mode, Precedence) {
  SettingsFlags flags;
  Variables variables;
  const auto check = [&](Mode mode, const Origin& origin) {
    const Settings s = resolve(flags, variables);
    EXPECT_EQ(word(s.mode.value), word(mode));
    EXPECT_EQ(s.mode.origin, origin);
  };
  check(Mode::reduce_overhead, {});
  flags.preset = "development";
  check(Mode::planned, preset("development"));
  variables["TORCH_COMPILE_MODE"] = "max-autotune";
  check(Mode::max_autotune, variable("TORCH_COMPILE_MODE"));
  variables["TOTO_COMPILE_MODE"] = "reduce-overhead";
  check(Mode::reduce_overhead, variable("TOTO_COMPILE_MODE"));
  variables["TOTO_COMPILE"] = "0";
  check(Mode::eager, variable("TOTO_COMPILE"));
  flags.mode = "max-autotune";
  check(Mode::max_autotune, flag("--mode"));
  variables["TOTO_DISABLE_COMPILE"] = "1";
  check(Mode::eager, variable("TOTO_DISABLE_COMPILE"));
}

TEST(Mode, SwitchesThatChangeNothing) {
  for (const Variables& variables : std::vector<Variables>{{{"TOTO_DISABLE_COMPILE", "0"}},
                                                           {{"TOTO_DISABLE_COMPILE", "false"}},
                                                           {{"TOTO_COMPILE", "1"}},
                                                           {{"TOTO_COMPILE", "true"}}}) {
    EXPECT_EQ(resolve({}, variables).mode.value, Mode::reduce_overhead);
    EXPECT_EQ(resolve({}, variables).mode.origin, Origin{});
  }
  EXPECT_EQ(resolve({}, {{"TOTO_DISABLE_COMPILE", "true"}}).mode.value, Mode::eager);
  EXPECT_EQ(resolve({}, {{"TOTO_COMPILE", "false"}}).mode.value, Mode::eager);
}

TEST(Mode, CompileOutranksAPresetButNotAMode) {
  SettingsFlags flags;
  flags.preset = "validation";
  Variables variables = {{"TOTO_COMPILE", "1"}};
  EXPECT_EQ(resolve(flags, variables).mode.value, Mode::reduce_overhead);
  EXPECT_EQ(resolve(flags, variables).mode.origin, variable("TOTO_COMPILE"));
  variables["TOTO_COMPILE_MODE"] = "eager";
  EXPECT_EQ(resolve(flags, variables).mode.origin, variable("TOTO_COMPILE_MODE"));
}

// The rollback works whatever else is wrong with the mode.
TEST(Mode, RollbackDoesNotLookAtTheRest) {
  SettingsFlags flags;
  flags.mode = "fast";
  EXPECT_EQ(resolve(flags, {{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_COMPILE", "x"}}).mode.value,
            Mode::eager);
}

TEST(Settings, Presets) {
  SettingsFlags flags;
  flags.preset = "production";
  Settings s = resolve(flags);
  EXPECT_EQ(s.mode.value, Mode::reduce_overhead);
  EXPECT_EQ(s.mode.origin, preset("production"));
  EXPECT_TRUE(s.strict_counters.value);
  EXPECT_EQ(s.strict_counters.origin, preset("production"));
  flags.preset = "development";
  s = resolve(flags, {{"TOTO_LOG", "cache"}});
  EXPECT_EQ(s.mode.value, Mode::planned);
  EXPECT_EQ(s.log.value, LogCategories{.cache = true});
  EXPECT_EQ(resolve(flags).log.value, LogCategories{.plans = true});
  flags.preset = "validation";
  s = resolve(flags);
  EXPECT_EQ(s.mode.value, Mode::eager);
  EXPECT_EQ(s.precision.origin, preset("validation"));
  EXPECT_TRUE(s.deterministic_checks.value);
  EXPECT_FALSE(s.strict_counters.value);
  flags.strict_counters = true;
  EXPECT_EQ(resolve(flags).strict_counters.origin, flag("--strict-counters"));
}

TEST(Settings, PresetsAreDescribedAsTheyAct) {
  for (const PresetLine& line : describe_presets()) {
    SettingsFlags flags;
    flags.preset = std::string(line.preset);
    const std::vector<SettingLine> effective = describe(resolve(flags));
    std::size_t by_preset = 0;
    for (const SettingLine& one : effective) by_preset += one.origin.source == Source::preset;
    EXPECT_EQ(by_preset, line.settings.size());
    for (const SettingLine& promised : line.settings) {
      const auto found =
          std::find_if(effective.begin(), effective.end(),
                       [&](const SettingLine& one) { return one.name == promised.name; });
      ASSERT_NE(found, effective.end()) << promised.name;
      EXPECT_EQ(found->value, promised.value) << line.preset << " " << promised.name;
      EXPECT_EQ(found->origin, promised.origin);
    }
  }
}

TEST(Settings, Float64IsComputedByTheReference) {
  SettingsFlags flags;
  flags.precision = "float64";
  EXPECT_EQ(resolve(flags).backend.value, "reference");
  EXPECT_EQ(describe(resolve(flags).backend.origin), "built-in (for float64)");
  flags.backend = "cpu";
  EXPECT_EQ(resolve(flags).backend.value, "cpu");
}

TEST(Settings, PlanCacheFolder) {
  const auto folder = [](const Variables& variables) {
    return resolve({}, variables).plan_cache_dir.value;
  };
  EXPECT_EQ(folder({}), "");
  EXPECT_EQ(folder({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}), "/x/toto/plans");
  EXPECT_EQ(folder({{"HOME", "/h"}, {"XDG_CACHE_HOME", "relative"}}), "/h/.cache/toto/plans");
  EXPECT_EQ(folder({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}, {"TOTO_PLAN_CACHE_DIR", "p"}}), "p");
}

TEST(Settings, Bytes) {
  const auto limit = [](const char* text) {
    SettingsFlags flags;
    flags.memory_limit = text;
    return resolve(flags).memory_limit.value;
  };
  EXPECT_EQ(limit("0"), 0U);
  EXPECT_EQ(limit("123"), 123U);
  EXPECT_EQ(limit("5KB"), 5000U);
  EXPECT_EQ(limit("5KiB"), 5120U);
  EXPECT_EQ(limit("5MB"), 5'000'000U);
  EXPECT_EQ(limit("5MiB"), 5'242'880U);
  EXPECT_EQ(limit("5GiB"), 5'368'709'120U);
  EXPECT_EQ(limit("17179869183GiB"), 17179869183ULL << 30);
}

struct Malformed {
  std::string name;
  SettingsFlags::Text SettingsFlags::*flag;
  std::string typed;  // the name of the flag
  std::string variable;
  std::string code;
  std::vector<std::string> values;
  std::string valid;  // something the message must name
};

class MalformedSetting : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedSetting, IsNamed) {
  const Malformed& it = GetParam();
  for (const std::string& value : it.values) {
    SettingsFlags flags;
    flags.*it.flag = value;
    const Error error = error_of([&] { resolve(flags); });
    EXPECT_EQ(error.code(), it.code) << value;
    EXPECT_EQ(error.status(), ExitStatus::usage) << value;
    EXPECT_EQ(error.where(), it.typed);
    EXPECT_THAT(error.message(), HasSubstr(it.valid));
    if (value.size() < 40) {
      EXPECT_THAT(error.message(), HasSubstr("\"" + value + "\""));
    }
    if (it.variable.empty() || value.empty()) continue;
    const Error from_variable = error_of([&] { resolve({}, {{it.variable, value}}); });
    EXPECT_EQ(from_variable.code(), it.code) << value;
    EXPECT_EQ(from_variable.status(), ExitStatus::bad_config) << value;
    EXPECT_EQ(from_variable.where(), it.variable);
    EXPECT_THAT(from_variable.message(), HasSubstr(it.valid));
  }
}

using Flags = SettingsFlags;
INSTANTIATE_TEST_SUITE_P(
    Settings, MalformedSetting,
    testing::Values(
        Malformed{"Preset",
                  &Flags::preset,
                  "--preset",
                  "",
                  "unknown_preset",
                  {"prod", ""},
                  "production, development, validation"},
        Malformed{"Mode",
                  &Flags::mode,
                  "--mode",
                  "TOTO_COMPILE_MODE",
                  "unknown_mode",
                  {"fast", "", "Eager", "reduce_overhead", "eager "},
                  "eager, default, reduce-overhead, max-autotune"},
        Malformed{"Device",
                  &Flags::device,
                  "--device",
                  "TOTO_COMPILE_BACKEND",
                  "unknown_device",
                  {"tpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "inductors", ""},
                  "cpu, cuda, auto"},
        Malformed{"Backend",
                  &Flags::backend,
                  "--backend",
                  "",
                  "unknown_backend",
                  {"magic", ""},
                  "cpu, reference"},
        Malformed{"Precision",
                  &Flags::precision,
                  "--precision",
                  "",
                  "unknown_dtype",
                  {"float8", "", "int4"},
                  "float32, tf32, bfloat16, float64, int8"},
        Malformed{"Threads",
                  &Flags::threads,
                  "--threads",
                  "TOTO_NUM_THREADS",
                  "invalid_threads",
                  {"0", "-1", "1025", "2.0", " 2", "0x2", "two", "", "99999999999999999999"},
                  "1 to 1024"},
        Malformed{"Seed",
                  &Flags::seed,
                  "--seed",
                  "TOTO_SEED",
                  "invalid_seed",
                  {"-1", "18446744073709551616", "1e3", ""},
                  "0 to 18446744073709551615"},
        Malformed{"Model", &Flags::model, "--model", "", "invalid_setting", {""}, "a value"},
        Malformed{"CacheDir",
                  &Flags::plan_cache_dir,
                  "--plan-cache-dir",
                  "",
                  "invalid_setting",
                  {""},
                  "a value"},
        Malformed{"CachePolicy",
                  &Flags::plan_cache,
                  "--plan-cache",
                  "",
                  "invalid_setting",
                  {"always", ""},
                  "prefer, only, never"},
        Malformed{"MaxPlans",
                  &Flags::max_plans,
                  "--max-plans",
                  "TOTO_MAX_PLANS",
                  "invalid_setting",
                  {"0", "65537", "many", ""},
                  "1 to 65536"},
        Malformed{"MemoryLimit",
                  &Flags::memory_limit,
                  "--memory-limit",
                  "",
                  "invalid_setting",
                  {"2G", "GB", "-1", "1.5GB", "2 GB", "17179869184GiB", "18446744073709551616", ""},
                  "512MiB"},
        Malformed{"Log",
                  &Flags::log,
                  "--log",
                  "TOTO_LOG",
                  "invalid_setting",
                  {"recompiles", "plans,", ",plans", "plans,,cache", "none,plans", ""},
                  "plans, graphs, cache, memory"},
        Malformed{"OneLine",
                  &Flags::mode,
                  "--mode",
                  "TOTO_COMPILE_MODE",
                  "unknown_mode",
                  {std::string(100'000, 'x')},
                  "eager"}),
    [](const auto& it) { return it.param.name; });

TEST(Settings, MalformedSwitches) {
  for (const char* name : {"TOTO_DISABLE_COMPILE", "TOTO_COMPILE"}) {
    for (const char* value : {"maybe", "2", "truely", " 1"}) {
      const Error error = error_of([&] { resolve({}, {{name, value}}); });
      EXPECT_EQ(error.code(), "invalid_setting");
      EXPECT_EQ(error.status(), ExitStatus::bad_config);
      EXPECT_EQ(error.where(), name);
      EXPECT_THAT(error.message(), HasSubstr("0, 1, off, on, no, yes, false, true"));
    }
  }
}

TEST(Settings, ErrorsAreOneLine) {
  SettingsFlags flags;
  flags.mode = "a\nb\x1b[31m";
  const Error error = error_of([&] { resolve(flags); });
  const std::string line = error.what();
  EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }))
      << line;
}

TEST(Settings, LogIsWrittenAsItIsRead) {
  for (const char* text : {"none", "plans", "graphs,memory", "plans,graphs,cache", "all"}) {
    SettingsFlags flags;
    flags.log = text;
    const std::vector<SettingLine> lines = describe(resolve(flags));
    const auto log = std::find_if(lines.begin(), lines.end(),
                                  [](const SettingLine& line) { return line.name == "log"; });
    ASSERT_NE(log, lines.end());
    EXPECT_EQ(log->value, text);
  }
  SettingsFlags flags;
  flags.log = "plans,all";
  EXPECT_EQ(resolve(flags).log.value, (LogCategories{true, true, true, true, true, true}));
}

}  // namespace
}  // namespace toto
