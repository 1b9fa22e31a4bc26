// SPDX-License-Identifier: Apache-2.0
// toto model info and synth, toto verify.
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;

class ModelCommand : public Program {};

TEST_F(ModelCommand, InfoInWords) {
  const Result result = run({"model", "info", tiny_model()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              testing::AllOf(testing::HasSubstr("toto-1.0"), testing::HasSubstr("4 layers"),
                             testing::HasSubstr("width 32"), testing::HasSubstr("8 steps"),
                             testing::HasSubstr("3 components")));
}

TEST_F(ModelCommand, InfoAsJson) {
  const Result result = run({"model", "info", tiny_model(), "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json info = json::parse(result.out);
  EXPECT_EQ(info["patch_size"], 8);
  EXPECT_EQ(info["num_layers"], 4);
  EXPECT_EQ(info["synthetic"], false);
  EXPECT_EQ(info["memory_bytes"], 4 * info["parameters"].get<std::uint64_t>());
  ASSERT_EQ(info["sha256"].size(), 1U);
  EXPECT_EQ(info["sha256"].begin().value().get<std::string>().size(), 64U);
}

TEST_F(ModelCommand, InfoSaysWhatTheModelNames) {
  EXPECT_THAT(run({"model", "info", tiny_model()}).out,
              testing::HasSubstr("defaults      --paths independent\n"));
  ASSERT_EQ(run({"model", "synth", "--preset", "toto-2.0-4m", "--out", "own"}).status, 0);
  EXPECT_THAT(run({"model", "info", "own"}).out,
              testing::HasSubstr("defaults      --paths independent --tails clamp\n"));
  write("own/generation_config.json", R"({"paths": "coherent", "tails": "normal"})");
  EXPECT_THAT(run({"model", "info", "own"}).out,
              testing::HasSubstr("defaults      --paths coherent --tails normal\n"));
  const json info = json::parse(run({"model", "info", "own", "--json"}).out);
  EXPECT_EQ(info["defaults"], json::parse(R"({"paths": "coherent", "tails": "normal"})"));
  write("own/generation_config.json", R"({"tails": "fat"})");
  const Result refused = run({"model", "info", "own"});
  expect_failure(refused, 78, "invalid_value");
  EXPECT_THAT(refused.err, testing::HasSubstr("own/generation_config.json"));
}

TEST_F(ModelCommand, SynthWritesAReadableLabelledCheckpoint) {
  const std::string config = tiny_model() + "/config.json";
  for (const char* folder : {"a", "b"}) {
    ASSERT_EQ(run({"model", "synth", "--config", config, "--seed", "5", "--out", folder}).status,
              0);
  }
  EXPECT_EQ(read_file(path("a/model.safetensors")), read_file(path("b/model.safetensors")));
  ASSERT_EQ(run({"model", "synth", "--config", config, "--seed", "6", "--out", "b"}).status, 0);
  EXPECT_NE(read_file(path("a/model.safetensors")), read_file(path("b/model.safetensors")));
  const Result info = run({"model", "info", "a", "--json"});
  ASSERT_EQ(info.status, 0) << info.err;
  EXPECT_EQ(json::parse(info.out)["synthetic"], true);
}

TEST_F(ModelCommand, SynthRefusals) {
  expect_failure(run({"model", "synth", "--out", "x"}), 2, "usage");
  expect_failure(run({"model", "synth", "--preset", "huge", "--out", "x"}), 2, "unknown_preset");
  expect_failure(run({"model", "synth", "--config", "nowhere.json", "--out", "x"}), 66,
                 "file_not_found");
  write("bad.json", "{}");
  expect_failure(run({"model", "synth", "--config", "bad.json", "--out", "x"}), 78, "missing_key");
  EXPECT_EQ(listing(), std::vector<std::string>{"bad.json"});
}

class VerifyCommand : public Program {};

TEST_F(VerifyCommand, GoldenCaseHolds) {
  const Result words = run({"verify", "--golden", tiny_model()});
  EXPECT_EQ(words.status, 0) << words.err << words.out;
  EXPECT_THAT(words.out, testing::HasSubstr("mean.cached"));
  EXPECT_THAT(words.out, testing::HasSubstr("0 beyond their bound"));

  const Result result = run({"verify", "--golden", tiny_model(), "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["holds"], true);
  EXPECT_EQ(report["cases"].size(), 1U);
  EXPECT_GT(report["cases"][0]["checks"].size(), 10U);
}

TEST_F(VerifyCommand, AnotherModelsWeightsExceedTheBounds) {
  for (const char* name : {"config.json", "inputs.safetensors", "expected.safetensors"}) {
    write(std::string("case/") + name, read_file(tiny_model() + "/" + name));
  }
  ASSERT_EQ(run({"model", "synth", "--config", "case/config.json", "--seed", "2", "--out", "other",
                 "--quiet"})
                .status,
            0);
  write("case/model.safetensors", read_file(path("other/model.safetensors")));
  const Result result = run({"verify", "--golden", "case"});
  EXPECT_EQ(result.status, 3) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("EXCEEDED"));
  EXPECT_EQ(json::parse(run({"verify", "--golden", "case", "--json"}).out)["holds"], false);
}

TEST_F(VerifyCommand, MissingFolder) {
  EXPECT_EQ(run({"verify", "--golden", "nowhere"}).status, 66);
  expect_failure(run({"verify", "--golden"}), 2, "usage");
}

}  // namespace
}  // namespace toto::test
