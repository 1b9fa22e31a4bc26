// SPDX-License-Identifier: Apache-2.0
#include "core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <random>
#include <utility>

#include "core/descriptor.h"
#include "toto/error.hpp"

namespace toto {

// Slots are used again and never freed, so a signal handler can walk the list at any moment.
class PendingFile {
 public:
  /// Notes `path`. Called before the file is made: its name is random, so that there is no moment
  /// at which the file exists and is not noted, and nobody else's file is ever noted.
  static PendingFile* note(const std::string& path) {
    PendingFile* slot = take();
    path.copy(slot->path_.data(), path.size());
    slot->path_[path.size()] = '\0';
    slot->state_.store(State::noted, std::memory_order_release);
    return slot;
  }
  void forget() noexcept { state_.store(State::free, std::memory_order_release); }

  static void unlink_all() noexcept {
    for (PendingFile* slot = first_.load(std::memory_order_acquire); slot; slot = slot->next_) {
      if (slot->state_.load(std::memory_order_acquire) == State::noted) {
        ::unlink(slot->path_.data());
      }
    }
  }

 private:
  enum class State : int { free, taken, noted };

  static PendingFile* take() {
    for (PendingFile* slot = first_.load(std::memory_order_acquire); slot; slot = slot->next_) {
      State expected = State::free;
      if (slot->state_.compare_exchange_strong(expected, State::taken)) return slot;
    }
    auto* slot = new PendingFile;
    slot->next_ = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(slot->next_, slot, std::memory_order_release)) {
    }
    return slot;
  }

  static inline std::atomic<PendingFile*> first_ = nullptr;
  std::atomic<State> state_ = State::taken;
  PendingFile* next_ = nullptr;
  std::array<char, PATH_MAX> path_ = {};
};

namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

/// Where a chain of links ends, whether or not that exists. The caller has seen that it is no ring:
/// stat() says so. As many links as the system itself follows.
std::string follow_links(std::string path) {
  for (int hops = 0; hops < 40; ++hops) {
    std::array<char, PATH_MAX> to;
    const ssize_t length = ::readlink(path.c_str(), to.data(), to.size());
    if (length < 0) return path;  // not a link, or not there
    const std::string target(to.data(), static_cast<std::size_t>(length));
    path = target.starts_with('/') ? target : folder_of(path).append(target);
  }
  return path;
}

/// The descriptor that a name such as /dev/stdout stands for, or -1. Opening the name instead would
/// give a second write position, at the start of whatever stdout was redirected to.
int named_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(prefix)) continue;
    const std::string_view digits = path.substr(prefix.size());
    int fd = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), fd);
    if (error == std::errc() && end == digits.data() + digits.size() && fd >= 0) return fd;
  }
  return -1;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string_view tag) : path_(std::move(path)) {
  buffer_.reserve(kBufferBytes);
  if (const int fd = named_descriptor(path_); fd >= 0) {
    fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (fd_ < 0) fail(errno);
    return;
  }
  struct stat existing = {};
  const bool exists = ::stat(path_.c_str(), &existing) == 0;
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && S_ISDIR(existing.st_mode)) fail(EISDIR);
  if (exists && !S_ISREG(existing.st_mode)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd_ < 0) fail(errno);
    return;
  }
  // A rename would replace a read-only file without asking.
  if (exists && ::access(path_.c_str(), W_OK) != 0) fail(errno);
  open_temporary(follow_links(path_), tag);
  // Read, write and execute only: the new file belongs to whoever runs this, and a set-uid bit
  // would hand out that user's rights. Some file systems have no permissions to set; that is no
  // reason to refuse the file.
  if (exists) ::fchmod(fd_, existing.st_mode & 0777);
}

void AtomicFile::open_temporary(std::string target, std::string_view tag) {
  if (target.empty()) fail(ENOENT);
  if (target.ends_with('/')) fail(EISDIR);
  std::random_device random;
  std::string temporary =
      fmt::format("{}.{}-{:08x}{:08x}.tmp", folder_of(target), tag, random(), random());
  if (temporary.size() >= PATH_MAX) fail(ENAMETOOLONG);
  PendingFile* pending = PendingFile::note(temporary);
  fd_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    const int error = errno;
    pending->forget();
    fail(error);
  }
  // From here on nothing throws until the constructor is done: the destructor will clean up.
  target_ = std::move(target);
  temporary_ = std::move(temporary);
  pending_ = pending;
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (pending_) pending_->forget();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes) {
    write_all(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::flush() {
  write_all(buffer_);
  buffer_.clear();
}

void AtomicFile::write_all(std::span<const std::byte> bytes) {
  if (!toto::write_all(fd_, bytes)) fail(errno);
}

void AtomicFile::sync() {
  flush();
  if (!temporary_.empty() && ::fsync(fd_) != 0) fail(errno);
}

void AtomicFile::commit() {
  sync();
  if (::close(std::exchange(fd_, -1)) != 0) fail(errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  std::exchange(pending_, nullptr)->forget();
  // The name itself reaches the disk with the folder. The file is complete and in place by now, and
  // some file systems cannot sync a folder, so that this is no error.
  const std::string folder = folder_of(target_);
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    ::fsync(fd);
    ::close(fd);
  }
}

void AtomicFile::remove_old() const {
  if (target_.empty() || ::unlink(target_.c_str()) == 0 || errno == ENOENT) return;
  fail(errno);
}

void AtomicFile::fail(int error) const {
  throw Error(ExitStatus::io, "write_failed", fmt::format("cannot write: {}", std::strerror(error)),
              path_);
}

bool same_target(const std::string& a, const std::string& b) {
  const int fd = named_descriptor(a);
  if (fd >= 0 || named_descriptor(b) >= 0) return fd == named_descriptor(b);
  struct stat first = {}, second = {};
  for (const std::string& path : {a, b}) {
    if (::stat(path.c_str(), &first) == 0 && !S_ISREG(first.st_mode)) return false;
  }
  const std::string left = follow_links(a), right = follow_links(b);
  const std::string left_folder = folder_of(left), right_folder = folder_of(right);
  if (left.substr(left_folder.size()) != right.substr(right_folder.size())) return false;
  const auto known = [](const std::string& folder, struct stat& status) {
    return ::stat(folder.empty() ? "." : folder.c_str(), &status) == 0;
  };
  return known(left_folder, first) && known(right_folder, second) &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

void remove_unfinished_files() noexcept { PendingFile::unlink_all(); }

}  // namespace toto
