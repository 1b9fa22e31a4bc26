// SPDX-License-Identifier: Apache-2.0
// Bytes that grow. Large blocks are moved by the page tables (realloc), so that growing never needs
// twice the memory, and new room is not filled with zeros.
#pragma once

#include <algorithm>
#include <cstddef>
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
    void* const grown = std::realloc(data_.get(), capacity);
    if (grown == nullptr) throw std::bad_alloc();
    (void)data_.release();
    data_.reset(static_cast<char*>(grown));
    capacity_ = capacity;
  }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace toto::data
