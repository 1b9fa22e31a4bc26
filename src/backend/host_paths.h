// SPDX-License-Identifier: Apache-2.0
// Coherent paths on backends whose memory is the host's.
#pragma once

#include <vector>

#include "backend/path_ops.h"
#include "statistics/mixture.h"

namespace toto {

/// T: the type of activations (float, double).
template <typename T>
class HostPaths final : public PathOps {
 public:
  explicit HostPaths(const Backend& backend) : backend_(backend) {}
  void reserve(std::int32_t components) override;
  void neighbours(const Batch& context, const PatchShape& shape, const void* params,
                  const void* loc, const void* scale, const float* x, const std::uint8_t* mask,
                  double* scores, float* rho) const override;
  void draw(const Batch& batch, const Batch* shared, const Batch& source, const PatchShape& shape,
            const void* params, const void* loc, const void* scale, const float* rho,
            void* y) const override;

 private:
  /// What one thread needs: room, nothing that lasts.
  struct Worker {
    explicit Worker(std::size_t components) : mixture(components), kept(4 * components) {}
    bool assign(const T* params, std::size_t components);
    Mixture mixture;
    std::vector<double> kept;  // [4][K] of the components that count
  };
  const Backend& backend_;
  std::int32_t components_ = 0;
  mutable std::vector<Worker> workers_;
};

}  // namespace toto
