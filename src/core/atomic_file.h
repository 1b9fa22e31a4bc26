// SPDX-License-Identifier: Apache-2.0
// Output files that appear whole or not at all.
//
// The bytes go to a temporary file in the folder of the target; commit() flushes it to the disk and
// renames it over the target. Whatever happens before that leaves the target as it was.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace toto {

class PendingFile;  // a slot of the registry behind remove_unfinished_files()

/// A target that is a link is followed, and what it points to is replaced; a replaced file keeps
/// its permissions, but no set-uid bit. Devices, pipes, /dev/stdout, /dev/stderr and /dev/fd/N have
/// nothing to rename and are written straight through. Every function throws Error write_failed
/// (74).
class AtomicFile {
 public:
  /// The temporary file is called `.TAG-0123456789abcdef.tmp`, with random digits.
  explicit AtomicFile(std::string path, std::string_view tag = "toto");
  ~AtomicFile();  ///< removes the temporary file unless committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Brings everything written so far onto the disk: what can fail for lack of space has then been
  /// done, so that several files can be committed together.
  void sync();
  void commit();
  /// Removes what commit() will replace: between the two there is neither the old nor the new file.
  void remove_old() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void open_temporary(std::string target, std::string_view tag);
  void flush();
  void write_all(std::span<const std::byte> bytes);
  [[noreturn]] void fail(int error) const;

  std::string path_;       // as the caller named it
  std::string target_;     // what is replaced, links followed; empty: written straight through
  std::string temporary_;  // empty: none, or already renamed
  PendingFile* pending_ = nullptr;
  int fd_ = -1;
  std::vector<std::byte> buffer_;
};

/// Whether writing to the two paths would write to one file: links followed, names of the same
/// descriptor (/dev/stdout, /dev/fd/1) alike. Devices such as /dev/null may be shared.
[[nodiscard]] bool same_target(const std::string& a, const std::string& b);

/// Unlinks the temporary files of all AtomicFiles that are not committed yet. Async-signal-safe, so
/// that a handler can leave no partial file behind before it ends the process.
void remove_unfinished_files() noexcept;

}  // namespace toto
