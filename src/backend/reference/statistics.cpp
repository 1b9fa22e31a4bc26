// SPDX-License-Identifier: Apache-2.0
// Statistics of a step: those of every host backend.
#include "backend/expected_views.h"
#include "backend/host_statistics.h"
#include "backend/operation.h"
#include "backend/reference/reference_backend.h"

namespace toto::reference {
namespace {

/// Room of the thread that computes: cases of `verify` are computed side by side.
HostStatistics& statistics() {
  thread_local HostStatistics room;
  return room;
}

}  // namespace

template <typename T>
void ReferenceBackend<T>::reserve_statistics(std::int32_t components, std::int32_t levels,
                                             std::int32_t samples) {
  statistics().reserve(this->workers(), components, levels, samples);
}

template <typename T>
void ReferenceBackend<T>::keep(const Batch& batch, const Batch& source, const PatchShape& shape,
                               const ConstView& y, float* kept, const KeptShape& room) const {
  const OperationSpan span(Operation::keep);
  expected::predicted(*this, batch, shape, y);
  HostStatistics::keep(*this, batch, source, shape, typed<T>(y), kept, room);
}

template <typename T>
void ReferenceBackend<T>::exact_statistics(const Batch& batch, const PatchShape& shape,
                                           const HeadResults& head, const View& params,
                                           const ConstView& loc, const ConstView& scale,
                                           const Levels& levels, float* out) const {
  const OperationSpan span(Operation::exact_statistics);
  expected::statistics(*this, batch, shape, params, loc, scale);
  if (head.output != HeadOutput::parameters) {
    distribution(params.shaped(batch.all_lanes(shape.steps), 4 * shape.components),
                 head.output == HeadOutput::mixture);
  }
  statistics().exact(*this, batch, shape, typed<T>(params), typed<T>(loc), typed<T>(scale), levels,
                     out);
}

template <typename T>
void ReferenceBackend<T>::sample_statistics(const Batch& source, const float* kept,
                                            const KeptShape& room, std::int32_t first,
                                            const Levels& levels, float* out) const {
  const OperationSpan span(Operation::sample_statistics);
  statistics().sampled(*this, source, kept, room, first, levels, out);
}

template <typename T>
void ReferenceBackend<T>::keep_parameters(const Batch& batch, const Batch& source,
                                          const PatchShape& shape, const ConstView& params,
                                          const ConstView& loc, const ConstView& scale, float* out,
                                          std::int32_t horizon) const {
  const OperationSpan span(Operation::keep_parameters);
  expected::statistics(*this, batch, shape, params, loc, scale);
  HostStatistics::keep_parameters(batch, source, shape, typed<T>(params), typed<T>(loc),
                                  typed<T>(scale), out, horizon);
}

template class ReferenceBackend<float>;
template class ReferenceBackend<double>;

}  // namespace toto::reference
