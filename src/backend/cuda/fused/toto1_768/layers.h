// SPDX-License-Identifier: Apache-2.0
// The fused forward of the published model's widths: README.md.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime/fused_forward.h"
#include "backend/cuda/runtime/owners.h"

namespace toto::cuda {

/// What a model has up to the first product of its head, as it lies on the device.
class LayerStack final : public FusedForward {
 public:
  /// Whether this device can run these layers in one launch.
  static bool possible(const StackWeights& weights, CudaWeights type, const Stream& s);
  /// Throws std::bad_alloc, Error device_failed (70).
  LayerStack(const StackWeights& weights, CudaWeights type);

  [[nodiscard]] std::int32_t max_rows() const override;
  [[nodiscard]] bool embeds() const override;
  [[nodiscard]] bool multiplies_after() const override;
  [[nodiscard]] EarlyWords words_after() const override;
  void run(const Call& call, const Stream& s) const override;

 private:
  CudaWeights type_;
  Matrix embed_;
  ConstView labels_;
  Matrix after_;
  std::vector<bool> space_;  // of each layer
  DeviceMemory layers_;
  DeviceMemory wires_;
  DeviceMemory set_;
};

}  // namespace toto::cuda
