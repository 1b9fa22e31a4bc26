// SPDX-License-Identifier: Apache-2.0
// Coherent paths of mixtures on a CUDA device.
#pragma once

#include "backend/cuda/gemm/stream.cuh"
#include "backend/path_ops.h"

namespace toto::cuda {

class DevicePaths final : public PathOps {
 public:
  explicit DevicePaths(const Stream& stream) : stream_(stream) {}  // it must outlive this
  void reserve(std::int32_t /*components*/) override {}
  void neighbours(const Batch& context, const PatchShape& shape, const ConstView& params,
                  const ConstView& loc, const ConstView& scale, const float* x,
                  const std::uint8_t* mask, double* scores, float* rho) const override;
  void draw(const Batch& batch, const Batch* shared, const Batch& source, const PatchShape& shape,
            const ConstView& params, const ConstView& loc, const ConstView& scale, const float* rho,
            const View& y) const override;

 private:
  const Stream& stream_;
};

/// Forecasts of the context and what came: all [rows][P], params [rows][P*4*K].
struct Forecasts {
  const float *params, *loc, *scale, *x;
  const std::uint8_t* mask;
};
void neighbours(const Batch& context, const PatchShape& shape, const Forecasts& f, double* scores,
                float* rho, const Stream& s);

/// What draws are made of: params [lanes][steps*4*K], loc and scale [lanes][P], of the shared lanes
/// where there are some.
struct Mixtures {
  const float *params, *loc, *scale;
};
void draw_paths(const Batch& batch, const Batch* shared, const Batch& source,
                const PatchShape& shape, const Mixtures& m, const float* rho, float* y,
                const Stream& s);

}  // namespace toto::cuda
