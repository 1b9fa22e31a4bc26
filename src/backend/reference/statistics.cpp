// SPDX-License-Identifier: Apache-2.0
// Statistics of a step: those of every host backend.
#include "backend/reference/reference_backend.h"

namespace toto::reference {

template <typename T>
void ReferenceBackend<T>::reserve_statistics(std::int32_t components, std::int32_t levels,
                                             std::int32_t samples) {
  statistics_.reserve(this->workers(), components, levels, samples);
}

template <typename T>
void ReferenceBackend<T>::keep(const Batch& batch, const Batch& source, const PatchShape& shape,
                               const void* y, float* kept, const KeptShape& room) const {
  HostStatistics::keep(*this, batch, source, shape, static_cast<const T*>(y), kept, room);
}

template <typename T>
void ReferenceBackend<T>::exact_statistics(const Batch& batch, const PatchShape& shape,
                                           HeadOutput head, void* params, const void* loc,
                                           const void* scale, const Levels& levels,
                                           float* out) const {
  if (head != HeadOutput::parameters) {
    distribution(params, batch.all_lanes(shape.steps), shape.components,
                 head == HeadOutput::mixture);
  }
  statistics_.exact(*this, batch, shape, static_cast<const T*>(params), static_cast<const T*>(loc),
                    static_cast<const T*>(scale), levels, out);
}

template <typename T>
void ReferenceBackend<T>::sample_statistics(const Batch& source, const float* kept,
                                            const KeptShape& room, std::int32_t first,
                                            const Levels& levels, float* out) const {
  statistics_.sampled(*this, source, kept, room, first, levels, out);
}

template <typename T>
void ReferenceBackend<T>::keep_parameters(const Batch& batch, const Batch& source,
                                          const PatchShape& shape, const void* params,
                                          const void* loc, const void* scale, float* out,
                                          std::int32_t horizon) const {
  HostStatistics::keep_parameters(batch, source, shape, static_cast<const T*>(params),
                                  static_cast<const T*>(loc), static_cast<const T*>(scale), out,
                                  horizon);
}

template class ReferenceBackend<float>;
template class ReferenceBackend<double>;

}  // namespace toto::reference
