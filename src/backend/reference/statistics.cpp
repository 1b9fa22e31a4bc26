// SPDX-License-Identifier: Apache-2.0
// Statistics of a step: those of every host backend.
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
                               const void* y, float* kept, const KeptShape& room) const {
  const OperationSpan span(Operation::keep);
  HostStatistics::keep(*this, batch, source, shape, static_cast<const T*>(y), kept, room);
}

template <typename T>
void ReferenceBackend<T>::exact_statistics(const Batch& batch, const PatchShape& shape,
                                           const HeadResults& head, void* params, const void* loc,
                                           const void* scale, const Levels& levels,
                                           float* out) const {
  const OperationSpan span(Operation::exact_statistics);
  if (head.output != HeadOutput::parameters) {
    distribution(params, batch.all_lanes(shape.steps), shape.components,
                 head.output == HeadOutput::mixture);
  }
  statistics().exact(*this, batch, shape, static_cast<const T*>(params), static_cast<const T*>(loc),
                     static_cast<const T*>(scale), levels, out);
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
                                          const PatchShape& shape, const void* params,
                                          const void* loc, const void* scale, float* out,
                                          std::int32_t horizon) const {
  const OperationSpan span(Operation::keep_parameters);
  HostStatistics::keep_parameters(batch, source, shape, static_cast<const T*>(params),
                                  static_cast<const T*>(loc), static_cast<const T*>(scale), out,
                                  horizon);
}

template class ReferenceBackend<float>;
template class ReferenceBackend<double>;

}  // namespace toto::reference
