// SPDX-License-Identifier: Apache-2.0
// What is said of a device that cannot be used, or not any more. Nothing of CUDA is needed here, so
// that every build has and tests it.
#pragma once

#include <string>
#include <string_view>

#include "toto/error.hpp"

namespace toto::cuda {

/// Whether nothing can be done on the device after this error (a cudaError_t) until the process is
/// started again.
bool ends_process(int error);

/// The Error (70) device_failed of an operation; `description` is CUDA's.
Error device_failure(int error, std::string_view what, std::string_view description);

/// Why a driver that CUDA refuses does not do; its version as CUDA counts, 1000 major + 10 minor;
/// 0: there is none.
std::string refused_driver(int version);
/// Why a device has no kernels here.
std::string old_device(std::string_view name, int major, int minor);

}  // namespace toto::cuda
