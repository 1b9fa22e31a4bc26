// SPDX-License-Identifier: Apache-2.0
// What the driver of a device is called. Nothing of CUDA is needed here, so that every build has
// and tests it.
#pragma once

#include <string>
#include <string_view>

namespace toto::cuda {

/// "580.159.04 (CUDA 13.0)". `kernel_module`: what the driver says of itself ("NVRM version" of
/// /proc/driver/nvidia/version), of which the first word that is a release counts; may be empty or
/// say nothing of the kind. `version` as CUDA counts, 1000 major + 10 minor.
std::string driver_name(std::string_view kernel_module, int version);

}  // namespace toto::cuda
