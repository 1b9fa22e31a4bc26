// SPDX-License-Identifier: Apache-2.0
// config.json: what is read, what is refused and how it is told (robustness 16 to 19).
#include "models/toto1/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/test_files.h"

namespace toto {
namespace {

using nlohmann::json;
using test::error_of;
using testing::HasSubstr;

Toto1Config parse(const std::string& text, bool strict = true) {
  std::vector<std::string> warnings;
  return parse_toto1_config(text, "config.json", strict, warnings);
}

std::string open_base() { return to_json(toto_open_base_1_0()); }

/// The open-base configuration with one key changed.
std::string with(const std::string& key, const json& value) {
  json object = json::parse(open_base());
  object[key] = value;
  return object.dump();
}

std::string without(const std::string& key) {
  json object = json::parse(open_base());
  object.erase(key);
  return object.dump();
}

void expect_refusal(const std::string& text, const std::string& code, const std::string& named) {
  const Error error = error_of([&] { parse(text); });
  EXPECT_EQ(error.code(), code) << error.what();
  EXPECT_EQ(error.status(), ExitStatus::bad_config);
  EXPECT_EQ(error.where(), "config.json");
  EXPECT_THAT(error.message(), HasSubstr(named));
}

TEST(Config, GoldenConfigurations) {
  const Toto1Config a = parse(test::read_file(test::golden("toto1-tiny-a/config.json")));
  const Toto1Config expected = {.patch_size = 8,
                                .embed_dim = 32,
                                .num_layers = 4,
                                .num_heads = 2,
                                .mlp_hidden_dim = 48,
                                .spacewise_every_n_layers = 4,
                                .spacewise_first = false,
                                .scaler = ScalerKind::causal_patch,
                                .head = HeadKind::mixture,
                                .components = 3,
                                .stabilize_with_global = true,
                                .scale_factor_exponent = 10.0};
  EXPECT_EQ(a, expected);
  const Toto1Config b = parse(test::read_file(test::golden("toto1-tiny-b/config.json")));
  EXPECT_TRUE(b.spacewise_first);
  EXPECT_FALSE(b.stabilize_with_global);
  const Toto1Config c = parse(test::read_file(test::golden("toto1-tiny-c/config.json")));
  EXPECT_EQ(c.head, HeadKind::student_t);
  EXPECT_EQ(c.components, 1);
  EXPECT_EQ(c.spacewise_every_n_layers, -1);
  EXPECT_EQ(
      parse(test::read_file(test::golden("toto1-tiny-extreme/config.json"))).scale_factor_exponent,
      1.0);
  EXPECT_EQ(parse(test::read_file(test::golden("toto1-tiny-scaler-global/config.json"))).scaler,
            ScalerKind::global);
  EXPECT_EQ(parse(test::read_file(test::golden("toto1-tiny-scaler-step/config.json"))).scaler,
            ScalerKind::causal_step);
  EXPECT_EQ(parse(test::read_file(test::golden("toto1-base-512/config.json"))),
            toto_open_base_1_0());
}

// The published file's own text comes back, so that what `toto model synth` writes looks like it.
TEST(Config, ToJsonReproducesTheGoldenFiles) {
  for (const char* name : {"toto1-base-512", "toto1-tiny-a", "toto1-tiny-b", "toto1-tiny-c",
                           "toto1-tiny-extreme", "toto1-tiny-scaler-global"}) {
    const std::string text = test::read_file(test::golden(std::string(name) + "/config.json"));
    EXPECT_EQ(to_json(parse(text)), text) << name;
  }
}

TEST(Config, AbsentKeysHaveTheirDefaults) {
  json object = json::parse(open_base());
  for (const char* key : {"spacewise_first", "use_memory_efficient_attention",
                          "stabilize_with_global", "scale_factor_exponent"}) {
    object.erase(key);
  }
  const Toto1Config config = parse(object.dump());
  EXPECT_TRUE(config.spacewise_first);
  EXPECT_TRUE(config.stabilize_with_global);
  EXPECT_EQ(config.scale_factor_exponent, 10.0);
}

TEST(Config, ClassNamesInEverySpelling) {
  for (const char* text :
       {"<class 'model.scaler.StdMeanScaler'>", "<class 'toto.model.scaler.StdMeanScaler'>",
        "toto.model.scaler.StdMeanScaler", "StdMeanScaler"}) {
    EXPECT_EQ(parse(with("scaler_cls", text)).scaler, ScalerKind::global) << text;
  }
  for (const char* text : {"", "<class ''>", "<class '", "stdmeanscaler", "MyStdMeanScaler",
                           "StdMeanScaler'>", "<class 'StdMeanScaler>", "StdMeanScaler.other"}) {
    expect_refusal(with("scaler_cls", text), "unsupported_config", "CausalStdMeanScaler");
  }
  const std::string head = "<class 'toto.model.distribution.StudentTOutput'>";
  json object = json::parse(with("output_distribution_classes", {head}));
  object.erase("output_distribution_kwargs");
  EXPECT_EQ(parse(object.dump()).head, HeadKind::student_t);
  expect_refusal(with("output_distribution_classes", {"NormalOutput"}), "unsupported_config",
                 "MixtureOfStudentTsOutput");
}

TEST(Config, OnlyTheFirstDistributionCounts) {
  EXPECT_EQ(parse(with("output_distribution_classes", {"MixtureOfStudentTsOutput", "Other"})).head,
            HeadKind::mixture);
}

TEST(Config, MissingKeysAreNamed) {
  for (const char* key :
       {"patch_size", "stride", "embed_dim", "num_layers", "num_heads", "mlp_hidden_dim", "dropout",
        "spacewise_every_n_layers", "scaler_cls", "output_distribution_classes"}) {
    expect_refusal(without(key), "missing_key", std::string("\"") + key + "\"");
  }
  expect_refusal(without("output_distribution_kwargs"), "missing_key", "k_components");
  expect_refusal(with("output_distribution_kwargs", nullptr), "missing_key", "k_components");
  expect_refusal(with("output_distribution_kwargs", json::object()), "missing_key", "k_components");
}

TEST(Config, WrongTypesAreNamed) {
  for (const char* key : {"patch_size", "stride", "embed_dim", "num_layers", "num_heads",
                          "mlp_hidden_dim", "spacewise_every_n_layers"}) {
    for (const json& value : {json("64"), json(64.0), json(true), json(nullptr), json::array({64}),
                              json::object(), json(1e300), json(18446744073709551615U)}) {
      expect_refusal(with(key, value), "invalid_value", key);
    }
  }
  for (const char* key :
       {"spacewise_first", "use_memory_efficient_attention", "stabilize_with_global"}) {
    for (const json& value : {json("true"), json(1), json(nullptr)}) {
      expect_refusal(with(key, value), "invalid_value", key);
    }
  }
  for (const json& value : {json("0.1"), json(nullptr), json(-0.1), json(1.5)}) {
    expect_refusal(with("dropout", value), "invalid_value", "dropout");
  }
  for (const json& value : {json("10"), json(nullptr), json(301), json(-1e308)}) {
    expect_refusal(with("scale_factor_exponent", value), "invalid_value", "scale_factor_exponent");
  }
  for (const json& value : {json(1), json(nullptr), json::array()}) {
    expect_refusal(with("scaler_cls", value), "invalid_value", "scaler_cls");
  }
  for (const json& value : {json("MixtureOfStudentTsOutput"), json::array(), json::array({1}),
                            json::object(), json(nullptr)}) {
    expect_refusal(with("output_distribution_classes", value), "invalid_value",
                   "output_distribution_classes");
  }
  for (const json& value : {json(24), json::array({24}), json("24")}) {
    expect_refusal(with("output_distribution_kwargs", value), "invalid_value",
                   "output_distribution_kwargs");
  }
}

TEST(Config, ValuesOutOfRange) {
  for (const char* key : {"patch_size", "embed_dim", "num_layers", "num_heads", "mlp_hidden_dim",
                          "spacewise_every_n_layers"}) {
    for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-64}, INT64_MIN}) {
      expect_refusal(with(key, value), "invalid_value", key);
    }
  }
  for (const json& value : {json(0), json(-1), json(2.0), json("3")}) {
    expect_refusal(with("output_distribution_kwargs", {{"k_components", value}}), "invalid_value",
                   "k_components");
  }
}

// Case 17: a size that no file can have is told before anything multiplies it.
TEST(Config, SizesNoCheckpointHas) {
  for (const char* key : {"patch_size", "embed_dim", "num_layers", "num_heads", "mlp_hidden_dim"}) {
    for (const std::int64_t value : {std::int64_t{2147483647}, std::int64_t{1} << 32, INT64_MAX}) {
      expect_refusal(with(key, value), "config_tensor_mismatch", key);
    }
  }
  expect_refusal(with("output_distribution_kwargs", {{"k_components", 2147483647}}),
                 "config_tensor_mismatch", "k_components");
}

TEST(Config, NoHeadsIsRefusedBeforeAnyDivision) {
  expect_refusal(with("num_heads", 0), "invalid_value", "num_heads");
}

TEST(Config, HeadsDivideTheWidthIntoEvenParts) {
  expect_refusal(with("num_heads", 7), "invalid_value", "7 does not divide 768");
  expect_refusal(with("num_heads", 256), "invalid_value", "even");  // 768 / 256 = 3
  expect_refusal(with("num_heads", 768), "invalid_value", "even");
  EXPECT_EQ(parse(with("num_heads", 384)).head_dim(), 2);
}

TEST(Config, SpaceLayersDivideTheLayers) {
  for (const int every : {5, 7, 24, 2147483647}) {
    expect_refusal(with("spacewise_every_n_layers", every), "invalid_value",
                   "spacewise_every_n_layers");
  }
  expect_refusal(with("spacewise_every_n_layers", -2), "invalid_value", "-2");
  for (const int every : {-1, 1, 2, 3, 4, 6, 12}) {
    EXPECT_EQ(parse(with("spacewise_every_n_layers", every)).spacewise_every_n_layers, every);
  }
}

TEST(Config, StrideMustBeThePatch) {
  expect_refusal(with("stride", 32), "unsupported_config", "stride");
}

TEST(Config, UnknownKeysWarnOrFail) {
  json object = json::parse(open_base());
  object["colour\n"] = "blue";
  object["output_distribution_kwargs"]["flavour"] = 1;
  std::vector<std::string> warnings;
  EXPECT_EQ(parse_toto1_config(object.dump(), "config.json", false, warnings),
            toto_open_base_1_0());
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr(R"("colour\n")"));
  EXPECT_THAT(warnings[1], HasSubstr("output_distribution_kwargs.flavour"));
  expect_refusal(with("colour", "blue"), "unknown_key", "colour");
  expect_refusal(with("output_distribution_kwargs", {{"k_components", 24}, {"flavour", 1}}),
                 "unknown_key", "flavour");
}

TEST(Config, NotAnObject) {
  for (const char* text : {"[]", "7", "\"text\"", "null"}) {
    expect_refusal(text, "invalid_json", "object");
  }
  expect_refusal("", "invalid_json", "byte");
  expect_refusal(R"({"stride":1,"stride":1})", "duplicate_key", "stride");
  expect_refusal("{\"\xFF\":1}", "invalid_utf8", "byte 2");
}

TEST(Config, SpaceLayers) {
  Toto1Config config = toto_open_base_1_0();
  for (int i = 0; i < 12; ++i) EXPECT_EQ(config.is_space_layer(i), i == 11);
  config.spacewise_every_n_layers = 3;
  config.spacewise_first = true;
  for (int i = 0; i < 12; ++i) EXPECT_EQ(config.is_space_layer(i), i % 3 == 0);
  config.spacewise_every_n_layers = -1;
  for (int i = 0; i < 12; ++i) EXPECT_FALSE(config.is_space_layer(i));
}

}  // namespace
}  // namespace toto
