// SPDX-License-Identifier: Apache-2.0
// Tensors out of a safetensors file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/json.h"
#include "models/checkpoint/safetensors.h"

namespace toto {
namespace {

// A chunk is read, converted and checked while it is in the second-level cache.
constexpr std::size_t kChunkElements = 1 << 16;

SafetensorsHeader read_header(const InputFile& file) {
  std::array<std::byte, 8> first = {};
  const auto known = std::min<std::uint64_t>(first.size(), file.size());
  file.read(0, std::span(first).first(known));
  const std::uint64_t length =
      safetensors_header_length(std::span(first).first(known), file.size(), file.path());
  std::string text(length, '\0');
  file.read(first.size(), std::as_writable_bytes(std::span(text)));
  return parse_safetensors_header(text, file.size(), file.path());
}

void check_destination(std::uint64_t expected, std::size_t got) {
  if (expected != got) {
    throw Error(ExitStatus::internal, "internal",
                fmt::format("a tensor of {} was read into memory for {}", expected, got));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(path), header_(read_header(file_)) {}

const SafetensorsEntry& SafetensorsFile::at(std::string_view name) const {
  if (const SafetensorsEntry* entry = find(name)) return *entry;
  throw Error(ExitStatus::bad_data, "missing_tensor",
              fmt::format("there is no tensor {}", quote(name)), path());
}

void SafetensorsFile::read_bytes(std::string_view name, std::span<std::byte> out) const {
  const SafetensorsEntry& entry = at(name);
  check_destination(entry.bytes(), out.size());
  file_.read(header_.data_begin + entry.begin, out);
}

void SafetensorsFile::read_floats(std::string_view name, std::span<float> out) const {
  const SafetensorsEntry& entry = at(name);
  const StoredType type = entry.type;
  if (type != StoredType::f32 && type != StoredType::f16 && type != StoredType::bf16) {
    throw Error(
        ExitStatus::bad_data, "invalid_dtype",
        fmt::format("tensor {} is {}; F32, F16 or BF16 is needed", quote(name), name_of(type)),
        path());
  }
  check_destination(entry.elements(), out.size());
  std::vector<std::byte> raw;  // float32 is read straight into its place
  if (type != StoredType::f32) raw.resize(std::min(out.size(), kChunkElements) * 2);
  for (std::size_t at = 0; at < out.size(); at += kChunkElements) {
    const auto chunk = out.subspan(at, std::min(kChunkElements, out.size() - at));
    const std::uint64_t from = header_.data_begin + entry.begin + at * bytes_of(type);
    if (type == StoredType::f32) {
      file_.read(from, std::as_writable_bytes(chunk));
    } else {
      const auto halves = std::span(raw).first(chunk.size() * 2);
      file_.read(from, halves);
      convert_to_float(type, halves, chunk);
    }
    if (const std::size_t bad = first_nonfinite(chunk); bad != kAllFinite) {
      throw Error(ExitStatus::bad_data, "nonfinite_weight",
                  fmt::format("tensor {} has {} at index {}", quote(name),
                              std::isnan(chunk[bad]) ? "NaN" : "an infinity", at + bad),
                  path());
    }
  }
}

std::string SafetensorsFile::content_hash() const { return sha256_of(file_); }

}  // namespace toto
