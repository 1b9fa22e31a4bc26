// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/device_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace toto::cuda {
namespace {

// Those of which CUDA 13 says that the process must be terminated and started again.
constexpr std::array kEnding = {
    226,  // cudaErrorContained
    700,  // cudaErrorIllegalAddress
    702,  // cudaErrorLaunchTimeout
    710,  // cudaErrorAssert
    714,  // cudaErrorHardwareStackError
    715,  // cudaErrorIllegalInstruction
    716,  // cudaErrorMisalignedAddress
    717,  // cudaErrorInvalidAddressSpace
    718,  // cudaErrorInvalidPc
    719,  // cudaErrorLaunchFailure
    721,  // cudaErrorTensorMemoryLeak
    810,  // cudaErrorMpsClientTerminated
    911,  // cudaErrorExternalDevice
};

}  // namespace

bool ends_process(int error) {
  return std::find(kEnding.begin(), kEnding.end(), error) != kEnding.end();
}

Error device_failure(int error, std::string_view what, std::string_view description) {
  return {ExitStatus::internal, "device_failed", fmt::format("{}: {}", what, description), "CUDA",
          ends_process(error) ? "the device cannot be used by this process any more: start it again"
                              : ""};
}

std::string refused_driver(int version) {
  if (version == 0) return "there is no NVIDIA driver";
  return fmt::format("the NVIDIA driver is too old: CUDA 13 is needed, it has {}.{}",
                     version / 1000, version % 1000 / 10);
}

std::string old_device(std::string_view name, int major, int minor) {
  return fmt::format("{} is too old: compute capability 8.0 is needed, it has {}.{}", name, major,
                     minor);
}

}  // namespace toto::cuda
