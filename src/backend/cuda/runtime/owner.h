// SPDX-License-Identifier: Apache-2.0
// Whoever has a resource of the driver has an Owner of it. Nothing of CUDA is needed here, so that
// every build has and tests it; the owners of CUDA's own resources are in owners.h.
#pragma once

#include <utility>

namespace toto::cuda {

/// Holds a handle, the value-initialised one meaning none, and gives it back by Release(handle).
template <typename Handle, auto Release>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) noexcept : handle_(handle) {}
  ~Owner() { reset(); }
  Owner(Owner&& other) noexcept : handle_(other.release()) {}
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = other.release();
    }
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  [[nodiscard]] Handle get() const noexcept { return handle_; }
  /// The handle, which the caller has to give back from now on.
  [[nodiscard]] Handle release() noexcept { return std::exchange(handle_, Handle{}); }
  void reset() noexcept {
    if (handle_ != Handle{}) Release(std::exchange(handle_, Handle{}));
  }

 private:
  Handle handle_{};
};

}  // namespace toto::cuda
