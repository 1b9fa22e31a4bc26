// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/stored_type.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace toto {
namespace {

struct TypeRow {
  StoredType type;
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<TypeRow, 15> kTypes = {{
    {StoredType::boolean, "BOOL", 1},
    {StoredType::u8, "U8", 1},
    {StoredType::i8, "I8", 1},
    {StoredType::f8_e4m3, "F8_E4M3", 1},
    {StoredType::f8_e5m2, "F8_E5M2", 1},
    {StoredType::i16, "I16", 2},
    {StoredType::u16, "U16", 2},
    {StoredType::f16, "F16", 2},
    {StoredType::bf16, "BF16", 2},
    {StoredType::i32, "I32", 4},
    {StoredType::u32, "U32", 4},
    {StoredType::f32, "F32", 4},
    {StoredType::i64, "I64", 8},
    {StoredType::u64, "U64", 8},
    {StoredType::f64, "F64", 8},
}};

const TypeRow& row_of(StoredType type) { return kTypes[static_cast<std::size_t>(type)]; }

static_assert([] {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<std::size_t>(kTypes[i].type) != i) return false;
  }
  return true;
}());

bool nonfinite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7F800000U) == 0x7F800000U;
}

}  // namespace

std::string_view name_of(StoredType type) { return row_of(type).name; }

std::uint64_t bytes_of(StoredType type) { return row_of(type).bytes; }

std::optional<StoredType> stored_type_named(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return {};
}

void convert_to_float(StoredType type, std::span<const std::byte> bytes, std::span<float> out) {
  if (out.empty()) return;  // whose data() may be null, which memcpy must not get
  if (type == StoredType::f32) {
    std::memcpy(out.data(), bytes.data(), out.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    out[i] = type == StoredType::f16 ? float_from_f16(bits) : float_from_bf16(bits);
  }
}

std::size_t first_nonfinite(std::span<const float> values) {
  constexpr std::size_t kBlock = 4096;  // counted without a branch, so that it vectorises
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    std::uint32_t bad = 0;
    for (const float value : block) bad += nonfinite(value) ? 1U : 0U;
    if (bad == 0) continue;
    const auto at = std::find_if(block.begin(), block.end(), nonfinite);
    return begin + static_cast<std::size_t>(at - block.begin());
  }
  return kAllFinite;
}

}  // namespace toto
