// SPDX-License-Identifier: Apache-2.0
#include "models/cpu_fallback.h"

#include <new>

#include "core/log.h"

namespace toto {

std::shared_ptr<Model::Impl> load_with_cpu_fallback(const LoadOptions& options,
                                                    const LoadModel& load) {
  if (options.backend != "cuda") return load(options);
  LoadOptions cpu = options;
  cpu.backend = "cpu";
  try {
    auto impl = load(options);
    if (options.else_cpu) {
      impl->load_cpu_fallback = [load, cpu] { return load(cpu); };
    }
    return impl;
  } catch (const std::bad_alloc&) {
    constexpr std::string_view what = "the memory of the device does not suffice for the weights";
    if (!options.else_cpu) {
      throw Error(ExitStatus::internal, "out_of_memory", what, "CUDA",
                  "free memory of the device, or use the CPU");
    }
    log_warning(options.log, Topic::device, "device_fallback",
                std::string(what) + ": running on the CPU");
  }
  return load(cpu);
}

Model cpu_fallback_of(const Model& model) {
  const Model::Impl& impl = model.impl();
  const std::scoped_lock turn(impl.cpu_fallback_turn);
  if (!impl.cpu_fallback) impl.cpu_fallback = impl.load_cpu_fallback();
  return Model(impl.cpu_fallback);
}

}  // namespace toto
