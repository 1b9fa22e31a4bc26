// SPDX-License-Identifier: Apache-2.0
// The safetensors format: everything legal is read, everything else is refused with its code
// (robustness 1 to 12 and 15).
#include "models/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "models/checkpoint/safetensors_writer.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::error_of;
using test::read_file;
using test::safetensors;
using test::TempFolder;
using testing::HasSubstr;

SafetensorsHeader parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "file");
}

std::string prefix(std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

/// `"name":{...}` of a header.
std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   const std::string& offsets) {
  std::string text = "\"";
  text.append(name).append("\":{\"dtype\":\"").append(type).append("\",\"shape\":").append(shape);
  return text.append(",\"data_offsets\":").append(offsets).append("}");
}

/// A header of these.
std::string object(const std::vector<std::string>& tensors) {
  std::string text;
  for (const std::string& tensor_text : tensors)
    text.append(text.empty() ? "{" : ",").append(tensor_text);
  return text.append("}");
}

std::string one(const std::string& type, const std::string& shape, const std::string& offsets,
                std::size_t data) {
  return safetensors(object({tensor("t", type, shape, offsets)}), std::string(data, '\0'));
}

struct Malformed {
  const char* name;
  const char* code;
  std::string bytes;
  const char* message = "";
};

void PrintTo(const Malformed& value, std::ostream* out) { *out << value.name; }

class MalformedFile : public testing::TestWithParam<Malformed> {};

// From memory and from a file alike.
TEST_P(MalformedFile, IsRefusedWithItsCode) {
  const TempFolder folder;
  const std::string path = folder.write("file", GetParam().bytes);
  for (const Error& error : {error_of([&] { parse(GetParam().bytes); }),
                             error_of([&] { SafetensorsFile file(path); })}) {
    EXPECT_EQ(error.code(), GetParam().code) << error.what();
    EXPECT_EQ(error.status(), ExitStatus::bad_data);
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
  EXPECT_EQ(error_of([&] { SafetensorsFile file(path); }).where(), path);
}

std::vector<Malformed> header_cases() {
  const std::string meta = R"({"__metadata__":)";
  return {
      {"Empty", "header_too_small", ""},
      {"OneByte", "header_too_small", "x"},
      {"SevenBytes", "header_too_small", std::string(7, '\0'), "download incomplete?"},
      {"LengthAllOnes", "header_too_large", prefix(~std::uint64_t{0}) + "{}"},
      {"LengthTopBit", "header_too_large", prefix(std::uint64_t{1} << 63) + "{}"},
      {"LengthOverLimit", "header_too_large", prefix(100'000'001) + "{}"},
      {"LengthAtLimit", "invalid_header_length", prefix(100'000'000) + "{}"},
      {"LengthOneTooMany", "invalid_header_length", prefix(3) + "{}"},
      {"LengthOfNothing", "invalid_header_length", prefix(1)},
      {"NoHeader", "invalid_json", prefix(0)},
      {"NotUtf8", "invalid_utf8", safetensors("{\"\xFF\":1}")},
      {"OnlyFF", "invalid_utf8", safetensors("\xFF")},
      {"OpenBrace", "invalid_json", safetensors("{"), "byte"},
      {"DeepArrays", "invalid_json", safetensors(std::string(100'000, '['))},
      {"AnArray", "invalid_json", safetensors("[]")},
      {"AString", "invalid_json", safetensors("\"{}\"")},
      {"TwoDocuments", "invalid_json", safetensors("{}{}")},
      {"NulPadding", "invalid_json", safetensors(std::string("{}\0\0", 4))},
      {"TensorIsANumber", "invalid_json", safetensors(R"({"t":1})")},
      {"TensorIsNull", "invalid_json", safetensors(R"({"t":null})")},
      {"MetadataIsAList", "invalid_json", safetensors(meta + "[]}")},
      {"MetadataIsAString", "invalid_json", safetensors(meta + "\"a\"}")},
      {"MetadataHoldsANumber", "invalid_json", safetensors(meta + R"({"a":1}})")},
      {"MetadataTwice", "duplicate_key", safetensors(R"({"__metadata__":{},"__metadata__":{}})")},
      {"MetadataKeyTwice", "duplicate_key", safetensors(meta + R"({"a":"1","a":"1"}})")},
      {"TensorTwice", "duplicate_key",
       safetensors(object({tensor("t", "U8", "[1]", "[0,1]"), tensor("t", "U8", "[1]", "[1,2]")}),
                   "ab")},
      {"FieldTwice", "duplicate_key",
       safetensors(R"({"t":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "a")},
  };
}

std::vector<Malformed> tensor_cases() {
  std::vector<std::string> ten;
  for (char c = '0'; c <= '9'; ++c) {
    ten.push_back(tensor(std::string(1, c), "F32", "[4]", "[0,16]"));
  }
  const auto pair = [](const char* first, const char* second, std::size_t data) {
    return safetensors(object({tensor("a", "U8", "[4]", first), tensor("b", "U8", "[4]", second)}),
                       std::string(data, '\0'));
  };
  return {
      {"UnknownType", "invalid_dtype", one("F99", "[1]", "[0,4]", 4), "\"F99\""},
      {"TypeInLowerCase", "invalid_dtype", one("f32", "[1]", "[0,4]", 4)},
      {"NoType", "invalid_dtype", safetensors(R"({"t":{"shape":[1],"data_offsets":[0,1]}})", "a")},
      {"TypeIsANumber", "invalid_dtype",
       safetensors(R"({"t":{"dtype":32,"shape":[1],"data_offsets":[0,1]}})", "a")},
      {"NegativeSize", "invalid_shape", one("U8", "[-1]", "[0,1]", 1), "-1"},
      {"FractionalSize", "invalid_shape", one("U8", "[1.5]", "[0,1]", 1), "1.5"},
      {"FloatSize", "invalid_shape", one("U8", "[1.0]", "[0,1]", 1)},
      {"SizeIsText", "invalid_shape", one("U8", "[\"1\"]", "[0,1]", 1)},
      {"SizeBeyond64Bits", "invalid_shape", one("U8", "[18446744073709551616]", "[0,1]", 1)},
      {"ShapeIsANumber", "invalid_shape", one("U8", "1", "[0,1]", 1)},
      {"NoShape", "invalid_shape",
       safetensors(R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", "a")},
      {"ProductWrapsToZero", "size_overflow", one("F32", "[4294967296,4294967296]", "[0,0]", 0)},
      {"ProductWrapsToFour", "size_overflow", one("U8", "[9223372036854775807,2,2]", "[0,4]", 4)},
      {"SizeBeyond63Bits", "size_overflow", one("U8", "[9223372036854775808]", "[0,1]", 1)},
      {"BytesOverflow", "size_overflow", one("F32", "[4611686018427387904]", "[0,0]", 0)},
      {"OverflowBesideZero", "size_overflow", one("U8", "[0,4294967296,4294967296]", "[0,0]", 0)},
      {"TooFewBytes", "size_mismatch", one("F32", "[2,2]", "[0,4]", 4), "16 bytes, not 4"},
      {"TooManyBytes", "size_mismatch", one("F16", "[2]", "[0,8]", 8)},
      {"ScalarOfTwo", "size_mismatch", one("F32", "[]", "[0,8]", 8)},
      {"EmptyWithBytes", "size_mismatch", one("F32", "[0]", "[0,4]", 4)},
      {"TenAtOnePlace", "invalid_offset", safetensors(object(ten), std::string(16, '\0')),
       "overlap"},
      {"Hole", "invalid_offset", pair("[0,4]", "[6,10]", 10), "hole"},
      {"HoleInFront", "invalid_offset", one("U8", "[4]", "[2,6]", 6), "hole"},
      {"Overlap", "invalid_offset", pair("[0,4]", "[2,6]", 6), "overlap"},
      {"EndBeforeBegin", "invalid_offset", one("U8", "[4]", "[4,0]", 4)},
      {"NegativeOffset", "invalid_offset", one("U8", "[4]", "[-4,0]", 4)},
      {"FractionalOffset", "invalid_offset", one("U8", "[4]", "[0,4.0]", 4)},
      {"HugeOffset", "size_mismatch", one("U8", "[4]", "[0,18446744073709551615]", 4)},
      {"OffsetsWrapAround", "invalid_offset",
       one("U8", "[4]", "[18446744073709551611,18446744073709551615]", 4)},
      {"OneOffset", "invalid_offset", one("U8", "[4]", "[0]", 4)},
      {"ThreeOffsets", "invalid_offset", one("U8", "[4]", "[0,4,8]", 4)},
      {"OffsetsAreAnObject", "invalid_offset", one("U8", "[4]", "{\"0\":0,\"1\":4}", 4)},
      {"NoOffsets", "invalid_offset", safetensors(R"({"t":{"dtype":"U8","shape":[1]}})", "a")},
      {"TwoBytesShort", "file_size_mismatch", one("U8", "[4]", "[0,4]", 2), "download incomplete?"},
      {"TrailingBytes", "file_size_mismatch", one("U8", "[4]", "[0,4]", 6)},
      {"DataWithoutTensors", "file_size_mismatch", safetensors("{}", "x")},
  };
}

const auto kCaseName = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Header, MalformedFile, testing::ValuesIn(header_cases()), kCaseName);
INSTANTIATE_TEST_SUITE_P(Tensors, MalformedFile, testing::ValuesIn(tensor_cases()), kCaseName);

TEST(Safetensors, EveryTypeIsLegal) {
  for (const char* type : {"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"}) {
    EXPECT_EQ(parse(one(type, "[3]", "[0,3]", 3)).entries[0].elements(), 3U) << type;
  }
  for (const char* type : {"I16", "U16", "F16", "BF16"}) {
    EXPECT_EQ(parse(one(type, "[3]", "[0,6]", 6)).entries[0].elements(), 3U) << type;
  }
  for (const char* type : {"I32", "U32", "F32"}) {
    EXPECT_EQ(parse(one(type, "[3]", "[0,12]", 12)).entries[0].elements(), 3U) << type;
  }
  for (const char* type : {"I64", "U64", "F64"}) {
    EXPECT_EQ(parse(one(type, "[3]", "[0,24]", 24)).entries[0].elements(), 3U) << type;
  }
}

TEST(Safetensors, RankZeroAndEmptyTensors) {
  const SafetensorsHeader header = parse(safetensors(
      object({tensor("scalar", "F32", "[]", "[0,4]"), tensor("front", "F32", "[0]", "[0,0]"),
              tensor("back", "F64", "[7,0,3]", "[4,4]")}),
      "abcd"));
  EXPECT_EQ(header.find("scalar")->elements(), 1U);
  EXPECT_TRUE(header.find("scalar")->shape.empty());
  EXPECT_EQ(header.find("front")->bytes(), 0U);
  EXPECT_EQ(header.find("back")->shape, (std::vector<std::int64_t>{7, 0, 3}));
  EXPECT_EQ(header.find("none"), nullptr);
  EXPECT_EQ(header.entries.back().name, "back");
}

TEST(Safetensors, NoTensorsAtAll) {
  EXPECT_TRUE(parse(safetensors("{}")).entries.empty());
  EXPECT_TRUE(parse(safetensors(R"({"__metadata__":{"format":"pt"}})")).entries.empty());
}

TEST(Safetensors, AnyOrderWhiteSpaceAndUnalignedData) {
  std::string text =
      " \n\t{ \"z\" : {\"data_offsets\":[1,5] , \"shape\":[1],\"dtype\":\"F32\"},\r\n";
  text.append(tensor("a", "U8", "[1]", "[0,1]"));
  text.append(R"(,"__metadata__":{"format":"pt","note":""}}  )");
  const SafetensorsHeader header = parse(safetensors(text, "xabcd"));
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[1].name, "z");
  EXPECT_EQ(header.entries[1].begin, 1U);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.metadata.at("note"), "");
}

TEST(Safetensors, ReadsBytesAndFloats) {
  const TempFolder folder;
  const float values[] = {1.5F, -2.0F};
  std::string data = "\x07";  // everything after is unaligned
  data.append(reinterpret_cast<const char*>(values), sizeof(values));
  data.append("\x00\x3C\x00\xC0", 4);  // F16: 1, -2
  data.append("\x80\x3F\x49\xC0", 4);  // BF16: 1, -3.140625
  const SafetensorsFile file(folder.write(
      "f", safetensors(
               object({tensor("byte", "U8", "[1]", "[0,1]"), tensor("f32", "F32", "[2,1]", "[1,9]"),
                       tensor("f16", "F16", "[2]", "[9,13]"),
                       tensor("bf16", "BF16", "[1,2]", "[13,17]")}),
               data)));
  std::byte byte = {};
  file.read_bytes("byte", std::span(&byte, 1));
  EXPECT_EQ(byte, std::byte{7});
  std::vector<float> out(2);
  file.read_floats("f32", out);
  EXPECT_EQ(out, (std::vector<float>{1.5F, -2.0F}));
  file.read_floats("f16", out);
  EXPECT_EQ(out, (std::vector<float>{1.0F, -2.0F}));
  file.read_floats("bf16", out);
  EXPECT_EQ(out, (std::vector<float>{1.0F, -3.140625F}));
  EXPECT_EQ(error_of([&] { file.read_floats("byte", std::span(out).first(1)); }).code(),
            "invalid_dtype");
  EXPECT_EQ(error_of([&] { file.read_floats("none", out); }).code(), "missing_tensor");
  EXPECT_EQ(error_of([&] { file.read_floats("f32", std::span(out).first(1)); }).code(), "internal");
}

TEST(Safetensors, NonfiniteWeightsAreNamedWithTheirPlace) {
  const TempFolder folder;
  std::vector<float> values(200'000, 1.0F);
  const auto write = [&](float bad, std::size_t at) {
    values.assign(values.size(), 1.0F);
    values[at] = bad;
    return folder.write("f", safetensors(object({tensor("w", "F32", "[200000]", "[0,800000]")}),
                                         {reinterpret_cast<const char*>(values.data()), 800'000}));
  };
  std::vector<float> out(values.size());
  for (const std::size_t at : {std::size_t{0}, std::size_t{65'536}, std::size_t{199'999}}) {
    for (const float bad : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
      const SafetensorsFile file(write(bad, at));
      const Error error = error_of([&] { file.read_floats("w", out); });
      EXPECT_EQ(error.code(), "nonfinite_weight");
      EXPECT_EQ(error.status(), ExitStatus::bad_data);
      EXPECT_THAT(error.message(), HasSubstr("\"w\""));
      EXPECT_THAT(error.message(), HasSubstr("index " + std::to_string(at)));
    }
  }
  const SafetensorsFile half(folder.write("h", one("F16", "[1]", "[0,2]", 0) + "\xFF\x7F"));
  EXPECT_EQ(error_of([&] { half.read_floats("t", std::span(out).first(1)); }).code(),
            "nonfinite_weight");
}

// Long enough for several chunks of conversion.
TEST(Safetensors, LongHalvesAreConvertedInChunks) {
  const TempFolder folder;
  constexpr std::size_t kCount = 150'001;
  std::vector<std::uint16_t> halves(kCount);
  for (std::size_t i = 0; i < kCount; ++i) halves[i] = static_cast<std::uint16_t>(i % 0x7C00);
  const SafetensorsFile file(
      folder.write("f", safetensors(object({tensor("w", "F16", "[150001]", "[0,300002]")}),
                                    {reinterpret_cast<const char*>(halves.data()), 300'002})));
  std::vector<float> out(kCount);
  file.read_floats("w", out);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(out[i], float_from_f16(halves[i])) << i;
}

TEST(Safetensors, AFileThatShrinksIsAnError) {
  const TempFolder folder;
  const std::string path = folder.write("f", one("F32", "[4]", "[0,16]", 16));
  const SafetensorsFile file(path);
  std::filesystem::resize_file(path, file.file_bytes() - 8);
  std::vector<float> out(4);
  EXPECT_EQ(error_of([&] { file.read_floats("t", out); }).code(), "read_failed");
}

TEST(Safetensors, WriterAndReaderAgree) {
  const TempFolder folder;
  const std::vector<SafetensorsWriter::Tensor> tensors = {{"z", StoredType::f32, {2, 3}},
                                                          {"a \"quoted\"", StoredType::u8, {}},
                                                          {"e", StoredType::i64, {0}}};
  const std::vector<float> z = {1, 2, 3, 4, 5, 6};
  SafetensorsWriter writer(folder.path("f"), tensors, {{"key", "value"}});
  writer.write(std::as_bytes(std::span(z)).first(5));
  writer.write(std::as_bytes(std::span(z)).subspan(5));
  EXPECT_EQ(error_of([&] { writer.commit(); }).code(), "internal");
  writer.write(std::as_bytes(std::span("\x09", 1)));
  EXPECT_EQ(writer.written(), writer.file_bytes());
  writer.commit();

  const SafetensorsFile file(folder.path("f"));
  EXPECT_EQ(file.file_bytes(), writer.file_bytes());
  EXPECT_EQ(file.header().data_begin % 8, 0U);
  EXPECT_EQ(file.header().metadata.at("key"), "value");
  EXPECT_EQ(file.entries()[0].name, "z");
  EXPECT_EQ(file.at("e").elements(), 0U);
  std::vector<float> out(6);
  file.read_floats("z", out);
  EXPECT_EQ(out, z);
  std::byte byte = {};
  file.read_bytes("a \"quoted\"", std::span(&byte, 1));
  EXPECT_EQ(byte, std::byte{9});
}

TEST(Safetensors, ContentHashCoversEveryByte) {
  const TempFolder folder;
  std::string bytes = one("U8", "[2000000]", "[0,2000000]", 2'000'000);
  const auto hash = [&] { return SafetensorsFile(folder.write("f", bytes)).content_hash(); };
  const std::string reference = hash();
  EXPECT_EQ(reference, sha256_of(InputFile(folder.path("f"))));
  for (const std::size_t at : {std::size_t{100}, bytes.size() / 3, bytes.size() - 1}) {
    std::string kept = bytes;
    bytes[at] = 'x';
    EXPECT_NE(hash(), reference) << at;
    bytes = std::move(kept);
  }
  EXPECT_EQ(hash(), reference);
}

// A tree of it would take thirty times the size of the text.
TEST(Safetensors, AHeaderOfEmptyObjectsIsRefusedBeforeItIsBuilt) {
  std::string text = "{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":[{}";
  for (int i = 0; i < 1'000'000; ++i) text += ",{}";
  text += "]}}";
  const Error error = error_of([&] { parse(safetensors(text)); });
  EXPECT_EQ(error.code(), "invalid_json");
  EXPECT_THAT(error.message(), HasSubstr("more than"));
}

TEST(Safetensors, ANameMayStandOnlyOnce) {
  const std::string a = tensor("a", "U8", "[0]", "[0,0]");
  for (const std::string& text :
       {"{" + a + "," + a + "}", "{" + a + "," + tensor("b", "U8", "[0]", "[0,0]") + "," + a + "}",
        std::string("{\"__metadata__\":{},\"__metadata__\":{}}"),
        std::string("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}")}) {
    EXPECT_EQ(error_of([&] { parse(safetensors(text)); }).code(), "duplicate_key") << text;
  }
}

}  // namespace
}  // namespace toto
