// SPDX-License-Identifier: Apache-2.0
// The same model on the CPU, for when the memory of a device does not suffice
// (LoadOptions::else_cpu).
#pragma once

#include <functional>
#include <memory>

#include "models/model_impl.h"

namespace toto {

using LoadModel = std::function<std::shared_ptr<Model::Impl>(const LoadOptions&)>;

/// What `load` gives for the options. With else_cpu, a model of the cuda backend that can be moved,
/// or, where the device's memory does not suffice, one of the cpu backend, with a warning. Throws
/// what `load` throws, and Error (70) out_of_memory for want of the device's memory.
std::shared_ptr<Model::Impl> load_with_cpu_fallback(const LoadOptions& options,
                                                    const LoadModel& load);

/// Whether there is a CPU to go to.
inline bool has_cpu_fallback(const Model& model) {
  return model.impl().load_cpu_fallback != nullptr;
}
/// The model there: loaded when it is first asked for, then shared. Throws what loading throws.
Model cpu_fallback_of(const Model& model);

}  // namespace toto
