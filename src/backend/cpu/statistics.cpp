// SPDX-License-Identifier: Apache-2.0
// Statistics of a step: those of every host backend.
#include "backend/cpu/cpu_backend.h"
#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cpu {

void CpuBackend::reserve_statistics(std::int32_t components, std::int32_t levels,
                                    std::int32_t samples) {
  statistics_.reserve(workers(), components, levels, samples);
}

void CpuBackend::keep(const Batch& batch, const Batch& source, const PatchShape& shape,
                      const ConstView& y, float* kept, const KeptShape& room) const {
  const OperationSpan span(Operation::keep);
  expected::predicted(*this, batch, shape, y);
  HostStatistics::keep(*this, batch, source, shape, typed<float>(y), kept, room);
}

void CpuBackend::exact_statistics(const Batch& batch, const PatchShape& shape,
                                  const HeadResults& head, const View& params, const ConstView& loc,
                                  const ConstView& scale, const Levels& levels, float* out) const {
  const OperationSpan span(Operation::exact_statistics);
  expected::statistics(*this, batch, shape, params, loc, scale);
  if (head.output != HeadOutput::parameters) {
    distribution(params.shaped(batch.all_lanes(shape.steps), 4 * shape.components),
                 head.output == HeadOutput::mixture);
  }
  statistics_.exact(*this, batch, shape, typed<float>(params), typed<float>(loc),
                    typed<float>(scale), levels, out);
}

void CpuBackend::sample_statistics(const Batch& source, const float* kept, const KeptShape& room,
                                   std::int32_t first, const Levels& levels, float* out) const {
  const OperationSpan span(Operation::sample_statistics);
  statistics_.sampled(*this, source, kept, room, first, levels, out);
}

void CpuBackend::keep_parameters(const Batch& batch, const Batch& source, const PatchShape& shape,
                                 const ConstView& params, const ConstView& loc,
                                 const ConstView& scale, float* out, std::int32_t horizon) const {
  const OperationSpan span(Operation::keep_parameters);
  expected::statistics(*this, batch, shape, params, loc, scale);
  HostStatistics::keep_parameters(batch, source, shape, typed<float>(params), typed<float>(loc),
                                  typed<float>(scale), out, horizon);
}

}  // namespace toto::cpu
