// SPDX-License-Identifier: Apache-2.0
// The command line and the environment (robustness 31-36).
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

struct Case {
  std::string name;
  std::string code;
  std::vector<std::string> arguments;
  std::string names = {};
};

void PrintTo(const Case& one, std::ostream* to) { *to << one.name; }

class Usage : public Program, public testing::WithParamInterface<Case> {
 protected:
  std::vector<std::string> forecast(std::vector<std::string> more) {
    write("in.csv", two_columns());
    std::vector<std::string> arguments = {"forecast", "in.csv", "--model", tiny_model()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_P(Usage, IsRefusedWithItsCode) {
  const Result result = run(forecast(GetParam().arguments));
  expect_failure(result, 2, GetParam().code);
  EXPECT_THAT(result.err, testing::HasSubstr(GetParam().names));
  EXPECT_EQ(result.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, Usage,
    testing::Values(
        Case{"UnknownFlag", "unknown_flag", {"--horizn", "3"}, "--horizon"},
        Case{"UnknownShortFlag", "unknown_flag", {"-z"}},
        Case{"NoThreads", "invalid_threads", {"--threads", "0"}},
        Case{"NoHorizon", "invalid_horizon", {"--horizon", "0"}, "1 to 100000"},
        Case{"NegativeHorizon", "invalid_horizon", {"--horizon", "-1"}},
        Case{"HugeHorizon", "invalid_horizon", {"--horizon", "1e9"}},
        Case{"HorizonAboveTheLimit", "invalid_horizon", {"--horizon", "100001"}},
        Case{"HorizonBeyond64Bits", "invalid_horizon", {"--horizon", "18446744073709551617"}},
        Case{"HexadecimalHorizon", "invalid_horizon", {"--horizon", "0x10"}},
        Case{"FractionalHorizon", "invalid_horizon", {"--horizon", "2.5"}},
        Case{"EmptyHorizon", "invalid_horizon", {"--horizon", ""}},
        Case{"HorizonWithoutValue", "usage", {"--horizon"}},
        Case{"HorizonTwice", "usage", {"--horizon", "3", "--horizon", "4"}},
        Case{"NoSamples", "invalid_samples", {"--samples", "0"}},
        Case{"NoContext", "invalid_context", {"--context", "0"}},
        Case{"SeedBeyond64Bits", "invalid_seed", {"--seed", "18446744073709551616"}},
        Case{"QuantileZero", "invalid_quantile", {"--quantiles", "0"}},
        Case{"QuantileOne", "invalid_quantile", {"--quantiles", "0.5,1"}},
        Case{"QuantileWord", "invalid_quantile", {"--quantiles", "x"}},
        Case{"QuantileNan", "invalid_quantile", {"--quantiles", "nan"}},
        Case{"QuantileEmpty", "invalid_quantile", {"--quantiles", "0.1,,0.9"}},
        Case{"UnknownDevice", "unknown_device", {"--device", "tpu"}, "cuda"},
        Case{"UnknownBackend", "unknown_backend", {"--backend", "magic"}, "reference"},
        Case{"UnknownType", "unknown_dtype", {"--precision", "float8"}, "bfloat16"},
        Case{"Int8OfTheReference",
             "unsupported_precision",
             {"--backend", "reference", "--dtype", "int8"},
             "int8"},
        Case{"UnknownMode", "unknown_mode", {"--mode", "fast"}, "reduce-overhead"},
        Case{"UnknownMissing", "invalid_choice", {"--missing", "guess"}, "ffill, linear"},
        Case{"UnknownAlign", "invalid_choice", {"--align", "left"}, "pad, trim"},
        Case{"UnknownQuantilesFrom", "invalid_choice", {"--quantiles-from", "air"}, "samples"},
        Case{"UnknownTails",
             "invalid_choice",
             {"--tails", "fat"},
             "auto, clamp, exponential, normal"},
        Case{"UnknownPaths", "invalid_choice", {"--paths", "joint"}, "auto, independent, coherent"},
        Case{"UnknownLayout", "invalid_choice", {"--layout", "square"}, "wide, long, bars"},
        Case{"MeanAndSamples", "usage", {"--mean", "--samples", "3"}},
        Case{"OutputSuffix", "unknown_suffix", {"--output", "out.xlsx"}, ".json"},
        Case{"PlotSuffix", "unknown_suffix", {"--plot", "out.png"}, ".svg"},
        Case{"TwoResultsOnStdout", "conflicting_flags", {"--output", "-", "--json"}},
        Case{"StdinTwice", "conflicting_flags", {"-", "-"}}),
    [](const auto& it) { return it.param.name; });

TEST_F(Usage, NoCommand) { expect_failure(run(Invocation{}), 2, "usage"); }

TEST_F(Usage, BenchRefusesNumbersOutOfRange) {
  for (const char* wrong : {"0", "100001", "-1", "many"}) {
    expect_failure(run({"bench", "a", "--runs", wrong}), 2, "invalid_runs");
  }
  for (const char* wrong : {"-1", "nan", "inf", "soon"}) {
    expect_failure(run({"bench", "a", "--seconds", wrong}), 2, "invalid_seconds");
  }
}

// Words behind a list are workloads, not more of the list.
TEST_F(Usage, BenchListsTakeOneWord) {
  expect_failure(run({"bench", "--mode", "eager", "--dtype", "float32", "no-workload"}), 2,
                 "invalid_workload");
}

TEST_F(Usage, UnknownCommand) {
  const Result result = run({"forcast"});
  expect_failure(result, 2, "unknown_command");
  EXPECT_THAT(result.err, testing::HasSubstr("did you mean forecast?"));
}

TEST_F(Usage, Version) {
  const Result result = run({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "toto " TOTO_VERSION "\n");
}

TEST_F(Usage, EveryCommandHasHelpWithExamples) {
  EXPECT_THAT(run({"--help"}).out, testing::HasSubstr("forecast"));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"forecast"},
                                             {"model", "info"},
                                             {"model", "synth"},
                                             {"config"},
                                             {"bench"},
                                             {"cache", "list"},
                                             {"cache", "clear"},
                                             {"backtest"},
                                             {"tune"},
                                             {"verify"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    const Result result = run(arguments);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, testing::HasSubstr("Examples:\n  toto " + command.front()));
    EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("\n:")));  // a group without a name
    EXPECT_EQ(result.err, "");
  }
}

TEST_F(Usage, UnknownVariableNamesTheClosestKnownOne) {
  Invocation invocation{forecast({"--output", "-", "--clamp", "0"}), "", {{"TOTO_SEEED", "7"}}, ""};
  const Result result = run(invocation);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("TOTO_SEEED"));
  EXPECT_THAT(result.err, testing::HasSubstr("TOTO_SEED?"));
  invocation.environment.clear();
  EXPECT_EQ(run(invocation).err, "");
}

TEST_F(Usage, VariablesOfTheServerConcernNoOtherCommand) {
  const Result result = run({{"config"}, "", {{"TOTO_SERVE_PORT", "abc"}}, ""});
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST_F(Usage, TwinsInTheEnvironment) {
  const std::vector<std::string> sampled = {"--horizon", "12", "--output", "-", "--samples", "16"};
  std::vector<std::string> with_flag = sampled;
  with_flag.insert(with_flag.end(), {"--seed", "9"});
  const std::string expected = run(forecast(with_flag)).out;
  ASSERT_NE(expected, "");
  EXPECT_NE(run(forecast(sampled)).out, expected);  // seed 0
  EXPECT_EQ(run({forecast(sampled), "", {{"TOTO_SEED", "9"}}, ""}).out, expected);
  EXPECT_EQ(run({forecast(with_flag), "", {{"TOTO_SEED", "5"}}, ""}).out, expected);
  expect_failure(run({forecast(sampled), "", {{"TOTO_SEED", "x"}}, ""}), 78, "invalid_seed");

  write("in.csv", two_columns());
  const Result model =
      run({{"model", "info", "--json"}, "", {{"TOTO_MODEL_ID", tiny_model()}}, ""});
  EXPECT_EQ(nlohmann::json::parse(model.out)["name"], tiny_model());
}

TEST_F(Usage, PlanCacheThatIsNotSafeIsAWarning) {
  using std::filesystem::perms;
  const std::string expected = run(forecast({"--output", "-"})).out;
  const std::filesystem::path cache = folder_ / "plans";
  for (const perms permissions : {perms::all, perms::owner_read | perms::owner_exec}) {
    std::filesystem::create_directory(cache);
    std::filesystem::permissions(cache, permissions);
    const Result result =
        run({forecast({"--output", "-"}), "", {{"TOTO_PLAN_CACHE_DIR", cache.string()}}, ""});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, expected);
    EXPECT_THAT(result.err, testing::AllOf(testing::StartsWith("toto: warning: "),
                                           testing::HasSubstr(cache.string())));
    std::filesystem::permissions(cache, perms::owner_all);
    EXPECT_TRUE(std::filesystem::is_empty(cache));
    std::filesystem::remove(cache);
  }
}

TEST_F(Usage, PlanCacheIsListedAndCleared) {
  const auto with_cache = [&](std::vector<std::string> arguments) {
    return run({std::move(arguments), "", {{"TOTO_PLAN_CACHE_DIR", path("plans")}}, ""});
  };
  ASSERT_EQ(with_cache(forecast({"--output", "-"})).status, 0);
  const auto listed = nlohmann::json::parse(with_cache({"cache", "list", "--json"}).out);
  EXPECT_EQ(listed["files"].size(), 1U);
  EXPECT_EQ(with_cache({"cache", "clear"}).status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(path("plans")));
}

TEST_F(Usage, ConfigSaysWhereEachValueCameFrom) {
  const Result result = run({{"config", "--json", "--seed", "4"},
                             "",
                             {{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_NUM_THREADS", "3"}},
                             ""});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto config = nlohmann::json::parse(result.out);
  EXPECT_EQ(config["mode"]["value"], "eager");
  EXPECT_EQ(config["mode"]["from"], "environment TOTO_DISABLE_COMPILE");
  EXPECT_EQ(config["threads"]["value"], "3");
  EXPECT_EQ(config["seed"]["from"], "flag --seed");
  EXPECT_EQ(config["precision"]["from"], "built-in");
  EXPECT_THAT(run({"config"}).out, testing::HasSubstr("reduce-overhead"));
}

}  // namespace
}  // namespace toto::test
