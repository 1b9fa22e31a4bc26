// SPDX-License-Identifier: Apache-2.0
// config.json of Toto 2.0: defaults, relations, refusals, and the released texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/sha256.h"
#include "models/registry.h"
#include "models/toto1/config.h"
#include "models/toto2/config.h"
#include "support/test_files.h"

namespace toto {
namespace {

using nlohmann::json;
using test::error_of;
using testing::HasSubstr;

const json kLeast = {{"patch_size", 8},
                     {"d_model", 48},
                     {"num_heads", 4},
                     {"num_layers", 6},
                     {"layer_group_size", 3},
                     {"num_variate_layers_per_group", 1},
                     {"variate_layer_first", false},
                     {"residual_attn_ratio", 2.0}};

Toto2Config parse(const json& object, bool strict = true) {
  std::vector<std::string> warnings;
  return parse_toto2_config(object.dump(), "config.json", strict, warnings);
}

json with(const std::string& key, const json& value) {
  json object = kLeast;
  object[key] = value;
  return object;
}

void expect_refusal(const json& object, const std::string& code, const std::string& named) {
  const Error error = error_of([&] { parse(object); });
  EXPECT_EQ(error.code(), code) << error.what();
  EXPECT_EQ(error.status(), ExitStatus::bad_config);
  EXPECT_EQ(error.where(), "config.json");
  EXPECT_THAT(error.message(), HasSubstr(named));
}

TEST(Toto2Config, DefaultsOfAbsentKeys) {
  const Toto2Config c = parse(kLeast);
  EXPECT_EQ(c.d_ff, 128);  // 8 * 48 / 3
  EXPECT_EQ(c.qk_dim, 12);
  EXPECT_EQ(c.v_dim, 12);
  EXPECT_EQ(c.num_groups, 4);
  EXPECT_EQ(c.norm_eps, 5e-5);
  EXPECT_FALSE(c.attn_bias || c.mlp_bias || c.norm_include_weight || c.qk_norm_include_weight ||
               c.per_dim_scale || c.use_xpos);
  EXPECT_TRUE(c.qk_norm);
  EXPECT_EQ(c.residual_mult, 1.0);
}

TEST(Toto2Config, CanDenyCovariates) {
  EXPECT_TRUE(parse(kLeast).trained_with_covariates);
  const Toto2Config without = parse(with("trained_with_covariates", false));
  EXPECT_FALSE(without.trained_with_covariates);
  EXPECT_EQ(parse(json::parse(to_json(without))), without);
  EXPECT_FALSE(json::parse(to_json(parse(kLeast))).contains("trained_with_covariates"));
  expect_refusal(with("trained_with_covariates", "no"), "invalid_value", "true or false");
}

TEST(Toto2Config, NullMeansAbsent) {
  json object = kLeast;
  for (const char* key : {"d_ff", "qk_dim", "v_dim", "num_groups", "qk_norm_include_weight"}) {
    object[key] = nullptr;
  }
  EXPECT_EQ(parse(object), parse(kLeast));
  EXPECT_EQ(parse(with("num_groups", 0)), parse(kLeast));
}

TEST(Toto2Config, DefaultsThatFollowOtherKeys) {
  EXPECT_EQ(parse(with("qk_dim", 8)).v_dim, 8);
  EXPECT_TRUE(parse(with("norm_include_weight", true)).qk_norm_include_weight);
  json own = with("norm_include_weight", true);
  own["qk_norm_include_weight"] = false;
  EXPECT_FALSE(parse(own).qk_norm_include_weight);
  json wide = kLeast;  // trunc(8 * 256 / 3) = 682, rounded up to 8
  wide["d_model"] = 256;
  EXPECT_EQ(parse(wide).d_ff, 688);
}

TEST(Toto2Config, HeadsPerGroupIsIgnored) {
  EXPECT_EQ(parse(with("heads_per_group", 77)), parse(kLeast));
  EXPECT_EQ(parse(with("num_groups", 2)).heads_per_group(), 2);
}

TEST(Toto2Config, LayersOverVariates) {
  const Toto2Config last = parse(kLeast);
  json object = with("num_variate_layers_per_group", 2);
  object["variate_layer_first"] = true;
  const Toto2Config first = parse(object);
  const bool of_last[] = {false, false, true, false, false, true};
  const bool of_first[] = {true, true, false, true, true, false};
  for (std::int32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(last.is_variate_layer(i), of_last[i]);
    EXPECT_EQ(first.is_variate_layer(i), of_first[i]);
  }
}

TEST(Toto2Config, MissingKeysAreNamed) {
  for (const auto& [key, value] : kLeast.items()) {
    json object = kLeast;
    object.erase(key);
    expect_refusal(object, "missing_key", key);
  }
}

TEST(Toto2Config, ValuesThatDoNotFit) {
  expect_refusal(with("layer_group_size", 4), "invalid_value", "layer_group_size");
  expect_refusal(with("num_heads", 5), "invalid_value", "num_heads");
  expect_refusal(with("num_heads", 0), "invalid_value", "num_heads");
  expect_refusal(with("num_groups", 3), "invalid_value", "num_groups");
  expect_refusal(with("num_groups", -1), "invalid_value", "num_groups");
  expect_refusal(with("qk_dim", 6), "invalid_value", "multiple of 4");
  expect_refusal(with("qk_dim", 7), "invalid_value", "multiple of 4");
  expect_refusal(with("num_heads", 8), "invalid_value", "multiple of 4");  // 48 / 8 = 6
  expect_refusal(with("num_variate_layers_per_group", 4), "invalid_value", "layer_group_size");
  expect_refusal(with("num_variate_layers_per_group", -1), "invalid_value", "per_group");
  expect_refusal(with("norm_eps", -1e-3), "invalid_value", "norm_eps");
  expect_refusal(with("residual_attn_ratio", nullptr), "invalid_value", "residual_attn_ratio");
  expect_refusal(with("attn_bias", 1), "invalid_value", "attn_bias");
  expect_refusal(with("d_model", 48.5), "invalid_value", "d_model");
}

TEST(Toto2Config, WhatIsNotSupported) {
  expect_refusal(with("dropout_p", 0.1), "unsupported_config", "dropout_p");
  expect_refusal(with("num_output_patches", 2), "unsupported_config", "num_output_patches");
  EXPECT_EQ(parse(with("num_output_patches", 1)), parse(kLeast));
}

TEST(Toto2Config, SizesBeyondAnyCheckpoint) {
  expect_refusal(with("d_model", 2147483647), "config_tensor_mismatch", "d_model");
  json object = kLeast;
  object["num_heads"] = 48;
  object["qk_dim"] = 16384;
  expect_refusal(object, "config_tensor_mismatch", "qk_dim");
}

TEST(Toto2Config, UnknownKeys) {
  std::vector<std::string> warnings;
  (void)parse_toto2_config(with("colour", 1).dump(), "config.json", false, warnings);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("Toto 2.0"));
  expect_refusal(with("colour", 1), "unknown_key", "colour");
}

TEST(Toto2Config, PublishedTextsComeBack) {
  const json presets = json::parse(test::read_file(test::golden("toto2-presets.json")));
  const std::pair<const char*, const char*> names[] = {{"4m", "toto-2.0-4m"},
                                                       {"22m", "toto-2.0-22m"},
                                                       {"313m", "toto-2.0-313m"},
                                                       {"1B", "toto-2.0-1b"},
                                                       {"2.5B", "toto-2.0-2.5b"}};
  for (const auto& [key, name] : names) {
    const std::string text = preset_config(name);
    Sha256 hash;
    hash.update(text);
    EXPECT_EQ(hash.hex(), presets[key]["config_sha256"].get<std::string>()) << name;
    std::vector<std::string> warnings;
    EXPECT_EQ(parse_toto2_config(text, name, true, warnings), *find_toto2_preset(name));
    EXPECT_TRUE(warnings.empty());
  }
  EXPECT_EQ(toto2_presets().size(), std::size(names));
}

TEST(ModelConfig, TheFamilyIsTakenFromTheKeys) {
  std::vector<std::string> warnings;
  const auto family = [&](const std::string& text) {
    return parse_model_config(text, "config.json", true, warnings)->family();
  };
  EXPECT_EQ(family(kLeast.dump()), "toto-2.0");
  EXPECT_EQ(family(to_json(toto_open_base_1_0())), "toto-1.0");
  EXPECT_THAT(error_of([&] { family("{}"); }).code(), "missing_key");
}

}  // namespace
}  // namespace toto
