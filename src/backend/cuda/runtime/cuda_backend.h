// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: float32 activations, float32 or bfloat16 weights, own kernels for everything.
// In tf32 the products of the layers round operands in float32 to eleven bits where the device has
// tensor cores for it that we use (Hopper, where both sizes are multiples of four); elsewhere it is
// float32.
//
// Bits: for one weight type and one device architecture, a row's bits depend on that row's inputs
// alone. A product sums over k in slices of a fixed length, each a chain of fused multiply-adds (or
// chains of tensor core steps), and then over the slices, in order: whichever kernel does it, and
// however many rows there are. The scaler
// gives the reference backend's location, and its scale to one ulp of float32.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "toto/model.hpp"  // cuda_unavailable()

namespace toto {

enum class CudaWeights { f32, tf32, bf16 };

struct CudaOptions {
  CudaWeights weights = CudaWeights::f32;
  int threads = 0;  // of the host, for what it does itself
  int device = 0;   // among those that CUDA_VISIBLE_DEVICES leaves
};

/// Throws Error device_unavailable (69), also for a device that is not there.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options);

/// What the device is and what it does at best, by its own clock. 0: not measured, because nobody
/// asked or memory did not suffice.
struct DeviceCeilings {
  std::string device;        // as it calls itself
  std::string driver;        // its release and what CUDA it has
  std::string architecture;  // "sm_90"
  // Of this backend's own products, the better of two large ones on random data, operations per
  // second (a multiply-add is two). Not the most that the device can do: cuBLAS reaches more.
  double f32_flops = 0;
  double tf32_flops = 0;
  double bf16_flops = 0;
  double copy_bytes = 0;  // copied within the device: bytes read plus written, per second
};

/// Takes about a second, 0.3 GiB of the device's memory for the products and up to 2 GiB, at most
/// half of what is free, for the copies. Throws Error device_unavailable (69), device_failed (70).
DeviceCeilings cuda_ceilings();
/// What it is alone; nothing is measured. Throws the same.
DeviceCeilings cuda_device();

}  // namespace toto
