// SPDX-License-Identifier: Apache-2.0
// The table of weights: names in both spellings, shapes, labels, and the hash weights against the
// golden checkpoints and the specification's values.
#include "models/checkpoint/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/safetensors_writer.h"
#include "models/toto1/tensors.h"
#include "support/test_files.h"
#include "support/toto1_weights.h"

namespace toto {
namespace {

using test::error_of;
using test::golden;
using test::TempFolder;
using testing::HasSubstr;

Toto1Config golden_config(const std::string& name) {
  std::vector<std::string> warnings;
  return parse_toto1_config(test::read_file(golden(name + "/config.json")), name, true, warnings);
}

std::string golden_weights(const std::string& name) { return golden(name + "/model.safetensors"); }

std::vector<float> read(const WeightSource& source, const std::string& name) {
  std::vector<float> out(static_cast<std::size_t>(source.find(name)->elements()));
  source.read(name, out);
  return out;
}

std::vector<float> read(const WeightTable& table, const ExpectedTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  std::vector<float> out(static_cast<std::size_t>(count));
  table.read(tensor.name, out);
  return out;
}

TEST(ExpectedTensors, OpenBase) {
  const auto tensors = tensor_list(toto_open_base_1_0()).tensors;
  EXPECT_EQ(tensors.size(), 132U);
  std::int64_t parameters = 0;
  for (const ExpectedTensor& tensor : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    parameters += count;
  }
  EXPECT_EQ(parameters, 151'306'080);
}

// The order of the golden case's own list, which is the state order with unfused names.
TEST(ExpectedTensors, DefaultOrderIsThatOfTheGoldenCase) {
  const auto json = nlohmann::json::parse(test::read_file(golden("toto1-base-512/weights.json")));
  EXPECT_EQ(test::toto1_order(toto_open_base_1_0(), false),
            json["tensor_order"].get<std::vector<std::string>>());
  const auto with_labels = test::toto1_order(toto_open_base_1_0(), true);
  EXPECT_EQ(with_labels.size(), 134U);
  EXPECT_EQ(with_labels[132], "model.target_variate_label");
  EXPECT_EQ(with_labels[133], "model.exogenous_variate_label");
}

TEST(ExpectedTensors, ASingleStudentTHasNoMixtureWeights) {
  for (const ExpectedTensor& tensor : tensor_list(golden_config("toto1-tiny-c")).tensors) {
    EXPECT_EQ(tensor.name.find("mixture_weights"), std::string::npos);
  }
}

// Spec C5: weight seed 0, and three values of the first tensor.
TEST(Synthetic, ValuesOfTheSpecification) {
  const auto spec = nlohmann::json::parse(test::read_file(golden("spec_toto1.json")));
  Toto1Config config = golden_config("toto1-tiny-a");
  std::vector<std::string> order;
  for (const std::string name : spec["tensor_order"])
    order.push_back(std::string("model.").append(name));
  EXPECT_EQ(order, test::toto1_order(config, false));
  const auto source = test::toto1_weights(config, 0, order);
  const auto first = read(*source, "model.patch_embed.projection.weight");
  EXPECT_NEAR(first[0], -0.5220939, 5e-8);
  EXPECT_NEAR(first[1], 0.4204049, 5e-8);
  EXPECT_NEAR(first[2], -0.4706569, 5e-8);
}

struct GoldenSeed {
  const char* name;
  std::uint64_t seed;
  bool labels;
};

class GoldenCheckpoint : public testing::TestWithParam<GoldenSeed> {};

// The golden checkpoints were made from the same formula: every bit must agree, fused or unfused.
TEST_P(GoldenCheckpoint, IsReproducedBitForBit) {
  const auto& [name, seed, labels] = GetParam();
  const Toto1Config config = golden_config(name);
  const WeightTable stored(open_safetensors(golden_weights(name)), tensor_list(config));
  const WeightTable made(test::toto1_weights(config, seed, test::toto1_order(config, labels)),
                         tensor_list(config));
  EXPECT_EQ(stored.has_together(), labels);
  EXPECT_EQ(made.has_together(), labels);
  EXPECT_EQ(stored.parameters(), made.parameters());
  EXPECT_THAT(stored.unused(), testing::IsEmpty());
  EXPECT_FALSE(stored.source().synthetic());
  EXPECT_TRUE(made.source().synthetic());
  auto tensors = tensor_list(config).tensors;
  if (labels) {
    tensors.push_back({std::string(kTargetLabel), {}, {config.embed_dim}});
    tensors.push_back({std::string(kExogenousLabel), {}, {config.embed_dim}});
  }
  for (const ExpectedTensor& tensor : tensors) {
    EXPECT_EQ(read(stored, tensor), read(made, tensor)) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenCheckpoint,
                         testing::Values(GoldenSeed{"toto1-tiny-a", 1, false},
                                         GoldenSeed{"toto1-tiny-b", 2, false},
                                         GoldenSeed{"toto1-tiny-c", 3, false},
                                         GoldenSeed{"toto1-tiny-scaler-global", 4, false},
                                         GoldenSeed{"toto1-tiny-scaler-step", 5, false},
                                         GoldenSeed{"toto1-tiny-exogenous", 6, true},
                                         GoldenSeed{"toto1-tiny-extreme", 7, false}),
                         [](const auto& made) {
                           std::string name = made.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Synthetic, FusedAndUnfusedNamesGiveTheSameWeights) {
  const Toto1Config config = golden_config("toto1-tiny-a");
  std::vector<std::string> fused;
  for (const ExpectedTensor& tensor : tensor_list(config).tensors) fused.push_back(tensor.name);
  const WeightTable a(test::toto1_weights(config, 5, fused), tensor_list(config));
  const WeightTable b(test::toto1_weights(config, 5, test::toto1_order(config, false)),
                      tensor_list(config));
  for (const ExpectedTensor& tensor : tensor_list(config).tensors) {
    EXPECT_EQ(read(a, tensor), read(b, tensor)) << tensor.name;
  }
}

TEST(Synthetic, OrdersThatDoNotFitTheModel) {
  const Toto1Config config = golden_config("toto1-tiny-a");
  EXPECT_EQ(error_of([&] { test::toto1_weights(config, 0, {"model.nothing"}); }).code(),
            "unknown_tensor");
  EXPECT_EQ(error_of([&] {
              test::toto1_weights(config, 0, {"model.unembed.bias", "model.unembed.bias"});
            }).code(),
            "duplicate_key");
  std::vector<float> out(1);
  const auto source = test::toto1_weights(config, 0, {"model.unembed.bias"});
  EXPECT_EQ(error_of([&] { source->read("model.unembed.weight", out); }).code(), "missing_tensor");
  EXPECT_EQ(error_of([&] { source->read("model.unembed.bias", out); }).code(), "internal");
}

TEST(Synthetic, ContentHashCoversSeedConfigurationAndOrder) {
  Toto1Config config = golden_config("toto1-tiny-a");
  const auto hash = [&](std::uint64_t seed, bool labels) {
    return test::toto1_weights(config, seed, test::toto1_order(config, labels))->content_hash();
  };
  const std::string reference = hash(1, false);
  EXPECT_EQ(reference.size(), 64U);
  EXPECT_EQ(hash(1, false), reference);
  EXPECT_NE(hash(2, false), reference);
  EXPECT_NE(hash(1, true), reference);
  config.stabilize_with_global = false;
  EXPECT_NE(hash(1, false), reference);
}

/// The tiny-a weights without some tensors.
std::shared_ptr<const WeightSource> weights_without(std::initializer_list<std::string> names) {
  const Toto1Config config = golden_config("toto1-tiny-a");
  auto order = test::toto1_order(config, true);
  std::erase_if(order, [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  return test::toto1_weights(config, 1, order);
}

TEST(WeightTable, EveryMissingTensorIsListed) {
  const auto source =
      weights_without({"model.unembed.bias", "model.transformer.layers.2.mlp.0.weight",
                       "model.output_distribution.df.weight"});
  const Error error =
      error_of([&] { WeightTable table(source, tensor_list(golden_config("toto1-tiny-a"))); });
  EXPECT_EQ(error.code(), "missing_tensor");
  EXPECT_EQ(error.status(), ExitStatus::bad_data);
  EXPECT_THAT(error.message(), HasSubstr("3 of 54"));
  EXPECT_THAT(error.message(), HasSubstr("model.unembed.bias"));
  EXPECT_THAT(error.message(), HasSubstr("model.transformer.layers.2.mlp.0.w12.weight"));
  EXPECT_THAT(error.message(), HasSubstr("model.output_distribution.df.weight"));
}

TEST(WeightTable, OneLabelWithoutTheOther) {
  for (const std::string_view label : {kTargetLabel, kExogenousLabel}) {
    const auto source = weights_without({std::string(label)});
    const Error error =
        error_of([&] { WeightTable table(source, tensor_list(golden_config("toto1-tiny-a"))); });
    EXPECT_EQ(error.code(), "missing_tensor");
    EXPECT_THAT(error.message(), HasSubstr(std::string(label)));
  }
}

TEST(WeightTable, ShapesMustBeThoseOfTheConfiguration) {
  Toto1Config config = golden_config("toto1-tiny-a");
  const auto source = open_safetensors(golden_weights("toto1-tiny-a"));
  config.mlp_hidden_dim = 40;
  const Error error = error_of([&] { WeightTable table(source, tensor_list(config)); });
  EXPECT_EQ(error.code(), "config_tensor_mismatch");
  EXPECT_EQ(error.status(), ExitStatus::bad_data);
  EXPECT_THAT(error.message(),
              HasSubstr("mlp.0.w12.weight is [96, 32], the configuration asks for [80, 32]"));
  EXPECT_THAT(error.message(), HasSubstr("11 more"));
  for (const std::int32_t width : {16, 2147483646}) {
    config.embed_dim = width;
    EXPECT_EQ(error_of([&] { WeightTable table(source, tensor_list(config)); }).code(),
              "config_tensor_mismatch");
  }
}

TEST(WeightTable, MoreLayersThanTheFileHas) {
  Toto1Config config = golden_config("toto1-tiny-a");
  config.num_layers = 8;
  const auto source = open_safetensors(golden_weights("toto1-tiny-a"));
  EXPECT_EQ(error_of([&] { WeightTable table(source, tensor_list(config)); }).code(),
            "missing_tensor");
}

TEST(WeightTable, TensorsTheModelDoesNotUseAreListed) {
  Toto1Config config = golden_config("toto1-tiny-a");
  config.num_layers = 3;
  config.spacewise_every_n_layers = -1;
  const WeightTable table(open_safetensors(golden_weights("toto1-tiny-a")), tensor_list(config));
  EXPECT_EQ(table.unused().size(), 10U);
  EXPECT_THAT(table.unused().front(), HasSubstr("layers.3"));
}

TEST(WeightTable, UnknownNamesAreMissing) {
  const Toto1Config config = golden_config("toto1-tiny-b");
  const WeightTable table(open_safetensors(golden_weights("toto1-tiny-b")), tensor_list(config));
  std::vector<float> out(1);
  EXPECT_EQ(error_of([&] { table.read("model.nothing", out); }).code(), "missing_tensor");
}

/// A source of the tensors that tiny-a needs, with one stored as another type.
std::string retyped(const TempFolder& folder, const std::string& name, StoredType type,
                    const std::vector<SafetensorsWriter::Tensor>& more = {}) {
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const ExpectedTensor& tensor : tensor_list(golden_config("toto1-tiny-a")).tensors) {
    tensors.push_back({tensor.name, tensor.name == name ? type : StoredType::f32, tensor.shape});
  }
  tensors.insert(tensors.end(), more.begin(), more.end());
  SafetensorsWriter writer(folder.path("w"), tensors, {});
  const std::vector<std::byte> zeros(1 << 16);
  while (writer.written() < writer.file_bytes()) {
    writer.write(std::span(zeros).first(
        std::min<std::size_t>(zeros.size(), writer.file_bytes() - writer.written())));
  }
  writer.commit();
  return folder.path("w");
}

TEST(WeightTable, ANeededTensorOfAnotherTypeIsRefused) {
  const TempFolder folder;
  for (const StoredType type : {StoredType::i64, StoredType::f64, StoredType::f8_e4m3}) {
    const auto source = open_safetensors(retyped(folder, "model.unembed.bias", type));
    const Error error =
        error_of([&] { WeightTable table(source, tensor_list(golden_config("toto1-tiny-a"))); });
    EXPECT_EQ(error.code(), "invalid_dtype");
    EXPECT_THAT(error.message(), HasSubstr(std::string(name_of(type))));
    EXPECT_EQ(source->find("model.unembed.bias"), nullptr);
  }
}

TEST(WeightTable, HalvesAndBfloatsAreTaken) {
  const TempFolder folder;
  for (const auto& [stored, type] :
       {std::pair{StoredType::f16, DType::f16}, std::pair{StoredType::bf16, DType::bf16}}) {
    const auto source = open_safetensors(retyped(folder, "model.unembed.bias", stored));
    EXPECT_EQ(source->find("model.unembed.bias")->dtype, type);
    const WeightTable table(source, tensor_list(golden_config("toto1-tiny-a")));
    EXPECT_EQ(read(*source, "model.unembed.bias"), std::vector<float>(256, 0.0F));
  }
}

// Spec A2: constants that follow from the configuration, and tensors that are no weights.
TEST(WeightTable, DerivedConstantsAndIntegersAreIgnored) {
  const TempFolder folder;
  const auto source = open_safetensors(
      retyped(folder, {}, StoredType::f32,
              {{"model.transformer.rotary_emb.freqs", StoredType::f32, {8}},
               {"model.transformer.layers.0.attention.rotary_emb.freqs", StoredType::f32, {8}},
               {"model.transformer.rotary_emb.scale", StoredType::f32, {8}},
               {"model.transformer.rotary_emb.cached_freqs", StoredType::f32, {1, 2}},
               {"model.transformer.rotary_emb.cached_scales_k", StoredType::f32, {1, 2}},
               {"model.transformer.rotary_emb.dummy", StoredType::f32, {0}},
               {"model.steps_seen", StoredType::i64, {}}}));
  const WeightTable table(source, tensor_list(golden_config("toto1-tiny-a")));
  EXPECT_THAT(table.unused(), testing::IsEmpty());
  EXPECT_EQ(source->tensors().size(), 52U);
  EXPECT_EQ(table.parameters(), 180912U / 4);
}

TEST(Shards, ACheckpointInTwoFiles) {
  const TempFolder folder;
  const Toto1Config config = golden_config("toto1-tiny-b");
  const auto whole = open_safetensors(golden_weights("toto1-tiny-b"));
  std::vector<std::string> paths;
  for (const std::size_t part : {0U, 1U}) {
    std::vector<SafetensorsWriter::Tensor> tensors;
    for (std::size_t i = part; i < whole->tensors().size(); i += 2) {
      tensors.push_back({whole->tensors()[i].name, StoredType::f32, whole->tensors()[i].shape});
    }
    paths.push_back(folder.path(std::to_string(part)));
    SafetensorsWriter writer(paths.back(), tensors, {});
    for (const auto& tensor : tensors) {
      const std::vector<float> values = read(*whole, tensor.name);
      writer.write(std::as_bytes(std::span(values)));
    }
    writer.commit();
  }
  const auto sharded = open_safetensors(std::span<const std::string>(paths));
  const WeightTable table(sharded, tensor_list(config));
  for (const TensorInfo& tensor : whole->tensors()) {
    EXPECT_EQ(read(*whole, tensor.name), read(*sharded, tensor.name));
  }
  EXPECT_EQ(sharded->file_bytes(),
            std::filesystem::file_size(paths[0]) + std::filesystem::file_size(paths[1]));
  EXPECT_EQ(sharded->content_hash().size(), 64U);
  EXPECT_NE(sharded->content_hash(), whole->content_hash());
  paths.push_back(paths.front());
  EXPECT_EQ(error_of([&] { open_safetensors(std::span<const std::string>(paths)); }).code(),
            "duplicate_key");
}

}  // namespace
}  // namespace toto
