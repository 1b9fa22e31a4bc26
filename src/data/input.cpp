// SPDX-License-Identifier: Apache-2.0
// Files and standard input, opened.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "data/table.h"

namespace toto::data {

Input::Input(const std::string& path) : name_(path == "-" ? "<stdin>" : path), stream_(nullptr) {
  const bool opens = path != "-";
  const int fd = opens ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  if (fd < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      throw Error(ExitStatus::missing_input, "file_not_found", "there is no such file", path);
    }
    throw Error(ExitStatus::io, "read_failed", fmt::format("cannot read: {}", std::strerror(error)),
                path);
  }
  buffer_ = std::make_unique<DescriptorBuffer>(fd, opens, name_);
  stream_.rdbuf(buffer_.get());
  stream_.exceptions(std::ios::badbit);  // what the buffer throws says what went wrong
}

}  // namespace toto::data
