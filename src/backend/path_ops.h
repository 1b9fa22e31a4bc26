// SPDX-License-Identifier: Apache-2.0
// The part of the seam that coherent paths need: how the steps of a patch go together, and draws
// that do (docs/statistics.md, "Coherent paths").
#pragma once

#include "backend/backend.h"

namespace toto {

class PathOps {
 public:
  virtual ~PathOps() = default;
  PathOps() = default;
  PathOps(const PathOps&) = delete;
  PathOps& operator=(const PathOps&) = delete;

  /// Makes room for so many components. Allocates.
  virtual void reserve(std::int32_t components) = 0;

  /// What the steps of a patch have in common, as the one-patch-ahead forecasts of the context
  /// show: rho [lanes][P], of which rho[s] is for steps s and s + 1 and the last is 0. `context`
  /// has one trajectory of each block. params [rows][P*4*K], and loc and scale [rows][P], which
  /// they are in units of, are the forecasts of the token after each row; x and mask [rows][P] the
  /// values in data units; scores [rows][P] is scratch.
  virtual void neighbours(const Batch& context, const PatchShape& shape, const ConstView& params,
                          const ConstView& loc, const ConstView& scale, const float* x,
                          const std::uint8_t* mask, double* scores, float* rho) const = 0;

  /// As Backend::predict_draw(), but the steps of a patch are a Gaussian Markov chain on the scale
  /// of the standard normal. Lane v of a block of `source` (one trajectory each) has the rho of
  /// variate v.
  virtual void draw(const Batch& batch, const Batch* shared, const Batch& source,
                    const PatchShape& shape, const ConstView& params, const ConstView& loc,
                    const ConstView& scale, const float* rho, const View& y) const = 0;
};

}  // namespace toto
