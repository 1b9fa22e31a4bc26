// SPDX-License-Identifier: Apache-2.0
// Coherent paths in plain loops, in double: what the fast ones are compared with.
#pragma once

#include "backend/path_ops.h"

namespace toto::reference {

/// T: the type of activations (float, double).
template <typename T>
class ReferencePaths final : public PathOps {
 public:
  void reserve(std::int32_t components) override;
  void neighbours(const Batch& context, const PatchShape& shape, const ConstView& params,
                  const ConstView& loc, const ConstView& scale, const float* x,
                  const std::uint8_t* mask, double* scores, float* rho) const override;
  void draw(const Batch& batch, const Batch* shared, const Batch& source, const PatchShape& shape,
            const ConstView& params, const ConstView& loc, const ConstView& scale, const float* rho,
            const View& y) const override;
};

}  // namespace toto::reference
