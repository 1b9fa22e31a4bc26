// SPDX-License-Identifier: Apache-2.0
// generation_config.json: what a model is forecast with where nothing is said.
#include "models/checkpoint/model_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "models/checkpoint/checkpoint.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::error_of;
using testing::HasSubstr;

ModelDefaults parse(std::string_view text) { return parse_model_defaults(text, "the file"); }

TEST(ModelDefaults, WhatIsNotNamedIsAsInTheOfficialCode) {
  const ModelDefaults official = {Paths::independent, Tails::clamp};
  EXPECT_EQ(ModelDefaults{}, official);
  EXPECT_EQ(parse("{}"), official);
  EXPECT_EQ(parse(R"({"transformers_version": "5.0", "max_length": 20})"), official);
  EXPECT_EQ(parse(R"({"tails": "exponential"})"),
            (ModelDefaults{Paths::independent, Tails::exponential}));
  EXPECT_EQ(parse(R"({"paths": "coherent", "tails": "normal"})"),
            (ModelDefaults{Paths::coherent, Tails::normal}));
  EXPECT_EQ(parse(R"({"paths": "independent", "tails": "clamp"})"), official);
}

TEST(ModelDefaults, Refusals) {
  const auto expect = [](const std::string& text, const std::string& code,
                         const std::string& named) {
    const Error error = error_of([&] { parse(text); });
    EXPECT_EQ(error.status(), ExitStatus::bad_config);
    EXPECT_EQ(error.code(), code) << text;
    EXPECT_EQ(error.where(), "the file");
    EXPECT_THAT(error.message(), HasSubstr(named)) << text;
  };
  expect(R"({"paths": "joint"})", "invalid_value",
         "\"paths\" must be one of independent, coherent, not \"joint\"");
  expect(R"({"tails": "auto"})", "invalid_value", "one of clamp, exponential, normal");
  expect(R"({"tails": null})", "invalid_value", "null");
  expect(R"({"tails": 3})", "invalid_value", "not 3");
  expect("[]", "invalid_json", "expected an object");
  expect("{", "invalid_json", "");
  expect(R"({"tails": "clamp", "tails": "normal"})", "duplicate_key", "tails");
}

TEST(ModelDefaults, AreOfTheFolder) {
  const test::TempFolder folder;
  EXPECT_EQ(read_model_defaults(folder.path()), ModelDefaults{});
  folder.write("generation_config.json", R"({"paths": "coherent"})");
  EXPECT_EQ(read_model_defaults(folder.path()).paths, Paths::coherent);
  folder.write("generation_config.json", R"({"paths": 1})");
  const Error error = error_of([&] { (void)read_model_defaults(folder.path()); });
  EXPECT_EQ(error.code(), "invalid_value");
  EXPECT_THAT(error.where(), HasSubstr("generation_config.json"));
  const test::TempFolder other;
  std::filesystem::create_symlink("nowhere", other.path("generation_config.json"));
  EXPECT_EQ(error_of([&] { (void)read_model_defaults(other.path()); }).code(), "file_not_found");
  folder.write("generation_config.json", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(error_of([&] { (void)read_model_defaults(folder.path()); }).code(), "file_too_large");
}

TEST(ModelDefaults, OfModels) {
  const auto of = [](const char* model) {
    return inspect_model({.model = test::source_path(model)}).defaults;
  };
  EXPECT_EQ(of("models/toto-nano-2"), (ModelDefaults{Paths::coherent, Tails::normal}));
  EXPECT_EQ(of("models/toto-nano"), (ModelDefaults{Paths::coherent, Tails::clamp}));
  EXPECT_EQ(of("tests/data/golden/toto2-tiny-uni"), ModelDefaults{});
}

}  // namespace
}  // namespace toto
