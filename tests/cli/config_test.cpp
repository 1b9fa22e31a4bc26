// SPDX-License-Identifier: Apache-2.0
// Malformed config.json, indices and folders (robustness 16-21): each gives its code.
#include <functional>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  std::string name;
  int status;
  std::string code;
  std::function<void(Json&)> change;
  std::string names;  // what the message must name
};

void PrintTo(const Case& one, std::ostream* to) { *to << one.name; }

class Config : public Program, public testing::WithParamInterface<Case> {
 protected:
  void write_model(const std::string& config) {
    write("model/config.json", config);
    write("model/model.safetensors", read_file(tiny_model() + "/model.safetensors"));
  }
  Result forecast(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"forecast",  write("in.csv", two_columns()),
                                          "--model",   path("model"),
                                          "--horizon", "4",
                                          "--output",  "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  static Json good() { return Json::parse(read_file(tiny_model() + "/config.json")); }
};

TEST_P(Config, IsRefusedWithItsCode) {
  Json config = good();
  GetParam().change(config);
  write_model(config.dump());
  const Result result = forecast();
  expect_failure(result, GetParam().status, GetParam().code);
  EXPECT_THAT(result.err, testing::HasSubstr(GetParam().names));
}

INSTANTIATE_TEST_SUITE_P(
    Malformed, Config,
    testing::Values(
        Case{"NoHeads", 78, "invalid_value", [](Json& c) { c["num_heads"] = 0; }, "num_heads"},
        Case{"NoPatch", 78, "invalid_value", [](Json& c) { c["patch_size"] = 0; }, "patch_size"},
        Case{"HugeWidth", 78, "config_tensor_mismatch",
             [](Json& c) { c["embed_dim"] = 2147483646; }, ""},
        Case{"MissingKey", 78, "missing_key", [](Json& c) { c.erase("num_layers"); }, "num_layers"},
        Case{"WrongType", 78, "invalid_value", [](Json& c) { c["embed_dim"] = "wide"; },
             "embed_dim"},
        Case{"FractionalNumber", 78, "invalid_value", [](Json& c) { c["num_layers"] = 2.5; },
             "num_layers"}),
    [](const auto& it) { return it.param.name; });

TEST_F(Config, NotJson) {
  write_model("{\"patch_size\": ");
  expect_failure(forecast(), 78, "invalid_json");
}

TEST_F(Config, DuplicateKey) {
  std::string text = good().dump();
  write_model(text.insert(1, "\"num_heads\":2,"));
  expect_failure(forecast(), 78, "duplicate_key");
}

TEST_F(Config, UnknownKeyIsAWarningAndAnErrorWhenStrict) {
  Json config = good();
  config["colour"] = "blue";
  write_model(config.dump());
  const Result tolerant = forecast();
  EXPECT_EQ(tolerant.status, 0) << tolerant.err;
  EXPECT_THAT(tolerant.err, testing::HasSubstr("colour"));
  const Result strict = forecast({"--strict"});
  expect_failure(strict, 78, "unknown_key");
  EXPECT_THAT(strict.err, testing::HasSubstr("colour"));
}

class Shards : public Config {
 protected:
  Result with_shard(const std::string& shard) {
    write("model/config.json", read_file(tiny_model() + "/config.json"));
    write("model/model.safetensors.index.json",
          Json{{"metadata", {{"total_size", 0}}},
               {"weight_map", {{"model.patch_embed.projection.weight", shard}}}}
              .dump());
    return forecast();
  }
};

TEST_F(Shards, OutsideTheFolder) {
  write("x", "");
  expect_failure(with_shard("../../x"), 78, "unsafe_path");
}

TEST_F(Shards, AbsolutePath) { expect_failure(with_shard("/etc/hostname"), 78, "unsafe_path"); }

TEST_F(Shards, Absent) {
  const Result result = with_shard("model-00001-of-00002.safetensors");
  expect_failure(result, 66, "shard_not_found");
  EXPECT_THAT(result.err, testing::HasSubstr("model-00001-of-00002.safetensors"));
}

TEST_F(Config, ModelIsNowhere) {
  write("in.csv", two_columns());
  expect_failure(run({"forecast", "in.csv", "--model", "nowhere"}), 66, "model_not_found");
}

TEST_F(Config, HubModelNotCachedSaysHowToFetchIt) {
  write("in.csv", two_columns());
  const Result result = run({"forecast", "in.csv", "--model", "Datadog/Toto-Open-Base-1.0"});
  expect_failure(result, 66, "model_not_found");
  EXPECT_THAT(result.err, testing::HasSubstr("download Datadog/Toto-Open-Base-1.0"));
}

}  // namespace
}  // namespace toto::test
