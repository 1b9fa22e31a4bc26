// SPDX-License-Identifier: Apache-2.0
// Maps of matrices for Hopper's copy engine.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "backend/cuda/stream.cuh"

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

/// [rows][pitch], of which `columns` count; beyond its edges there are zeros. Boxes of
/// `box_columns` (128 bytes) by `box_rows` are swizzled as tensor cores want them.
inline CUtensorMap tensor_map(const void* data, std::int64_t columns, std::int64_t rows,
                              std::int64_t pitch, int box_columns, int box_rows) {
  const auto encode = tensor_map_encoder();
  if (encode == nullptr) check(cudaErrorNotSupported, "tensor map");
  CUtensorMap map{};
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(pitch) * 2};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(box_columns),
                             static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t every[2] = {1, 1};
  const CUresult status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, strides,
             box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(status == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue, "tensor map");
  return map;
}

}  // namespace toto::cuda
