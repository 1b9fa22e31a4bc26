// SPDX-License-Identifier: Apache-2.0
// Copies between pinned memory and the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/gemm/stream.cuh"

namespace toto::cuda {

/// A copy that a kernel makes, between pinned memory and the device's: whole sixteen bytes, sooner
/// than the copy engine up to kFewBytes.
inline constexpr std::size_t kFewBytes = std::size_t{64} << 10U;
void copy_few(void* to, const void* from, std::size_t bytes, const Stream& s);

}  // namespace toto::cuda
