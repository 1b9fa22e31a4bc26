// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/stored_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace toto {
namespace {

// The definition of binary16, in double.
double f16_value(unsigned bits) {
  const unsigned exponent = bits >> 10 & 31;
  const double mantissa = bits & 1023;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, -24)
                               : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(StoredType, EveryHalfIsExact) {
  for (unsigned bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = float_from_f16(static_cast<std::uint16_t>(bits));
    if ((bits >> 10 & 31) == 31) {
      EXPECT_EQ(std::isnan(value), (bits & 1023) != 0) << bits;
      EXPECT_EQ(std::isinf(value), (bits & 1023) == 0) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(value), f16_value(bits)) << bits;
    }
    EXPECT_EQ(std::signbit(value), bits >= 0x8000) << bits;
  }
}

TEST(StoredType, Bfloat16IsTheUpperHalf) {
  EXPECT_EQ(float_from_bf16(0x3F80), 1.0F);
  EXPECT_EQ(float_from_bf16(0xC049), -3.140625F);
  EXPECT_EQ(float_from_bf16(0x0001), std::ldexp(1.0F, -133));
  EXPECT_TRUE(std::isinf(float_from_bf16(0x7F80)));
  EXPECT_TRUE(std::isnan(float_from_bf16(0x7FC0)));
}

TEST(StoredType, ConvertsUnalignedBytes) {
  const unsigned char raw[] = {0xAA, 0x00, 0x3C, 0x00, 0xC0};
  const auto bytes = std::as_bytes(std::span(raw)).subspan(1);
  std::vector<float> out(2);
  convert_to_float(StoredType::f16, bytes, out);
  EXPECT_EQ(out, (std::vector<float>{1.0F, -2.0F}));
  const unsigned char wide[] = {0xAA, 0x00, 0x00, 0x80, 0x3F};
  out.resize(1);
  convert_to_float(StoredType::f32, std::as_bytes(std::span(wide)).subspan(1), out);
  EXPECT_EQ(out[0], 1.0F);
  convert_to_float(StoredType::f32, {}, {});  // an empty tensor
}

TEST(StoredType, NamesAndSizes) {
  const std::vector<std::pair<const char*, std::uint64_t>> known = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  for (const auto& [name, bytes] : known) {
    const auto type = stored_type_named(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(name_of(*type), name);
    EXPECT_EQ(bytes_of(*type), bytes) << name;
  }
  for (const char* name : {"", "f32", "F99", "F32 ", "FLOAT"}) {
    EXPECT_FALSE(stored_type_named(name)) << name;
  }
}

TEST(StoredType, FirstNonfinite) {
  std::vector<float> values(10'000, 1.0F);
  values[3] = std::numeric_limits<float>::max();
  values[4] = -std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(first_nonfinite(values), kAllFinite);
  EXPECT_EQ(first_nonfinite({}), kAllFinite);
  for (const std::size_t at :
       {std::size_t{9999}, std::size_t{4096}, std::size_t{4095}, std::size_t{0}}) {
    values[at] =
        at % 2 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
    EXPECT_EQ(first_nonfinite(values), at);
  }
}

}  // namespace
}  // namespace toto
