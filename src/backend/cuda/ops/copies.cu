// SPDX-License-Identifier: Apache-2.0
// Copies between the host's pinned memory and the device's by a kernel: for a few pages that is
// sooner done than the copy engine begins, and the kernels around it may overlap it.
#include "backend/cuda/ops/copies.h"

namespace toto::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) copy_words(uint4* to, const uint4* from, int count) {
  begin_kernel();
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i < count) to[i] = from[i];
}

}  // namespace

void copy_few(void* to, const void* from, std::size_t bytes, const Stream& s) {
  const auto count = static_cast<int>(bytes / sizeof(uint4));
  launch(copy_words, dim3(ceil_div(count, kThreads)), dim3(kThreads), 0, s, static_cast<uint4*>(to),
         static_cast<const uint4*>(from), count);
}

}  // namespace toto::cuda
