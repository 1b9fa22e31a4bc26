// SPDX-License-Identifier: Apache-2.0
// The safetensors format: eight bytes of header length, a JSON header, tensor data.
//
// Everything a header says is checked against the real size of the file before any of it is used:
// after parsing, the tensors tile the data section exactly, and every product of sizes fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/input_file.h"
#include "models/checkpoint/stored_type.h"

namespace toto {

struct SafetensorsEntry {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;  // row-major; empty for rank 0
  std::uint64_t begin = 0;          // bytes, from the start of the data section
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t bytes() const { return end - begin; }
  [[nodiscard]] std::uint64_t elements() const { return bytes() / bytes_of(type); }
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of storage
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  // where in the file the data section starts

  /// nullptr where there is none of that name.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const;
  std::vector<std::size_t> by_name;  // indices of `entries`, sorted by name
};

/// The length of the header from the first (up to) eight bytes of a file. Throws Error (65):
/// header_too_small, header_too_large, invalid_header_length.
std::uint64_t safetensors_header_length(std::span<const std::byte> first, std::uint64_t file_bytes,
                                        std::string_view where);

/// Checks and reads the JSON of a header. Throws Error (65): invalid_utf8, invalid_json,
/// duplicate_key, invalid_dtype, invalid_shape, invalid_offset, size_overflow, size_mismatch,
/// file_size_mismatch.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t file_bytes,
                                           std::string_view where);

/// Both, for a file in memory.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view where);

/// A file whose header has been checked. Tensors are read one at a time into the caller's memory.
/// Safe to use from several threads.
class SafetensorsFile {
 public:
  /// Throws Error: file_not_found (66), read_failed (74), and the codes above.
  explicit SafetensorsFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_.size(); }
  [[nodiscard]] const SafetensorsHeader& header() const { return header_; }
  [[nodiscard]] std::span<const SafetensorsEntry> entries() const { return header_.entries; }
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const {
    return header_.find(name);
  }
  /// Throws Error missing_tensor (65).
  [[nodiscard]] const SafetensorsEntry& at(std::string_view name) const;

  /// The bytes of a whole tensor as they are stored; `out` has exactly that many. Throws Error:
  /// missing_tensor (65), read_failed (74).
  void read_bytes(std::string_view name, std::span<std::byte> out) const;

  /// A whole F32, F16 or BF16 tensor as float32; `out` has exactly its number of elements. Throws
  /// Error: missing_tensor, invalid_dtype, nonfinite_weight (65), read_failed (74).
  void read_floats(std::string_view name, std::span<float> out) const;

  /// SHA-256 of every byte of the file: what file_sha256() and `toto model info` say.
  [[nodiscard]] std::string content_hash() const;

 private:
  InputFile file_;
  SafetensorsHeader header_;
};

}  // namespace toto
