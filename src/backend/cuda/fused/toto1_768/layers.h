// SPDX-License-Identifier: Apache-2.0
// The embedding, all layers of the context pass and the product after them in one launch, for few
// rows and the published model's widths: almost every processor has one block of threads, which
// streams its share of all weights ahead and waits for nothing but the words that others compute.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/runtime/cuda_backend.h"
#include "backend/cuda/runtime/kernels.h"

namespace toto::cuda {

/// What a model has up to the first product of its head, as it lies on the device.
class LayerStack {
 public:
  /// Whether this device can take them in one launch.
  static bool possible(const StackWeights& weights, CudaWeights type, const Stream& s);
  /// Throws std::bad_alloc, Error device_failed (70).
  LayerStack(const StackWeights& weights, CudaWeights type);
  ~LayerStack();
  LayerStack(const LayerStack&) = delete;
  LayerStack& operator=(const LayerStack&) = delete;

  /// Whether run() begins with scaled values; otherwise with rows that are embedded and have their
  /// labels, which embed() and labels() are for.
  [[nodiscard]] bool embeds() const;
  [[nodiscard]] const Matrix& embed() const { return embed_; }
  [[nodiscard]] const void* labels() const { return labels_; }
  /// Whether run() goes on to the product after the layers, or ends with the last tokens.
  [[nodiscard]] bool multiplies_after() const;
  [[nodiscard]] const Matrix& after() const { return after_; }
  /// What a kernel that is launched next can read of that product before run() has ended.
  [[nodiscard]] EarlyWords words_after() const;

  struct Call {
    const LiveBatch* all;
    const LiveBatch* last;
    std::int32_t most_rows;  // of `all`, for which there is room in x
    Rotary rotary;
    std::span<const KvLayer> kv;  // of the time layers
    const float* x;               // [rows][P] if embeds(), else [rows][768]
    float* tokens;                // [lanes][768], the last ones, if not multiplies_after()
    std::int32_t outs;            // of the product after the layers
    float* y;                     // [lanes][outs], if multiplies_after()
  };
  /// Up to kFewRows rows. The bits are those of the operations one by one.
  void run(const Call& call, const Stream& s) const;

 private:
  CudaWeights type_;
  Matrix embed_;
  const void* labels_;
  Matrix after_;
  std::vector<bool> space_;  // of each layer
  void* layers_ = nullptr;
  void* wires_ = nullptr;
  void* set_ = nullptr;
};

}  // namespace toto::cuda
