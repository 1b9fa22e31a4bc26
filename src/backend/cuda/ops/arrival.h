// SPDX-License-Identifier: Apache-2.0
// What a kernel copies to the device itself before it reads it there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace toto::cuda {

/// Pinned memory that goes to `device` first: whole sixteen bytes; 0: nothing.
struct Arrival {
  void* device = nullptr;
  const void* host = nullptr;
  std::size_t bytes = 0;

  /// Whether that is worth it where a thread block of each lane reads all of it.
  [[nodiscard]] static bool pays(std::size_t bytes, std::int32_t lanes) {
    constexpr std::size_t kMost = std::size_t{16} << 10U;  // for all lanes
    return bytes * static_cast<std::size_t>(lanes) <= kMost && bytes % 16 == 0;
  }
};

#ifdef __CUDACC__
/// Brings it to `image` in the shared memory of each thread block, and by the first one to where
/// the device keeps it.
__device__ inline void take_arrival(const Arrival& a, std::byte* image) {
  const auto count = static_cast<std::int32_t>(a.bytes / sizeof(uint4));
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count;
       i += static_cast<std::int32_t>(blockDim.x)) {
    const uint4 v = static_cast<const uint4*>(a.host)[i];
    reinterpret_cast<uint4*>(image)[i] = v;
    if (blockIdx.x == 0) static_cast<uint4*>(a.device)[i] = v;
  }
  __syncthreads();
}
/// What lies at `p` of the device, in what arrived.
template <typename T>
__device__ T* in_image(T* p, const Arrival& a, std::byte* image) {
  // From the image, not from p: that of a kernel's argument the compiler believes to be global.
  return reinterpret_cast<T*>(
      image + (reinterpret_cast<const std::byte*>(p) - static_cast<const std::byte*>(a.device)));
}
/// The same if anything has arrived.
template <typename T>
__device__ T* arrived(T* p, const Arrival& a, std::byte* image) {
  return a.bytes == 0 ? p : in_image(p, a, image);
}
#endif

}  // namespace toto::cuda
