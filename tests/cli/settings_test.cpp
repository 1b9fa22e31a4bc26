// SPDX-License-Identifier: Apache-2.0
// toto config and toto cache.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class SettingsCommand : public Program {
 protected:
  json config(std::vector<std::string> arguments,
              std::vector<std::pair<std::string, std::string>> environment = {}) {
    arguments.insert(arguments.begin(), {"config", "--json"});
    const Result result = run(Invocation{std::move(arguments), {}, std::move(environment), {}});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out);
  }
  static json setting(const std::string& value, const std::string& from) {
    return {{"value", value}, {"from", from}};
  }

  /// A folder with a whole entry, a damaged one, one unfinished and a file of somebody else.
  std::string plans() {
    const std::string name = "plan-afa4ec73a38c2a4e693b887fa34341d4.bin";
    write("plans/" + name, read_file(data_path("plan_cache/" + name)));
    write("plans/plan-0123456789abcdef0123456789abcdef.bin", "x");
    write("plans/.toto-plan-0123456789abcdef.tmp", "");
    write("plans/notes.txt", "mine");
    return path("plans");
  }
};

TEST_F(SettingsCommand, ConfigSaysWhereValuesComeFrom) {
  const std::pair<std::string, std::string> home = {"XDG_CACHE_HOME", path("cache")};
  json settings = config({}, {home});
  EXPECT_EQ(settings["mode"], setting("reduce-overhead", "built-in"));
  EXPECT_EQ(settings["plan-cache-dir"],
            setting(path("cache/toto/plans"), "built-in (in XDG_CACHE_HOME)"));
  EXPECT_FALSE(std::filesystem::exists(path("cache")));  // asking makes nothing
  settings = config({"--preset", "development", "--seed", "4"}, {{"TOTO_MAX_PLANS", "9"}});
  EXPECT_EQ(settings["mode"], setting("default", "preset development"));
  EXPECT_EQ(settings["seed"], setting("4", "flag --seed"));
  EXPECT_EQ(settings["max-plans"], setting("9", "environment TOTO_MAX_PLANS"));
  settings = config({"--mode", "max-autotune"}, {{"TOTO_DISABLE_COMPILE", "1"}});
  EXPECT_EQ(settings["mode"], setting("eager", "environment TOTO_DISABLE_COMPILE"));
  EXPECT_EQ(settings["kv-cache"], setting("private", "environment TOTO_DISABLE_COMPILE"));
  EXPECT_EQ(settings["presets"]["validation"]["mode"], "eager");
  settings = config({"--mode", "eager"}, {});
  EXPECT_EQ(settings["kv-cache"], setting("private", "built-in (of the mode)"));
}

TEST_F(SettingsCommand, ConfigAsATable) {
  const Result result = run({"config", "--mode", "eager", "--dtype", "f64"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, ContainsRegex("\nmode +eager +flag --mode\n"));
  EXPECT_THAT(result.out, ContainsRegex("\nprecision +float64 +flag --precision\n"));
  EXPECT_THAT(result.out, ContainsRegex("\nbackend +reference +built-in .for float64.\n"));
  EXPECT_THAT(result.out, ContainsRegex("\nvalidation +mode eager, "));
}

// The presets keep what distinguishes them: a flag that nobody gave has no value.
TEST_F(SettingsCommand, PresetsSwitchTheirChecksOn) {
  json settings = config({"--preset", "production"});
  EXPECT_EQ(settings["strict-counters"], setting("on", "preset production"));
  EXPECT_EQ(settings["deterministic-checks"], setting("off", "built-in"));
  settings = config({"--preset", "validation"});
  EXPECT_EQ(settings["strict-counters"], setting("off", "built-in"));
  EXPECT_EQ(settings["deterministic-checks"], setting("on", "preset validation"));
  settings = config({"--preset", "production", "--no-strict-counters", "--deterministic-checks"});
  EXPECT_EQ(settings["strict-counters"], setting("off", "flag --strict-counters"));
  EXPECT_EQ(settings["deterministic-checks"], setting("on", "flag --deterministic-checks"));
}

// What PyTorch users have in their environment.
TEST_F(SettingsCommand, ConfigListsVariablesOfPytorch) {
  const std::vector<std::pair<std::string, std::string>> environment = {
      {"TOTO_COMPILE", "1"},
      {"TOTO_COMPILE_MODE", "max-autotune"},
      {"TOTO_COMPILE_BACKEND", "inductor"},
      {"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", "1"},
      {"TORCH_LOGS", "recompiles"}};
  const json settings = config({}, environment);
  EXPECT_EQ(settings["mode"], setting("max-autotune", "environment TOTO_COMPILE_MODE"));
  EXPECT_EQ(settings["device"]["value"], "cpu");
  ASSERT_EQ(settings["variables"].size(), 3U);
  EXPECT_EQ(settings["variables"][0]["name"], "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS");
  EXPECT_EQ(settings["variables"][1]["value"], "recompiles");
  EXPECT_EQ(settings["variables"][2]["name"], "TOTO_COMPILE_BACKEND");
  const Result table = run(Invocation{{"config"}, {}, environment, {}});
  EXPECT_THAT(table.out, HasSubstr("\nTORCH_LOGS has no effect here: "));
  EXPECT_EQ(config({})["variables"], json::array());
}

// They are told once, as notes; a forecast goes on.
TEST_F(SettingsCommand, AForecastTellsWhatTheyMean) {
  Invocation forecast{{"forecast", write("in.csv", two_columns()), "--model", tiny_model(),
                       "--horizon", "4", "--output", "-"},
                      {},
                      {{"TOTO_COMPILE_BACKEND", "inductor"}, {"TORCH_LOGS", "recompiles"}},
                      {}};
  const Result told = run(forecast);
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_EQ(std::count(told.err.begin(), told.err.end(), '\n'), 2) << told.err;
  EXPECT_THAT(told.err, HasSubstr("toto: TOTO_COMPILE_BACKEND=inductor is a backend of "));
  EXPECT_THAT(told.err, HasSubstr("toto: TORCH_LOGS has no effect here"));
  forecast.arguments.emplace_back("--quiet");
  EXPECT_EQ(run(forecast).err, "");
}

// Only what needs threads looks at their number, and says which variable is wrong.
TEST_F(SettingsCommand, ThreadsOfTheEnvironment) {
  const std::vector<std::pair<std::string, std::string>> none = {{"TOTO_NUM_THREADS", "0"}};
  for (const std::vector<std::string>& needs :
       {std::vector<std::string>{"bench", "a"},
        {"forecast", write("in.csv", two_columns()), "--model", tiny_model()}}) {
    const Result result = run(Invocation{needs, {}, none, {}});
    expect_failure(result, 78, "invalid_threads");
    EXPECT_THAT(result.err, HasSubstr("TOTO_NUM_THREADS"));
  }
  for (const std::vector<std::string>& without :
       {std::vector<std::string>{"bench", "--help"},
        {"model", "info", tiny_model()},
        {"cache", "list", "--plan-cache-dir", path("nowhere")}}) {
    const Result result = run(Invocation{without, {}, none, {}});
    EXPECT_EQ(result.status, 0) << without[0] << ": " << result.err;
  }
}

struct Malformed {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  int status;
  std::string code;
  std::string names;
};

class MalformedSettings : public SettingsCommand, public testing::WithParamInterface<Malformed> {};

TEST_P(MalformedSettings, HaveTheirCode) {
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.insert(arguments.begin(), "config");
  const Result result = run(Invocation{arguments, {}, GetParam().environment, {}});
  expect_failure(result, GetParam().status, GetParam().code);
  EXPECT_THAT(result.err, HasSubstr(GetParam().names));
  EXPECT_EQ(result.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, MalformedSettings,
    testing::Values(
        Malformed{"Mode", {"--mode", "fast"}, {}, 2, "unknown_mode", "reduce-overhead"},
        Malformed{"EmptyMode", {"--mode", ""}, {}, 2, "unknown_mode", "reduce-overhead"},
        Malformed{"KvCache", {"--kv-cache", "off"}, {}, 2, "unknown_kv_cache", "private"},
        Malformed{"Device", {"--device", "tpu"}, {}, 2, "unknown_device", "cpu, cuda, auto"},
        Malformed{"Type", {"--dtype", "int3"}, {}, 2, "unknown_dtype", "bfloat16"},
        Malformed{"Threads", {"--threads", "0"}, {}, 2, "invalid_threads", "--threads"},
        Malformed{"Preset", {"--preset", "prod"}, {}, 2, "unknown_preset", "validation"},
        Malformed{"ModeVariable",
                  {},
                  {{"TOTO_COMPILE_MODE", "fast"}},
                  78,
                  "unknown_mode",
                  "TOTO_COMPILE_MODE"},
        Malformed{"Switch",
                  {},
                  {{"TOTO_DISABLE_COMPILE", "maybe"}},
                  78,
                  "invalid_setting",
                  "TOTO_DISABLE_COMPILE"},
        Malformed{"MaxPlans", {}, {{"TOTO_MAX_PLANS", "0"}}, 78, "invalid_setting", "65536"}),
    [](const auto& it) { return it.param.name; });

TEST_F(SettingsCommand, EveryVariableThatIsReadIsKnown) {
  EXPECT_EQ(run(Invocation{{"config"},
                           {},
                           {{"TOTO_DISABLE_COMPILE", "0"},
                            {"TOTO_COMPILE", "1"},
                            {"TOTO_COMPILE_MODE", "default"},
                            {"TOTO_KV_CACHE", "shared"},
                            {"TOTO_COMPILE_BACKEND", "cpu"},
                            {"TOTO_PLAN_CACHE_DIR", path("p")},
                            {"TOTO_MAX_PLANS", "2"},
                            {"TOTO_NUM_THREADS", "2"},
                            {"TOTO_SEED", "2"},
                            {"TOTO_MODEL_ID", "a/b"},
                            {"TOTO_LOG", "plans"}},
                           {}})
                .err,
            "");
  const Result unknown = run(Invocation{{"config"}, {}, {{"TOTO_DISABLE_COMPILATION", "1"}}, {}});
  EXPECT_EQ(unknown.status, 0);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean TOTO_DISABLE_COMPILE?"));
}

// Robustness 34.
TEST_F(SettingsCommand, FoldersThatArePlainlyUnsafeAreToldOf) {
  const std::string folder = path("unsafe");
  std::filesystem::create_directory(folder);
  for (const auto& [mode, complaint] :
       {std::pair<mode_t, const char*>{0777, "anybody may write"}, {0555, "read-only"}}) {
    ::chmod(folder.c_str(), mode);
    const Result result = run({"config", "--plan-cache-dir", folder});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("warning: running without the plan cache " + folder));
    EXPECT_THAT(result.err, HasSubstr(complaint));
  }
  EXPECT_EQ(run({"config", "--plan-cache-dir", folder, "--plan-cache", "never"}).err, "");
}

TEST_F(SettingsCommand, CacheList) {
  const Result table = run({"cache", "list", "--plan-cache-dir", plans()});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, ContainsRegex("\naaaaaaaaaaaa +float32 +avx512_bf16 +cpu +0.1.0 "));
  EXPECT_THAT(table.out, ContainsRegex("damaged\n"));
  EXPECT_THAT(table.out, ContainsRegex("unfinished\n"));
  EXPECT_THAT(table.out, Not(HasSubstr("notes")));

  const Result result =
      run(Invocation{{"cache", "list", "--json"}, {}, {{"TOTO_PLAN_CACHE_DIR", plans()}}, {}});
  const json list = json::parse(result.out);
  EXPECT_EQ(list["folder"], path("plans"));
  ASSERT_EQ(list["files"].size(), 3U);
  const json& entry = list["files"][2];
  // The entry in the tests' data was written by version 0.1.0.
  EXPECT_EQ(entry["state"], std::string(TOTO_VERSION) == "0.1.0" ? "valid" : "other version");
  EXPECT_EQ(entry["isa"], "avx512_bf16");
  EXPECT_EQ(entry["kernels"], 2);
  EXPECT_EQ(entry["shapes"][1]["context"], 4096);
}

TEST_F(SettingsCommand, CacheClear) {
  const std::string folder = plans();
  const Result result = run({"cache", "clear", "--plan-cache-dir", folder, "--json"});
  EXPECT_EQ(result.status, 0) << result.err;
  const json removed = json::parse(result.out);
  EXPECT_EQ(removed["files"], 3);
  EXPECT_EQ(removed["bytes"], 269);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(left, std::vector<std::string>{"notes.txt"});
  EXPECT_THAT(run({"cache", "clear", "--plan-cache-dir", folder}).out,
              HasSubstr("removed 0 files"));
  EXPECT_THAT(run({"cache", "list", "--plan-cache-dir", folder}).out, HasSubstr("no plans in"));
}

TEST_F(SettingsCommand, CacheOfAFolderThatCannotBe) {
  const Result result = run({"cache", "list", "--plan-cache-dir", write("file", "")});
  EXPECT_EQ(result.status, 74);
  EXPECT_THAT(result.err, HasSubstr("[read_failed]"));
  expect_failure(run({"cache"}), 2, "usage");
}

}  // namespace
}  // namespace toto::test
