// SPDX-License-Identifier: Apache-2.0
// Writing a safetensors file as a stream: the header first, then the tensors one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "models/checkpoint/stored_type.h"

namespace toto {

class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    StoredType type = StoredType::f32;
    std::vector<std::int64_t> shape;
  };

  /// Writes the header: tensors are stored in the order given. Throws Error write_failed (74).
  SafetensorsWriter(const std::string& path, std::span<const Tensor> tensors,
                    const std::map<std::string, std::string>& metadata);

  /// The next bytes of data, in pieces of any size.
  void write(std::span<const std::byte> bytes);
  /// Brings everything onto the disk. Every byte that the header promises must have been written.
  void sync();
  void remove_old() const { file_.remove_old(); }
  /// Does the same, and the file appears.
  void commit();

  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  AtomicFile file_;
  std::uint64_t file_bytes_ = 0;  // what the file will have
  std::uint64_t written_ = 0;     // what it has
};

}  // namespace toto
