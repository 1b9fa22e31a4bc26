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

/// [rows][width] in boxes of 128 bytes by `box_rows`; beyond the edges there are zeros.
inline CUtensorMap boxes_of(const void* data, bool bf16, std::int64_t rows, std::int64_t width,
                            int box_rows) {
  const cuuint64_t bytes = bf16 ? 2 : 4;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(width) * bytes};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(128 / bytes),
                            static_cast<cuuint32_t>(box_rows)};
  return tensor_map(bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, data,
                    2, sizes, strides, box);
}

/// The same in boxes of `box_width` columns, of whole 128 bytes: [box_width in 128 bytes][box_rows]
/// of those. The copy engine is asked once for all of them. The width is of whole 128 bytes too.
inline CUtensorMap wide_boxes_of(const void* data, bool bf16, std::int64_t rows, std::int64_t width,
                                 int box_rows, int box_width) {
  const int bytes = bf16 ? 2 : 4;
  const int columns = 128 / bytes;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows),
                              static_cast<cuuint64_t>(width / columns)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(width * bytes), 128};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(columns), static_cast<cuuint32_t>(box_rows),
                            static_cast<cuuint32_t>(box_width / columns)};
  return tensor_map(bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, data,
                    3, sizes, strides, box);
}

}  // namespace toto::cuda
