// SPDX-License-Identifier: Apache-2.0
#include "models/backend_choice.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/runtime/cuda_backend.h"

namespace toto {

std::shared_ptr<Backend> make_backend(const LoadOptions& options) {
  const bool wide = options.precision == Precision::float64;
  const bool narrow = options.precision == Precision::bfloat16;
  const std::string& named = options.backend;
  const std::string backend = !named.empty() ? named : wide ? "reference" : "cpu";
  if (backend == "reference") {
    if (narrow) {
      throw Error(ExitStatus::usage, "unsupported_precision",
                  "the reference backend has no bfloat16 weights", {},
                  "use float32 or float64, or the cpu backend");
    }
    return wide ? make_reference_backend_f64() : make_reference_backend_f32();
  }
  if (backend == "cpu") {
    if (wide) {
      throw Error(ExitStatus::usage, "unsupported_precision", "the cpu backend has no float64", {},
                  "use float32, tf32 or bfloat16, or the reference backend");
    }
    return make_cpu_backend(
        {options.threads, narrow ? CpuWeights::bf16 : CpuWeights::f32, options.isa,
         options.mode == Mode::reduce_overhead || options.mode == Mode::max_autotune});
  }
  if (backend == "cuda") {
    if (wide) {
      throw Error(ExitStatus::usage, "unsupported_precision", "the cuda backend has no float64", {},
                  "use float32, tf32 or bfloat16, or the reference backend");
    }
    const CudaWeights type = narrow                                 ? CudaWeights::bf16
                             : options.precision == Precision::tf32 ? CudaWeights::tf32
                                                                    : CudaWeights::f32;
    return make_cuda_backend({type, options.threads, options.device_index});
  }
  throw Error(ExitStatus::usage, "unknown_backend", "no backend '" + backend + "'", {},
              "valid backends: cpu, cuda, reference");
}

}  // namespace toto
