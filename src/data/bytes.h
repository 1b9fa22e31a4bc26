// SPDX-License-Identifier: Apache-2.0
// Bytes that grow. Large blocks are moved by the page tables (realloc), so that growing never needs
// twice the memory, and new room is not filled with zeros.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

namespace toto::data {

class Bytes {
 public:
  [[nodiscard]] std::string_view view() const { return {data_.get(), size_}; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Room for `count` bytes more; grown() says how many of them have been filled.
  std::span<char> room(std::size_t count) {
    if (size_ + count > capacity_) reserve(std::max(size_ + count, capacity_ + capacity_ / 2));
    return {data_.get() + size_, count};
  }
  void grown(std::size_t count) { size_ += count; }

  void append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(room(text.size()).data(), text.data(), text.size());
    size_ += text.size();
  }

  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    char* const old = data_.release();
    void* const grown = std::realloc(old, capacity);
    data_.reset(grown != nullptr ? static_cast<char*>(grown) : old);
    if (grown == nullptr) throw std::bad_alloc();
    capacity_ = capacity;
  }

  /// Gives the memory of the first `count` bytes back. They are not to be read again.
  void spend(std::size_t count) noexcept {
    static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(data_.get());
    const std::uintptr_t begin = (first + spent_ + page - 1) / page * page;
    const std::uintptr_t end = (first + count) / page * page;  // whole pages alone
    if (count < spent_ + kPiece || end <= begin) return;
    (void)::madvise(data_.get() + (begin - first), end - begin, MADV_DONTNEED);
    spent_ = end - first;
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;  // calls are few

  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::size_t spent_ = 0;
};

}  // namespace toto::data
