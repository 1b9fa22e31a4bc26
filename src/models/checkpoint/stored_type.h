// SPDX-License-Identifier: Apache-2.0
// The element types a safetensors file can hold, and reading the floating-point ones as float32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace toto {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

enum class StoredType : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64,
};

/// The name in a header, such as "F32".
std::string_view name_of(StoredType type);
std::optional<StoredType> stored_type_named(std::string_view name);
std::uint64_t bytes_of(StoredType type);

/// IEEE 754 binary16 to binary32: every value is exact, NaN stays NaN.
constexpr float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

constexpr float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// Converts as many elements as `out` has from unaligned bytes. `type`: f32, f16 or bf16.
void convert_to_float(StoredType type, std::span<const std::byte> bytes, std::span<float> out);

inline constexpr std::size_t kAllFinite = std::numeric_limits<std::size_t>::max();
/// The index of the first NaN or infinity, or kAllFinite.
std::size_t first_nonfinite(std::span<const float> values);

}  // namespace toto
