// SPDX-License-Identifier: Apache-2.0
// Statistics as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/statistics/statistics.h"

#include "backend/cuda/runtime/device_backend.h"
#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cuda {

void DeviceBackend::keep(const Batch& batch, const Batch& source, const PatchShape& shape,
                         const ConstView& y, float* kept, const KeptShape& room) const {
  const OperationSpan span(Operation::keep);
  expected::predicted(*this, batch, shape, y);
  cuda::keep(extent(batch), extent(source).live, shape, floats(y), kept, room, stream_);
}

void DeviceBackend::exact_statistics(const Batch& batch, const PatchShape& shape,
                                     const HeadResults& head, const View& params,
                                     const ConstView& loc, const ConstView& scale,
                                     const Levels& levels, float* out) const {
  const OperationSpan span(Operation::exact_statistics);
  expected::statistics(*this, batch, shape, params, loc, scale);
  const EarlyResults& early = head.early;
  const bool follows = early.by != nullptr && early.results.data == params.data &&
                       early.launches == stream_.launches;
  cuda::exact_statistics(
      extent(batch), shape, head.output, floats(params), floats(loc), floats(scale), levels, out,
      follows ? static_cast<const DeviceStack*>(early.by)->words : EarlyWords(), stream_);
}

void DeviceBackend::sample_statistics(const Batch& source, const float* kept, const KeptShape& room,
                                      std::int32_t first, const Levels& levels, float* out) const {
  const OperationSpan span(Operation::sample_statistics);
  cuda::sample_statistics(extent(source), kept, room, first, levels, out, stream_);
}

void DeviceBackend::keep_parameters(const Batch& batch, const Batch& source,
                                    const PatchShape& shape, const ConstView& params,
                                    const ConstView& loc, const ConstView& scale, float* out,
                                    std::int32_t horizon) const {
  const OperationSpan span(Operation::keep_parameters);
  expected::statistics(*this, batch, shape, params, loc, scale);
  cuda::keep_parameters(extent(batch), extent(source).live, shape, floats(params), floats(loc),
                        floats(scale), out, horizon, stream_);
}

}  // namespace toto::cuda
#endif
