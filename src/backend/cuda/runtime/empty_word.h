// SPDX-License-Identifier: Apache-2.0
// The word that means "not published yet" in every flag-in-data exchange: between thread blocks
// (flag_in_data.cuh), and from a kernel to the host that polls pinned memory.
#pragma once

#include <cstdint>

namespace toto::cuda {

/// No result has these bits: the NaN that arithmetic makes is 0x7FFFFFFF.
inline constexpr std::uint32_t kEmptyWord = 0xFFFFFFFFU;

}  // namespace toto::cuda
