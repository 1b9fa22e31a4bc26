// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: refused with an Error, or every tensor can be used as described.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "models/checkpoint/safetensors.h"
#include "toto/error.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void use(const toto::SafetensorsHeader& header, std::span<const std::byte> file) {
  const auto data = file.subspan(header.data_begin);
  std::uint64_t at = 0;
  for (const toto::SafetensorsEntry& entry : header.entries) {
    require(entry.begin == at && entry.end >= entry.begin && entry.end <= data.size());
    require(entry.elements() * toto::bytes_of(entry.type) == entry.bytes());
    require(header.find(entry.name) == &entry);
    at = entry.end;
    const toto::StoredType type = entry.type;
    if (type == toto::StoredType::f32 || type == toto::StoredType::f16 ||
        type == toto::StoredType::bf16) {
      std::vector<float> values(entry.elements());
      toto::convert_to_float(type, data.subspan(entry.begin, entry.bytes()), values);
      const std::size_t bad = toto::first_nonfinite(values);
      require(bad == toto::kAllFinite || bad < values.size());
    }
  }
  require(at == data.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto file = std::as_bytes(std::span(bytes, size));
  try {
    use(toto::parse_safetensors(file, "input"), file);
  } catch (const toto::Error& error) {
    require(error.status() == toto::ExitStatus::bad_data && !error.code().empty());
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
