// SPDX-License-Identifier: Apache-2.0
// Memory for weights and activations: aligned, and in huge pages where the system gives them, since
// streaming hundreds of megabytes through small pages costs a page walk every 4 KiB.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace toto::cpu {

struct FreePages {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using Pages = std::unique_ptr<std::byte[], FreePages>;

/// At least 64-byte aligned, not zeroed; throws std::bad_alloc. To be given back with std::free.
Pages allocate_pages(std::size_t bytes);

/// Hands out memory that lives as long as the arena, one piece after the other, so that weights lie
/// together in few huge pages.
class Arena {
 public:
  std::byte* take(std::size_t bytes);

 private:
  std::vector<Pages> slabs_;
  std::size_t size_ = 0;  // of the last slab
  std::size_t used_ = 0;
};

}  // namespace toto::cpu
