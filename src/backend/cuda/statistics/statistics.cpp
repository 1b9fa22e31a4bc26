// SPDX-License-Identifier: Apache-2.0
// Statistics as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/statistics/statistics.h"

#include "backend/cuda/runtime/device_backend.h"

namespace toto::cuda {

void DeviceBackend::keep(const Batch& batch, const Batch& source, const PatchShape& shape,
                         const void* y, float* kept, std::int32_t horizon, std::int32_t samples) {
  cuda::keep(extent(batch), extent(source).live, shape, floats(y), kept, horizon, samples, stream_);
}

void DeviceBackend::exact_statistics(const Batch& batch, const PatchShape& shape, HeadOutput head,
                                     void* params, const void* loc, const void* scale,
                                     const Levels& levels, float* out) {
  const bool follows = early_.of == params && early_.launches == stream_.launches;
  cuda::exact_statistics(extent(batch), shape, head, floats(params), floats(loc), floats(scale),
                         levels, out, follows ? early_.words : EarlyWords(), stream_);
}

void DeviceBackend::sample_statistics(const Batch& source, const float* kept, std::int32_t horizon,
                                      std::int32_t first, std::int32_t samples,
                                      const Levels& levels, float* out) {
  cuda::sample_statistics(extent(source), kept, horizon, first, samples, levels, out, stream_);
}

}  // namespace toto::cuda
#endif
