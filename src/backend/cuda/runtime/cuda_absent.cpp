// SPDX-License-Identifier: Apache-2.0
// In place of the CUDA backend in builds without it.
#ifndef TOTO_CUDA
#include "backend/cuda/runtime/cuda_backend.h"
#include "toto/error.hpp"

namespace toto {

namespace {

[[noreturn]] void refuse() {
  throw Error(ExitStatus::device_unavailable, "device_unavailable", cuda_unavailable(), {},
              "use --device cpu, or build with cmake --preset cuda");
}

}  // namespace

std::string cuda_unavailable() { return "this build of toto has no CUDA backend"; }
int cuda_devices() { return 0; }
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& /*options*/) { refuse(); }
DeviceCeilings cuda_ceilings() { refuse(); }
DeviceCeilings cuda_device() { refuse(); }

}  // namespace toto
#endif
