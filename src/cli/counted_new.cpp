// SPDX-License-Identifier: Apache-2.0
// Replaces operator new for the program, to count its calls: `toto verify` shows that a forecast
// makes none. All forms are here, so that none is left to a sanitizer whose delete would not fit.
// This file belongs to the program alone: in a library it would free what others have allocated.
#include <cstdlib>
#include <new>

#include "cli/allocations.h"

namespace {

void* take(std::size_t size) noexcept {
  toto::cli::count_allocation();
  return std::malloc(size == 0 ? 1 : size);
}

void* take(std::size_t size, std::align_val_t alignment) noexcept {
  toto::cli::count_allocation();
  const auto a = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(a, (size + a) / a * a);  // at least one multiple
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return or_throw(take(size)); }
void* operator new[](std::size_t size) { return or_throw(take(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void* operator new(std::size_t size, std::align_val_t a) { return or_throw(take(size, a)); }
void* operator new[](std::size_t size, std::align_val_t a) { return or_throw(take(size, a)); }
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(size, a);
}
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(size, a);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
