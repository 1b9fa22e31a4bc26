// SPDX-License-Identifier: Apache-2.0
// Replaces operator new for the whole test program.
#include "support/counted_allocations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace {
std::atomic<std::uint64_t> g_allocations{0};
}  // namespace

#ifdef TOTO_SANITIZED
bool toto::test::allocations_are_counted() { return false; }
#else
bool toto::test::allocations_are_counted() { return true; }

void* operator new(std::size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++g_allocations;
  const auto a = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(a, (size / a + 1) * a)) return memory;
  throw std::bad_alloc();
}
// Inlined without the new that they belong to, they would look like a mismatch to g++.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
#endif

std::uint64_t toto::test::allocations() { return g_allocations.load(); }

TEST(CountedAllocations, SeesNew) {
  if (!toto::test::allocations_are_counted()) GTEST_SKIP();
  const std::uint64_t before = toto::test::allocations();
  const auto kept = std::make_unique<int>(1);
  EXPECT_GT(toto::test::allocations(), before);
}
