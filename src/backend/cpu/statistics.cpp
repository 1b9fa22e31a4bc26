// SPDX-License-Identifier: Apache-2.0
// Statistics of a step: those of every host backend.
#include "backend/cpu/cpu_backend.h"
#include "backend/operation.h"

namespace toto::cpu {

void CpuBackend::reserve_statistics(std::int32_t components, std::int32_t levels,
                                    std::int32_t samples) {
  statistics_.reserve(workers(), components, levels, samples);
}

void CpuBackend::keep(const Batch& batch, const Batch& source, const PatchShape& shape,
                      const void* y, float* kept, const KeptShape& room) const {
  const OperationSpan span(Operation::keep);
  HostStatistics::keep(*this, batch, source, shape, static_cast<const float*>(y), kept, room);
}

void CpuBackend::exact_statistics(const Batch& batch, const PatchShape& shape,
                                  const HeadResults& head, void* params, const void* loc,
                                  const void* scale, const Levels& levels, float* out) const {
  const OperationSpan span(Operation::exact_statistics);
  if (head.output != HeadOutput::parameters) {
    distribution(params, batch.all_lanes(shape.steps), shape.components,
                 head.output == HeadOutput::mixture);
  }
  statistics_.exact(*this, batch, shape, static_cast<const float*>(params),
                    static_cast<const float*>(loc), static_cast<const float*>(scale), levels, out);
}

void CpuBackend::sample_statistics(const Batch& source, const float* kept, const KeptShape& room,
                                   std::int32_t first, const Levels& levels, float* out) const {
  const OperationSpan span(Operation::sample_statistics);
  statistics_.sampled(*this, source, kept, room, first, levels, out);
}

void CpuBackend::keep_parameters(const Batch& batch, const Batch& source, const PatchShape& shape,
                                 const void* params, const void* loc, const void* scale, float* out,
                                 std::int32_t horizon) const {
  const OperationSpan span(Operation::keep_parameters);
  HostStatistics::keep_parameters(batch, source, shape, static_cast<const float*>(params),
                                  static_cast<const float*>(loc), static_cast<const float*>(scale),
                                  out, horizon);
}

}  // namespace toto::cpu
