// SPDX-License-Identifier: Apache-2.0
#include "core/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/descriptor.h"
#include "core/sha256.h"

namespace toto {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    throw Error(ExitStatus::missing_input, "file_not_found", "there is no such file", path);
  }
  throw Error(ExitStatus::io, "read_failed", fmt::format("cannot read: {}", std::strerror(error)),
              path);
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK changes nothing for a regular file, and keeps a pipe from blocking the open.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) fail(path_, errno);
  struct stat status = {};
  const int error = ::fstat(fd_, &status) != 0 ? errno : 0;
  if (error != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    if (error != 0) fail(path_, error);
    throw Error(ExitStatus::io, "read_failed", "cannot read: not a regular file", path_);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      fail(path_, errno);
    }
    if (got == 0) {
      throw Error(
          ExitStatus::io, "read_failed",
          fmt::format("the file ends at byte {}; it had {} when it was opened", offset, size_),
          path_);
    }
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::string sha256_of(const InputFile& file) {
  Sha256 hash;
  std::vector<std::byte> chunk(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < file.size(); at += chunk.size()) {
    chunk.resize(std::min<std::uint64_t>(chunk.size(), file.size() - at));
    file.read(at, chunk);
    hash.update(chunk);
  }
  return hash.hex();
}

std::string read_text_file(const std::string& path, std::size_t limit, ExitStatus status,
                           LookAtPiece look) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) fail(path, errno);
  std::string text;
  std::vector<std::byte> piece(std::size_t{1} << 16);
  while (text.size() <= limit) {
    const ssize_t got = read_some(fd.get(), piece);
    if (got < 0) fail(path, errno);
    if (got == 0) return text;
    const std::string_view more(reinterpret_cast<const char*>(piece.data()),
                                static_cast<std::size_t>(got));
    if (look) look(more, text.size(), path);
    text.append(more);
  }
  throw Error(status, "file_too_large", fmt::format("larger than {} bytes", limit), path);
}

}  // namespace toto
