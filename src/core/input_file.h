// SPDX-License-Identifier: Apache-2.0
// Reading files by position, with errors that name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "toto/error.hpp"

namespace toto {

/// A regular file open for reading. Safe to read from several threads.
class InputFile {
 public:
  /// Throws Error: file_not_found (66), read_failed (74).
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }  // when it was opened

  /// Fills `out` from byte `offset` on. Throws Error read_failed (74), also where the file ends
  /// before that.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// SHA-256 of every byte, as 64 hexadecimal digits. Throws Error read_failed (74).
std::string sha256_of(const InputFile& file);

/// Looks at a piece of a file as it is read, `offset` bytes from its start; throws to end it.
using LookAtPiece = void (*)(std::string_view piece, std::size_t offset, const std::string& path);

/// A whole text file of at most `limit` bytes; pipes are fine. Throws Error: file_not_found (66),
/// read_failed (74), file_too_large (`status`), and what `look` throws.
std::string read_text_file(const std::string& path, std::size_t limit, ExitStatus status,
                           LookAtPiece look = nullptr);

}  // namespace toto
