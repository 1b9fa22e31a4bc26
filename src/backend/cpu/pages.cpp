// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/pages.h"

#include <algorithm>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace toto::cpu {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kSmallPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSlab = std::size_t{32} << 20;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

Pages allocate_pages(std::size_t bytes) {
  if (bytes > std::size_t{1} << 62) throw std::bad_alloc();
  const bool huge = bytes >= kHugePage;
  const std::size_t alignment = huge ? kHugePage : kLine;
  // Only the alignment is huge: what is never touched at the end takes no memory.
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), huge ? kSmallPage : kLine);
  void* at = nullptr;
  if (posix_memalign(&at, alignment, size) != 0) throw std::bad_alloc();
  Pages memory(static_cast<std::byte*>(at));
#ifdef __linux__
  if (huge) madvise(memory.get(), size, MADV_HUGEPAGE);  // a wish; without it all works, slower
#endif
  return memory;
}

std::byte* Arena::take(std::size_t bytes) {
  const std::size_t size = round_up(bytes, kLine);
  if (slabs_.empty() || size > size_ - used_) {
    slabs_.push_back(allocate_pages(std::max(size, kSlab)));
    size_ = std::max(size, kSlab);
    used_ = 0;
  }
  std::byte* memory = slabs_.back().get() + used_;
  used_ += size;
  return memory;
}

}  // namespace toto::cpu
