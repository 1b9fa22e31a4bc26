// SPDX-License-Identifier: Apache-2.0
// Whole checkpoints: written, described, damaged.
#include "models/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/checkpoint/safetensors.h"
#include "support/test_files.h"
#include "support/toto1_weights.h"

namespace toto {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::golden;
using test::read_file;
using test::TempFolder;
using testing::HasSubstr;

/// A model of a few hundred weights.
std::string small_config() {
  return to_json({.patch_size = 2,
                  .embed_dim = 4,
                  .num_layers = 1,
                  .num_heads = 2,
                  .mlp_hidden_dim = 3,
                  .spacewise_every_n_layers = -1,
                  .spacewise_first = false,
                  .components = 2});
}

TEST(Checkpoint, InspectGolden) {
  const ModelInfo info = inspect_model({.model = golden("toto1-tiny-exogenous"), .strict = true});
  EXPECT_EQ(info.name, golden("toto1-tiny-exogenous"));
  EXPECT_EQ(info.folder, info.name);
  EXPECT_EQ(info.architecture, "toto-1.0");
  EXPECT_FALSE(info.synthetic);
  EXPECT_EQ(info.patch_size, 8);
  EXPECT_EQ(info.embed_dim, 32);
  EXPECT_EQ(info.num_layers, 4);
  EXPECT_EQ(info.num_heads, 2);
  EXPECT_EQ(info.mlp_hidden_dim, 48);
  EXPECT_EQ(info.spacewise_every_n_layers, 4);
  EXPECT_FALSE(info.spacewise_first);
  EXPECT_EQ(info.scaler, "causal_patch");
  EXPECT_EQ(info.head, "mixture");
  EXPECT_EQ(info.components, 3);
  EXPECT_TRUE(info.variate_labels);
  EXPECT_EQ(info.parameters, 181168U / 4);
  EXPECT_EQ(info.file_bytes, 186792U);
  ASSERT_EQ(info.stored_types.size(), 1U);
  EXPECT_EQ(info.stored_types[0].first, "F32");
  EXPECT_EQ(info.stored_types[0].second, 54U);
  EXPECT_THAT(info.warnings, testing::IsEmpty());
}

TEST(Checkpoint, InspectKnowsEveryScalerAndHead) {
  EXPECT_EQ(inspect_model({.model = golden("toto1-tiny-c")}).head, "student_t");
  EXPECT_EQ(inspect_model({.model = golden("toto1-tiny-scaler-global")}).scaler, "global");
  EXPECT_EQ(inspect_model({.model = golden("toto1-tiny-scaler-step")}).scaler, "causal_step");
}

TEST(Checkpoint, WarningsNameUnknownKeysAndUnusedTensors) {
  const TempFolder folder;
  auto config = nlohmann::json::parse(read_file(golden("toto1-tiny-a/config.json")));
  config["num_layers"] = 3;
  config["spacewise_every_n_layers"] = -1;
  config["colour"] = "blue";
  folder.write("config.json", config.dump());
  fs::copy_file(golden("toto1-tiny-a/model.safetensors"), folder.path("model.safetensors"));
  const ModelInfo info = inspect_model({.model = folder.path()});
  ASSERT_EQ(info.warnings.size(), 11U);
  EXPECT_THAT(info.warnings[0], HasSubstr("colour"));
  EXPECT_THAT(info.warnings[1], HasSubstr("model.transformer.layers.3"));
  EXPECT_EQ(error_of([&] { inspect_model({.model = folder.path(), .strict = true}); }).code(),
            "unknown_key");
}

TEST(Checkpoint, ConfigurationOfAnotherModel) {
  const TempFolder folder;
  fs::copy_file(golden("toto1-tiny-a/config.json"), folder.path("config.json"));
  fs::copy_file(golden("toto1-tiny-b/model.safetensors"), folder.path("model.safetensors"));
  const Error error = error_of([&] { inspect_model({.model = folder.path()}); });
  EXPECT_EQ(error.code(), "config_tensor_mismatch");
  EXPECT_THAT(error.remedy(), HasSubstr("belong together"));
}

TEST(Checkpoint, AnEnormousConfigurationFile) {
  const TempFolder folder;
  folder.write("config.json", std::string((1 << 20) + 1, ' '));
  folder.write("model.safetensors", "");
  const Error error = error_of([&] { inspect_model({.model = folder.path()}); });
  EXPECT_EQ(error.code(), "file_too_large");
  EXPECT_EQ(error.status(), ExitStatus::bad_config);
}

TEST(Checkpoint, FileSha256) {
  const TempFolder folder;
  EXPECT_EQ(file_sha256(folder.write("abc", "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(file_sha256(folder.write("empty", "")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  // 2.5 MiB of "a": more than one chunk.
  EXPECT_EQ(file_sha256(folder.write("long", std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(error_of([&] { file_sha256(folder.path("none")); }).code(), "file_not_found");
}

TEST(SyntheticCheckpoint, IsThePublishedFormat) {
  const TempFolder folder;
  const std::string config = read_file(golden("toto1-tiny-a/config.json"));
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  write_synthetic_checkpoint(config, 1, folder.path("new/deep"), [&](auto done, auto all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  });
  EXPECT_EQ(last, total);
  EXPECT_EQ(folder.files(), 2U);
  EXPECT_EQ(read_file(folder.path("new/deep/config.json")), config);
  EXPECT_EQ(fs::file_size(folder.path("new/deep/model.safetensors")), total);

  const Checkpoint made = open_checkpoint({.model = folder.path("new/deep"), .strict = true});
  EXPECT_TRUE(made.info.synthetic);
  EXPECT_THAT(made.info.warnings, testing::IsEmpty());
  const SafetensorsFile file(folder.path("new/deep/model.safetensors"));
  EXPECT_EQ(file.header().metadata.at("toto.synthetic"), "seed 1");
  EXPECT_EQ(file.entries()[8].name, "model.transformer.layers.0.mlp.0.w12.weight");

  // The golden checkpoint is seed 1.
  const SafetensorsFile golden_file(golden("toto1-tiny-a/model.safetensors"));
  for (const SafetensorsEntry& entry : file.entries()) {
    std::vector<float> ours(entry.elements());
    std::vector<float> theirs(entry.elements());
    file.read_floats(entry.name, ours);
    golden_file.read_floats(entry.name, theirs);
    EXPECT_EQ(ours, theirs) << entry.name;
  }
}

// A tensor longer than one chunk of the stream.
TEST(SyntheticCheckpoint, LongTensorsAreWrittenInChunks) {
  const TempFolder folder;
  const Toto1Config config = {.patch_size = 64,
                              .embed_dim = 96,
                              .num_layers = 1,
                              .num_heads = 2,
                              .mlp_hidden_dim = 3,
                              .spacewise_every_n_layers = -1,
                              .components = 2};
  write_synthetic_checkpoint(to_json(config), 9, folder.path("m"));
  const Checkpoint made = open_checkpoint({.model = folder.path("m")});
  const auto memory = test::toto1_weights(config, 9, test::toto1_order(config, false));
  std::vector<float> ours(64 * 96 * 96);
  std::vector<float> theirs(ours.size());
  made.weights.read("model.unembed.weight", ours);
  memory->read("model.unembed.weight", theirs);
  EXPECT_EQ(ours, theirs);
}

TEST(SyntheticCheckpoint, FailuresLeaveNothing) {
  const TempFolder folder;
  folder.write("file", "");
  for (const std::string& place : {folder.path("file/sub"), folder.path("file"), std::string()}) {
    const Error error = error_of([&] { write_synthetic_checkpoint(small_config(), 1, place); });
    EXPECT_EQ(error.code(), "write_failed") << place;
    EXPECT_EQ(error.status(), ExitStatus::io);
  }
  struct Stop {};
  const auto stop = [](std::uint64_t, std::uint64_t) { throw Stop{}; };
  EXPECT_THROW(write_synthetic_checkpoint(small_config(), 1, folder.path("a/b/c/"), stop), Stop);
  EXPECT_FALSE(fs::exists(folder.path("a")));
  EXPECT_EQ(error_of([&] { write_synthetic_checkpoint("{}", 1, folder.path("a")); }).code(),
            "missing_key");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(SyntheticCheckpoint, ALinkOfTheUserStays) {
  const TempFolder folder;
  std::filesystem::create_symlink("nowhere/at/all", folder.path("link"));
  const Error error =
      error_of([&] { write_synthetic_checkpoint(small_config(), 1, folder.path("link")); });
  EXPECT_EQ(error.code(), "write_failed");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  // One that leads to a folder is followed.
  std::filesystem::create_directory(folder.path("real"));
  std::filesystem::create_symlink("real", folder.path("good"));
  write_synthetic_checkpoint(small_config(), 1, folder.path("good"));
  EXPECT_TRUE(std::filesystem::exists(folder.path("real/model.safetensors")));
}

TEST(SyntheticCheckpoint, AFailureLeavesTheOldFiles) {
  const TempFolder folder;
  write_synthetic_checkpoint(small_config(), 1, folder.path("m"));
  const std::string before = read_file(folder.path("m/model.safetensors"));
  struct Stop {};
  const auto stop = [](std::uint64_t, std::uint64_t) { throw Stop{}; };
  EXPECT_THROW(write_synthetic_checkpoint(small_config(), 2, folder.path("m"), stop), Stop);
  EXPECT_EQ(read_file(folder.path("m/model.safetensors")), before);
  EXPECT_EQ(folder.files(), 2U);
}

TEST(SyntheticCheckpoint, Presets) {
  EXPECT_EQ(preset_config("toto-open-base-1.0"), read_file(golden("toto1-base-512/config.json")));
  const Error error = error_of([] { preset_config("other"); });
  EXPECT_EQ(error.code(), "unknown_preset");
  EXPECT_EQ(error.status(), ExitStatus::usage);
  EXPECT_THAT(error.message(), HasSubstr("toto-open-base-1.0"));
}

class Damaged : public testing::Test {
 protected:
  TempFolder folder_;
  std::string file_;
  std::size_t bytes_ = 0;

  void SetUp() override {
    write_synthetic_checkpoint(small_config(), 1, folder_.path("m"));
    file_ = folder_.path("m/model.safetensors");
    bytes_ = fs::file_size(file_);
  }
  /// Opens and reads everything; true where that works. Anything but an Error is a failure.
  bool reads() {
    try {
      const Checkpoint checkpoint = open_checkpoint({.model = folder_.path("m")});
      for (const TensorInfo& tensor : checkpoint.weights.source().tensors()) {
        std::vector<float> out(static_cast<std::size_t>(tensor.elements()));
        checkpoint.weights.source().read(tensor.name, out);
      }
      EXPECT_EQ(checkpoint.weights.source().content_hash().size(), 64U);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::bad_data) << error.what();
      return false;
    }
  }
};

TEST_F(Damaged, EveryTruncationIsRefused) {
  ASSERT_TRUE(reads());
  while (bytes_ > 0) {
    fs::resize_file(file_, --bytes_);
    ASSERT_FALSE(reads()) << bytes_;
  }
}

TEST_F(Damaged, EveryBitFlipOfTheHeaderIsReadOrRefused) {
  const std::size_t header = SafetensorsFile(file_).header().data_begin;
  const std::string good = read_file(file_);
  std::fstream file(file_, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, int byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte));
    file.flush();
  };
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < 8 * header; ++bit) {
    put(bit / 8, good[bit / 8] ^ (1 << bit % 8));
    accepted += reads() ? 1U : 0U;
    if (bit % 8 == 7) put(bit / 8, good[bit / 8]);
  }
  EXPECT_GT(accepted, 0U);  // a letter of the metadata
  EXPECT_LT(accepted, 8 * header / 20);
  EXPECT_EQ(read_file(file_), good);
}

}  // namespace
}  // namespace toto
