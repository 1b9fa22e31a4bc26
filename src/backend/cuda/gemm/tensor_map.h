// SPDX-License-Identifier: Apache-2.0
// Maps of matrices for Hopper's copy engine.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "backend/cuda/gemm/stream.cuh"

namespace toto::cuda {

/// The driver's function that makes maps; the library is not linked to the driver. nullptr: it has
/// none.
inline auto tensor_map_encoder() {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                                12000, cudaEnableDefault, &found);
    if (status != cudaSuccess) cudaGetLastError();
    return reinterpret_cast<Encode>(status == cudaSuccess ? function : nullptr);
  }();
  return encode;
}

/// `rank` dimensions, the first of neighbours; strides in bytes, of all but the first. Boxes are
/// swizzled in rows of 128 bytes, as tensor cores want them; beyond the edges there are zeros.
inline CUtensorMap tensor_map(CUtensorMapDataType type, const void* data, int rank,
                              const cuuint64_t* sizes, const cuuint64_t* strides,
                              const cuuint32_t* box) {
  const auto encode = tensor_map_encoder();
  if (encode == nullptr) check(cudaErrorNotSupported, "tensor map");
  constexpr cuuint32_t kEvery[] = {1, 1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult status =
      encode(&map, type, static_cast<cuuint32_t>(rank), const_cast<void*>(data), sizes, strides,
             box, kEvery, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(status == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue, "tensor map");
  return map;
}

}  // namespace toto::cuda
