// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: float32 activations, float32 or bfloat16 weights, own kernels for everything.
//
// Bits: for one weight type and one device architecture, a row's bits depend on that row's inputs
// alone. A product sums over k in slices of a fixed length, each a chain of fused multiply-adds (or
// of tensor core steps), and then over the slices, in order: whichever kernel does it, and however
// many rows there are. The scaler gives the bits of the reference backend.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace toto {

enum class CudaWeights { f32, bf16 };

struct CudaOptions {
  CudaWeights weights = CudaWeights::f32;
  int threads = 0;  // of the host, for what it does itself
};

/// Why no device can be used; empty where one can. Never throws: no driver is an answer.
std::string cuda_unavailable();
/// Throws Error device_unavailable (69).
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options);

}  // namespace toto
