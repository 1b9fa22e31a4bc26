// SPDX-License-Identifier: Apache-2.0
// Reading and writing file descriptors that somebody else opened.
//
// The parent of a process may have set O_NONBLOCK on its standard streams (node, ssh and asyncio
// do). EAGAIN then means "not yet", never the end or a failure: both functions wait and go on.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <streambuf>
#include <string>
#include <vector>

namespace toto {

/// At least one byte, or 0 at the end, or -1 with errno.
ssize_t read_some(int fd, std::span<std::byte> out) noexcept;

/// All of the bytes; false, with errno, where the system refuses. Throws and allocates nothing.
bool write_all(int fd, std::span<const std::byte> bytes) noexcept;

/// A descriptor as the buffer of an input stream. Closes it if it `owns` it. A failing read throws
/// Error read_failed (74); the stream passes that on where it was told exceptions(badbit).
class DescriptorBuffer final : public std::streambuf {
 public:
  DescriptorBuffer(int fd, bool owns, std::string name);
  ~DescriptorBuffer() override;

 protected:
  int_type underflow() override;

 private:
  int fd_;
  bool owns_;
  std::string name_;
  std::vector<char> buffer_;
};

}  // namespace toto
