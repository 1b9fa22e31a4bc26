// SPDX-License-Identifier: Apache-2.0
#include "models/backend_choice.h"

#include <fmt/format.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/runtime/cuda_backend.h"
#include "toto/settings.hpp"

namespace toto {

namespace {

[[noreturn]] void refuse(const std::string& message, const char* remedy) {
  throw Error(ExitStatus::usage, "unsupported_precision", message, {}, remedy);
}

}  // namespace

std::shared_ptr<Backend> make_backend(const LoadOptions& options) {
  const bool wide = options.precision == Precision::float64;
  const bool narrow = options.precision == Precision::bfloat16;
  const bool int8 = options.precision == Precision::int8;
  const std::string& named = options.backend;
  const std::string backend = !named.empty() ? named : wide ? "reference" : "cpu";
  if (backend == "reference") {
    if (narrow || int8) {
      refuse(fmt::format("the reference backend has no {} weights", word(options.precision)),
             "use float32 or float64, or the cpu backend");
    }
    return wide ? make_reference_backend_f64() : make_reference_backend_f32();
  }
  if (backend == "cpu") {
    if (wide) {
      refuse("the cpu backend has no float64",
             "use float32, tf32, bfloat16 or int8, or the reference backend");
    }
    const CpuWeights type = narrow ? CpuWeights::bf16 : int8 ? CpuWeights::int8 : CpuWeights::f32;
    return make_cpu_backend(
        {options.threads, type, options.isa,
         options.mode == Mode::reduce_overhead || options.mode == Mode::max_autotune});
  }
  if (backend == "cuda") {
    if (wide) {
      refuse("the cuda backend has no float64",
             "use float32, tf32 or bfloat16, or the reference backend");
    }
    if (int8) {
      refuse("the cuda backend has no int8 weights", "use float32, tf32 or bfloat16, or the CPU");
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
