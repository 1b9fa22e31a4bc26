// SPDX-License-Identifier: Apache-2.0
#include "core/descriptor.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "toto/error.hpp"

namespace toto {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

/// Whether a call that failed with this errno is to be made again, once the descriptor is ready.
bool ready_again(int fd, short event, int error) noexcept {
  if (error == EINTR) return true;
  if (error != EAGAIN && error != EWOULDBLOCK) return false;
  pollfd one = {fd, event, 0};
  return ::poll(&one, 1, -1) >= 0 || errno == EINTR;
}

}  // namespace

ssize_t read_some(int fd, std::span<std::byte> out) noexcept {
  for (;;) {
    const ssize_t got = ::read(fd, out.data(), out.size());
    if (got >= 0 || !ready_again(fd, POLLIN, errno)) return got;
  }
}

bool write_all(int fd, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (!ready_again(fd, POLLOUT, errno)) {
      return false;
    }
  }
  return true;
}

DescriptorBuffer::DescriptorBuffer(int fd, bool owns, std::string name)
    : fd_(fd), owns_(owns), name_(std::move(name)), buffer_(kBufferBytes) {}

DescriptorBuffer::~DescriptorBuffer() {
  if (owns_) ::close(fd_);
}

DescriptorBuffer::int_type DescriptorBuffer::underflow() {
  const ssize_t got = read_some(fd_, std::as_writable_bytes(std::span(buffer_)));
  if (got < 0) {
    throw Error(ExitStatus::io, "read_failed", fmt::format("cannot read: {}", std::strerror(errno)),
                name_);
  }
  setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
  return got == 0 ? traits_type::eof() : traits_type::to_int_type(buffer_.front());
}

}  // namespace toto
