// SPDX-License-Identifier: Apache-2.0
// Tensors of Toto 2.0: names, shapes, strictness, synthetic weights, and shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/safetensors_writer.h"
#include "models/checkpoint/synthetic.h"
#include "models/registry.h"
#include "models/toto2/tensors.h"
#include "support/test_files.h"

namespace toto {
namespace {

using nlohmann::json;
using test::error_of;
using test::golden;
using test::TempFolder;
using testing::HasSubstr;

Toto2Config golden_config(const std::string& name) {
  std::vector<std::string> warnings;
  return parse_toto2_config(test::read_file(golden(name + "/config.json")), name, true, warnings);
}

std::shared_ptr<const WeightSource> made(const Toto2Config& config, std::uint64_t seed) {
  return synthesise_weights(synthetic_tensors(tensor_list(config)), seed, to_json(config));
}

std::vector<float> read(const WeightSource& source, const std::string& name) {
  std::vector<float> out(static_cast<std::size_t>(source.find(name)->elements()));
  source.read(name, out);
  return out;
}

TEST(Toto2Tensors, NamesShapesAndCountsOfTheReleases) {
  const json presets = json::parse(test::read_file(golden("toto2-presets.json")));
  const std::pair<const char*, const char*> names[] = {{"4m", "toto-2.0-4m"},
                                                       {"22m", "toto-2.0-22m"},
                                                       {"313m", "toto-2.0-313m"},
                                                       {"1B", "toto-2.0-1b"},
                                                       {"2.5B", "toto-2.0-2.5b"}};
  for (const auto& [key, name] : names) {
    json listed = json::array();
    std::int64_t elements = 0;
    for (const ExpectedTensor& tensor : tensor_list(*find_toto2_preset(name)).tensors) {
      std::int64_t count = 1;
      for (const std::int64_t size : tensor.shape) count *= size;
      elements += count;
      listed.push_back({tensor.name, tensor.shape});
    }
    EXPECT_EQ(listed, presets[key]["tensors"]) << name;
    EXPECT_EQ(elements, presets[key]["stored_elements"].get<std::int64_t>()) << name;
  }
}

// The rule of docs/verification.md against what the golden cases list.
TEST(Toto2Tensors, SyntheticScalesAreThoseOfTheGoldenCases) {
  for (const char* name : {"toto2-22m-512", "toto2-313m-512", "toto2-4m-512x5"}) {
    const json listed = json::parse(test::read_file(golden(name + std::string("/weights.json"))));
    const std::vector<SyntheticTensor> tensors =
        synthetic_tensors(tensor_list(golden_config(name)));
    ASSERT_EQ(tensors.size(), listed["tensor_order"].size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(tensors[i].name, listed["tensor_order"][i].get<std::string>());
      EXPECT_EQ(tensors[i].shape, listed["shapes"][i].get<std::vector<std::int64_t>>());
      EXPECT_NEAR(tensors[i].scale.amplitude, listed["amp"][i].get<double>(), 1e-12)
          << tensors[i].name;
      // Taus are listed rounded to float32.
      EXPECT_EQ(static_cast<float>(tensors[i].scale.base),
                static_cast<float>(listed["base"][i].get<double>()))
          << tensors[i].name;
    }
  }
}

// The files were written by the official code, whose taus they hold.
TEST(Toto2Tensors, StoredTausAreThoseOfTheFormula) {
  const Toto2Config config = golden_config("toto2-tiny-switches");
  const auto source = open_safetensors(golden("toto2-tiny-switches/model.safetensors"));
  const auto made_source = made(config, 0);
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    for (const char* kind : {".attn_tau", ".mlp_tau"}) {
      const std::string name = "transformer.layers." + std::to_string(i) + kind;
      EXPECT_EQ(read(*source, name), read(*made_source, name)) << name;
    }
  }
}

TEST(Toto2Tensors, GoldenCheckpointsLoadStrictly) {
  for (const char* name : {"toto2-tiny-uni", "toto2-tiny-switches"}) {
    const Toto2Config config = golden_config(name);
    const WeightTable table(open_safetensors(golden(name + std::string("/model.safetensors"))),
                            tensor_list(config));
    EXPECT_TRUE(table.unused().empty());
  }
}

TEST(Toto2Tensors, AShardedCheckpoint) {
  const Checkpoint checkpoint = open_checkpoint({.model = golden("toto2-tiny-cov")});
  EXPECT_EQ(checkpoint.info.architecture, "toto-2.0");
  EXPECT_EQ(checkpoint.info.head, "quantiles");
  EXPECT_EQ(checkpoint.info.weight_files.size(), 2U);
  EXPECT_EQ(checkpoint.info.parameters, 73'488U + 8U);  // and the taus
}

/// A checkpoint of the tensors of tiny-uni, changed by `change` before it is written.
class Written : public testing::Test {
 protected:
  void write(const std::function<void(std::vector<SafetensorsWriter::Tensor>&)>& change) {
    std::vector<SafetensorsWriter::Tensor> tensors;
    for (const ExpectedTensor& tensor : tensor_list(config_).tensors) {
      tensors.push_back({tensor.name, StoredType::f32, tensor.shape});
    }
    change(tensors);
    SafetensorsWriter writer(path_, tensors, {});
    const std::vector<std::byte> zeros(1 << 16);
    while (writer.written() < writer.file_bytes()) {
      writer.write(std::span(zeros).first(
          std::min<std::uint64_t>(zeros.size(), writer.file_bytes() - writer.written())));
    }
    writer.sync();
    writer.commit();
  }
  Error refusal() {
    return error_of(
        [&] { const WeightTable table(open_safetensors(path_), tensor_list(config_)); });
  }

  TempFolder folder_;
  std::string path_ = folder_.path("model.safetensors");
  Toto2Config config_ = golden_config("toto2-tiny-uni");
};

TEST_F(Written, HalvesAndBfloatsAreTaken) {
  for (const StoredType type : {StoredType::f16, StoredType::bf16}) {
    write([&](auto& tensors) {
      for (auto& tensor : tensors) tensor.type = type;
    });
    EXPECT_NO_THROW(WeightTable(open_safetensors(path_), tensor_list(config_)));
  }
}

TEST_F(Written, AMissingTauIsAnError) {
  write([](auto& tensors) {
    std::erase_if(tensors, [](const auto& t) { return t.name == "transformer.layers.1.mlp_tau"; });
  });
  const Error error = refusal();
  EXPECT_EQ(error.code(), "missing_tensor");
  EXPECT_THAT(error.message(), HasSubstr("transformer.layers.1.mlp_tau"));
}

TEST_F(Written, UnexpectedTensorsAreErrorsWhateverTheirType) {
  for (const auto& [name, type] : {std::pair{"more.weight", StoredType::f32},
                                   {"x.rotary_emb.freqs", StoredType::f32},
                                   {"step", StoredType::i64}}) {
    write([&, extra = std::string(name), kind = type](auto& tensors) {
      tensors.push_back({extra, kind, {2}});
    });
    const Error error = refusal();
    EXPECT_EQ(error.code(), "unexpected_tensor");
    EXPECT_EQ(error.status(), ExitStatus::bad_data);
    EXPECT_THAT(error.message(), HasSubstr(name));
  }
}

TEST_F(Written, AWrongShapeIsAnError) {
  write([](auto& tensors) { tensors[2].shape = {32, 7}; });
  EXPECT_EQ(refusal().code(), "config_tensor_mismatch");
}

TEST(SyntheticCheckpoint2, APresetIsWrittenAndRead) {
  const TempFolder folder;
  write_synthetic_checkpoint(to_json(golden_config("toto2-tiny-uni")), 3, folder.path("m"));
  const Checkpoint checkpoint = open_checkpoint({.model = folder.path("m"), .strict = true});
  EXPECT_TRUE(checkpoint.info.synthetic);
  const auto memory = made(golden_config("toto2-tiny-uni"), 3);
  const std::string name = "transformer.layers.2.ffn.fc2.weight";
  EXPECT_EQ(read(checkpoint.weights.source(), name), read(*memory, name));
}

// The published checkpoint's size, which a third party lists.
TEST(SyntheticCheckpoint2, SizeOfTheSmallestRelease) {
  const TempFolder folder;
  write_synthetic_checkpoint(preset_config("toto-2.0-4m"), 0, folder.path("m"));
  const ModelInfo info = inspect_model({.model = folder.path("m")});
  EXPECT_EQ(info.parameters, 4'144'456U);
}

}  // namespace
}  // namespace toto
