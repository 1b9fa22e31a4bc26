// SPDX-License-Identifier: Apache-2.0
// Kept trajectories and statistics: one launch each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/runtime/early_words.h"
#include "backend/cuda/runtime/extent.h"

namespace toto::cuda {

void keep(const Extent& batch, const LiveBatch* source, const PatchShape& shape, const float* y,
          float* kept, const KeptShape& room, const Stream& s);
void keep_parameters(const Extent& batch, const LiveBatch* source, const PatchShape& shape,
                     const float* params, const float* loc, const float* scale, float* out,
                     std::int32_t horizon, const Stream& s);
/// `early`: what params [lanes][steps][4][K] are going to be; used where there are few steps.
void exact_statistics(const Extent& batch, const PatchShape& shape, HeadOutput head, float* params,
                      const float* loc, const float* scale, const Levels& levels, float* out,
                      const EarlyWords& early, const Stream& s);
void sample_statistics(const Extent& source, const float* kept, const KeptShape& room,
                       std::int32_t first, const Levels& levels, float* out, const Stream& s);
inline constexpr std::int32_t kMaxSamples = 16384;
inline constexpr std::int32_t kMaxComponents = 32;

}  // namespace toto::cuda
