// SPDX-License-Identifier: Apache-2.0
// Golden folders that are not what docs/verification.md describes: an error that names the folder,
// never a read beyond what is there.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "support/test_files.h"
#include "toto/tools/verify.hpp"

namespace toto {
namespace {

using nlohmann::json;
using Shape = std::vector<std::int64_t>;

struct Tensor {
  std::string type;
  Shape shape;
  std::string bytes;
};

class GoldenFolders : public testing::Test {
 protected:
  void start(const std::string& name) {
    std::filesystem::copy(test::golden(name), folder_.path("case"));
    expected_ = read("expected.safetensors");
    inputs_ = read("inputs.safetensors");
  }
  std::map<std::string, Tensor> read(const std::string& name) {
    const std::string file = test::read_file(folder_.path("case/" + name));
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    std::map<std::string, Tensor> all;
    const json header = json::parse(file.substr(8, length));
    for (const auto& [key, entry] : header.items()) {
      if (key == "__metadata__") continue;
      const std::size_t begin = entry["data_offsets"][0];
      const std::size_t end = entry["data_offsets"][1];
      all[key] = {entry["dtype"], entry["shape"].get<Shape>(),
                  file.substr(8 + length + begin, end - begin)};
    }
    return all;
  }
  void write(const std::string& name, const std::map<std::string, Tensor>& all) {
    json header;
    std::string data;
    for (const auto& [key, tensor] : all) {
      header[key] = {{"dtype", tensor.type},
                     {"shape", tensor.shape},
                     {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
      data += tensor.bytes;
    }
    folder_.write("case/" + name, test::safetensors(header.dump(), data));
  }
  /// Another shape, with as many zeros as it asks for.
  static void reshape(Tensor& tensor, const Shape& shape) {
    std::size_t count = tensor.type == "U8" ? 1 : 4;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    tensor.shape = shape;
    tensor.bytes.assign(count, '\0');
  }
  void expect_refused(const std::string& code = "invalid_golden") {
    write("expected.safetensors", expected_);
    write("inputs.safetensors", inputs_);
    const std::string path = folder_.path("case");
    const Error error = test::error_of([&] { (void)verify_golden({&path, 1}, {}); });
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.status(), ExitStatus::bad_data);
  }

  test::TempFolder folder_;
  std::map<std::string, Tensor> expected_, inputs_;
};

// Bounds of types that round more still tell that something else was computed.
TEST_F(GoldenFolders, AnotherContextIsBeyondTheBoundsOfEveryType) {
  start("toto2-tiny-uni");
  std::map<std::string, Tensor> other = read("inputs.safetensors");
  std::string& values = other.at("target").bytes;
  for (std::size_t at = 0; at + 4 <= values.size(); at += 4) {
    float x = 0;
    std::memcpy(&x, &values[at], sizeof x);
    x = at % 64 == 0 ? -x : x;
    std::memcpy(&values[at], &x, sizeof x);
  }
  write("inputs.safetensors", other);
  const std::string path = folder_.path("case");
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    LoadOptions options;
    options.precision = precision;
    EXPECT_FALSE(verify_golden({&path, 1}, options).holds());
  }
}

TEST_F(GoldenFolders, WrittenAsTheyWereTheyHold) {
  start("toto1-tiny-a");
  write("expected.safetensors", expected_);
  write("inputs.safetensors", inputs_);
  const std::string path = folder_.path("case");
  EXPECT_TRUE(verify_golden({&path, 1}, {}).holds());
}

TEST_F(GoldenFolders, ExpectedTensorsOfOtherShapes) {
  const std::map<std::string, std::vector<Shape>> shapes = {
      {"prefill.layer00", {{0}, {1, 3, 0, 32}, {1, 3, 7, 32}, {1, 3, 6, 31}, {32}, {1, 3, 60, 32}}},
      {"prefill.loc", {{1, 3, 60}, {3, 1, 6}, {18}, {1, 3, 0}, {2, 3, 6}}},
      {"prefill.scale", {{1, 3, 60}, {0}}},
      {"prefill.dist.df", {{1, 3, 8}, {0}}},
      {"mean.cached", {{1, 3, 0}, {28}, {0, 3, 28}, {1, 2, 28}}},
      {"forced.samples", {{0, 3, 32}, {3, 3, 8}, {}, {96, 3}}},
      {"forced.step00.affine_loc", {{3}, {3, 0}}},
  };
  start("toto1-tiny-a");
  const auto good = expected_;
  for (const auto& [name, odd] : shapes) {
    for (const Shape& shape : odd) {
      SCOPED_TRACE(name + " " + json(shape).dump());
      expected_ = good;
      reshape(expected_.at(name), shape);
      expect_refused();
    }
  }
}

TEST_F(GoldenFolders, InputsOfOtherShapes) {
  start("toto1-tiny-exogenous");
  const auto good = inputs_;
  for (const Shape& shape : {Shape{0, 4, 64}, Shape{1, 0, 64}, Shape{1, 4, 0}, Shape{256}}) {
    SCOPED_TRACE(json(shape).dump());
    inputs_ = good;
    for (const char* name : {"series", "padding_mask", "id_mask"}) {
      reshape(inputs_.at(name), shape);
    }
    expect_refused();
  }
  for (const Shape& shape : {Shape{1, 4, 28}, Shape{1, 9, 28}, Shape{28}, Shape{1, 2, 7}}) {
    SCOPED_TRACE(json(shape).dump());
    inputs_ = good;
    reshape(inputs_.at("future_exogenous"), shape);
    expect_refused();
  }
}

TEST_F(GoldenFolders, TrajectoriesThatAreNoMultipleOfTheSeries) {
  start("toto1-tiny-b");  // two series
  reshape(expected_.at("forced.samples"), {5, 2, 80});
  expect_refused();
}

TEST_F(GoldenFolders, ATensorThatIsNotThere) {
  start("toto1-tiny-a");
  expected_.erase("prefill.scale");
  expect_refused();
}

}  // namespace
}  // namespace toto
