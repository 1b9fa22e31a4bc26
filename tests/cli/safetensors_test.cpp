// SPDX-License-Identifier: Apache-2.0
// Malformed weight files (robustness 1-15): each gives its code, and none a crash.
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

using Json = nlohmann::ordered_json;

// A weight file taken apart.
struct File {
  Json header;
  std::string data;
};

std::string length_prefix(std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

std::string with_header(const std::string& header, const std::string& data) {
  return length_prefix(header.size()) + header + data;
}

std::string join(const File& file) { return with_header(file.header.dump(), file.data); }

const std::string& good_bytes() {
  static const std::string bytes = read_file(tiny_model() + "/model.safetensors");
  return bytes;
}

File good() {
  std::uint64_t length = 0;
  std::memcpy(&length, good_bytes().data(), 8);
  return {Json::parse(good_bytes().substr(8, length)), good_bytes().substr(8 + length)};
}

constexpr const char* kTensor = "model.patch_embed.projection.weight";  // F32 [32, 8]

std::string changed(const std::function<void(File&)>& change) {
  File file = good();
  change(file);
  return join(file);
}

struct Case {
  std::string name;
  std::string code;
  std::function<std::string()> bytes;
  std::string names = {};
  // what the message must name
};

void PrintTo(const Case& one, std::ostream* to) { *to << one.name; }

std::string header_text(const std::string& from, const std::string& to) {
  std::string text = good().header.dump();
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return with_header(text.replace(at, from.size(), to), good().data);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int bytes = 0; bytes < 8; ++bytes) {
    all.push_back({std::string("Only").append(std::to_string(bytes)).append("Bytes"),
                   "header_too_small",
                   [bytes] { return good_bytes().substr(0, static_cast<std::size_t>(bytes)); }});
  }
  const auto rest = [] { return good_bytes().substr(8); };
  all.push_back({"LengthOfAllOnes", "header_too_large", [rest] {
                   return length_prefix(std::numeric_limits<std::uint64_t>::max()) + rest();
                 }});
  all.push_back({"LengthAboveTheLimit", "header_too_large",
                 [rest] { return length_prefix(100'000'001) + rest(); }});
  all.push_back({"LengthPastTheEnd", "invalid_header_length",
                 [rest] { return length_prefix(good_bytes().size()) + rest(); }});
  all.push_back(
      {"NotUtf8", "invalid_utf8", [] { return header_text("__metadata__", "__meta\xFF__"); }});
  all.push_back({"OpenBrace", "invalid_json", [] { return with_header("{", ""); }});
  all.push_back(
      {"Nested", "invalid_json", [] { return with_header(std::string(100'000, '['), ""); }});
  all.push_back({"TextAfterTheHeader", "invalid_json",
                 [] { return with_header(good().header.dump() + "x", good().data); }});
  all.push_back({"TenTensorsAtOnePlace", "invalid_offset", [] {
                   Json header;
                   for (int i = 0; i < 10; ++i) {
                     header[std::string("t").append(std::to_string(i))] = {
                         {"dtype", "F32"}, {"shape", {4}}, {"data_offsets", {0, 16}}};
                   }
                   return with_header(header.dump(), std::string(16, '\0'));
                 }});
  all.push_back({"Hole", "invalid_offset", [] {
                   return changed([](File& file) {
                     file.data += std::string(20, '\0');
                     file.header["extra"] = {
                         {"dtype", "F32"},
                         {"shape", {4}},
                         {"data_offsets", {file.data.size() - 16, file.data.size()}}};
                   });
                 }});
  all.push_back(
      {"EndBeforeBegin", "invalid_offset", [] {
         return changed([](File& file) { file.header[kTensor]["data_offsets"] = {1024, 0}; });
       }});
  all.push_back({"ProductWrapsToZero", "size_overflow", [] {
                   return changed([](File& file) {
                     file.header[kTensor]["shape"] = {4'294'967'296, 4'294'967'296};
                   });
                 }});
  all.push_back({"ShapeAndBytesDiffer", "size_mismatch", [] {
                   return with_header(R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,4]}})",
                                      "abcd");
                 }});
  all.push_back({"TwoBytesShort", "file_size_mismatch",
                 [] { return good_bytes().substr(0, good_bytes().size() - 2); },
                 "download incomplete?"});
  all.push_back({"TrailingBytes", "file_size_mismatch", [] { return good_bytes() + "ab"; }});
  all.push_back({"TensorTwice", "duplicate_key", [] {
                   return header_text("\"model.patch_embed.projection.bias\"",
                                      "\"model.patch_embed.projection.weight\"");
                 }});
  all.push_back({"KeyTwice", "duplicate_key", [] {
                   return header_text(R"("dtype":"F32","shape":[32,8])",
                                      R"("dtype":"F32","dtype":"F32","shape":[32,8])");
                 }});
  all.push_back({"UnknownType", "invalid_dtype", [] {
                   return changed([](File& file) { file.header[kTensor]["dtype"] = "F99"; });
                 }});
  all.push_back({"NegativeDimension", "invalid_shape", [] {
                   return changed([](File& file) { file.header[kTensor]["shape"] = {-32, 8}; });
                 }});
  all.push_back({"FractionalDimension", "invalid_shape", [] {
                   return changed([](File& file) { file.header[kTensor]["shape"] = {32.5, 8}; });
                 }});
  all.push_back({"MissingTensors", "missing_tensor",
                 [] {
                   return changed([](File& file) {
                     for (const char* name : {kTensor, "model.patch_embed.projection.bias"}) {
                       const Json entry = file.header[name];
                       file.header.erase(name);
                       file.header[std::string("renamed.") + name] = entry;
                     }
                   });
                 },
                 "model.patch_embed.projection.bias"});
  all.push_back({"ShapeNotOfTheConfig", "config_tensor_mismatch",
                 [] {
                   return changed([](File& file) { file.header[kTensor]["shape"] = {8, 32}; });
                 },
                 kTensor});
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    all.push_back({std::isnan(bad) ? "NanWeight" : "InfiniteWeight", "nonfinite_weight",
                   [bad] {
                     return changed(
                         [bad](File& file) { std::memcpy(file.data.data() + 40, &bad, 4); });
                   },
                   kTensor});
  }
  return all;
}

class Safetensors : public Program, public testing::WithParamInterface<Case> {};

TEST_P(Safetensors, IsRefusedWithItsCode) {
  write("model/config.json", read_file(tiny_model() + "/config.json"));
  write("model/model.safetensors", GetParam().bytes());
  const std::string csv = write("in.csv", two_columns());
  const Result result = run(
      {"forecast", csv, "--model", path("model"), "--horizon", "4", "--output", path("out.csv")});
  expect_failure(result, 65, GetParam().code);
  EXPECT_THAT(result.err, testing::HasSubstr(GetParam().names));
  EXPECT_EQ(listing(), (std::vector<std::string>{"in.csv", "model"}));
}

INSTANTIATE_TEST_SUITE_P(Malformed, Safetensors, testing::ValuesIn(cases()),
                         [](const auto& it) { return it.param.name; });

class SafetensorsAccepted : public Program {
 protected:
  void expect_accepted(const std::string& bytes) {
    write("model/config.json", read_file(tiny_model() + "/config.json"));
    write("model/model.safetensors", bytes);
    const std::string csv = write("in.csv", two_columns());
    const std::vector<std::string> common = {"forecast", csv, "--horizon", "4", "--output", "-"};
    std::vector<std::string> with_model = common;
    with_model.insert(with_model.end(), {"--model", path("model")});
    const Result result = run(with_model);
    EXPECT_EQ(result.status, 0) << result.err;
    with_model.back() = tiny_model();
    EXPECT_EQ(result.out, run(with_model).out);
  }
};

TEST_F(SafetensorsAccepted, RankZeroAndEmptyTensors) {
  expect_accepted(changed([](File& file) {
    const std::size_t end = file.data.size();
    file.header["rank0"] = {
        {"dtype", "F32"}, {"shape", Json::array()}, {"data_offsets", {end, end + 4}}};
    file.header["empty"] = {
        {"dtype", "F32"}, {"shape", {0, 7}}, {"data_offsets", {end + 4, end + 4}}};
    file.data += std::string(4, '\0');
  }));
}

TEST_F(SafetensorsAccepted, AnyOrderInTheHeader) {
  expect_accepted(changed([](File& file) {
    Json reversed;
    for (auto entry = file.header.rbegin(); entry != file.header.rend(); ++entry) {
      reversed[entry.key()] = entry.value();
    }
    file.header = reversed;
  }));
}

TEST_F(SafetensorsAccepted, WhiteSpaceAroundTheHeaderAndUnalignedData) {
  std::string text = " \n";
  text.append(good().header.dump()).append("   ");
  while (text.size() % 4 == 0) text += ' ';  // the tensors begin at an odd address
  expect_accepted(with_header(text, good().data));
}

}  // namespace
}  // namespace toto::test
