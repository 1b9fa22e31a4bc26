// SPDX-License-Identifier: Apache-2.0
// The hook for a kernel that carries out a whole prefill in one launch (Backend::stack()). A folder
// of backend/cuda/fused implements it; nothing outside that folder knows how. Builds without one
// (TOTO_CUDA_FUSED=OFF, or the folder deleted) have the empty factory below and run the operations
// one by one, with the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/ops/rotary_tables.h"
#include "backend/cuda/runtime/cuda_backend.h"
#include "backend/cuda/runtime/early_words.h"

namespace toto::cuda {

/// A model's layers, prepared to run in one launch.
class FusedForward {
 public:
  FusedForward() = default;
  virtual ~FusedForward() = default;
  FusedForward(const FusedForward&) = delete;
  FusedForward& operator=(const FusedForward&) = delete;

  /// The most rows of one call.
  [[nodiscard]] virtual std::int32_t max_rows() const = 0;
  /// Whether run() begins with scaled values; otherwise the caller has embedded the rows and set
  /// their labels.
  [[nodiscard]] virtual bool embeds() const = 0;
  /// Whether run() goes on to the product after the layers, or ends with the last tokens.
  [[nodiscard]] virtual bool multiplies_after() const = 0;
  /// What the next kernel can read of that product before run() has ended.
  [[nodiscard]] virtual EarlyWords words_after() const = 0;

  struct Call {
    const LiveBatch* all;
    const LiveBatch* last;   // that go on after the last time layer; nullptr: all do
    std::int32_t most_rows;  // of `all`, for which there is room in x
    RotaryTables rotary;
    std::span<const KvLayer> kv;  // of the time layers
    const float* x;               // [rows][P] if embeds(), else [rows][D]
    float* tokens;                // [lanes][D], those that went on, if not multiplies_after()
    std::int32_t outs;            // of the product after the layers
    float* y;                     // [lanes][outs], if multiplies_after()
  };
  /// Up to max_rows() rows. The bits are those of the operations one by one.
  virtual void run(const Call& call, const Stream& s) const = 0;
};

#ifdef TOTO_CUDA_FUSED
/// nullptr: not for this model or this device. Throws std::bad_alloc, Error device_failed (70).
std::unique_ptr<FusedForward> make_fused_forward(const StackWeights& weights, CudaWeights type,
                                                 const Stream& s);
#else
inline std::unique_ptr<FusedForward> make_fused_forward(const StackWeights& /*weights*/,
                                                        CudaWeights /*type*/, const Stream& /*s*/) {
  return nullptr;
}
#endif

}  // namespace toto::cuda
