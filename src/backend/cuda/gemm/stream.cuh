// SPDX-License-Identifier: Apache-2.0
// Launching kernels: every one goes through launch(), which checks it and lets it overlap the end
// of the one before it where the device can (programmatic dependent launch); or launch_together().
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace toto::cuda {

/// Throws Error device_failed (70) for anything but success, std::bad_alloc for want of memory.
void check(cudaError_t status, const char* what);

/// Where operations go, and what the device is.
struct Stream {
  cudaStream_t stream = nullptr;
  bool overlap = false;  // programmatic dependent launch
  bool hopper = false;   // compute capability 9.x: what is compiled for sm_90a runs
  int shared_bytes = 0;  // of one block at most
  int processors = 0;
  mutable std::uint64_t launches = 0;

  /// Whether kernels may look up calls and numbers of rows before they wait: since those were
  /// copied to the device, a kernel has come that waits before it lets the next begin.
  [[nodiscard]] bool calls_known() const { return launches >= calls_known_from; }
  /// `after` so many launches more.
  void know_calls(std::uint64_t after = 0) const { calls_known_from = launches + after; }
  void forget_calls() const { calls_known_from = UINT64_MAX; }
  mutable std::uint64_t calls_known_from = UINT64_MAX;
};

#ifdef __CUDACC__
__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// The next kernel may be launched, once every block of this one has said so or has ended.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Until what ran before this kernel has ended, and so has written all it writes. Every block comes
/// here, if only at its end: whoever waits for this kernel has then waited for all before it.
__device__ inline void await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// How kernels begin. The next one comes only now: what it does before it waits takes turns with
/// what this one does with its inputs, so one kernel ahead is enough, and more cost time.
__device__ inline void begin_kernel() {
  await_previous();
  let_next_begin();
}
/// How kernels begin that look up a call: before they wait, if it is `known` (Stream::calls_known).
/// What those before have written may be read once lookups have ended.
__device__ inline void begin_lookups(bool known) {
  if (!known) await_previous();
}
__device__ inline void end_lookups(bool known) {
  if (known) await_previous();
  let_next_begin();
}

/// Lets a kernel on the current device have as much dynamic shared memory as any thread of the
/// process has asked for so far: never less again, for another one may be about to launch it.
template <auto Kernel>
void allow_shared_memory(std::size_t bytes) {
  static std::mutex mutex;
  static std::vector<std::size_t> allowed_on;  // by device
  int device = 0;
  check(cudaGetDevice(&device), "device");
  const std::lock_guard<std::mutex> lock(mutex);
  if (allowed_on.size() <= static_cast<std::size_t>(device)) {
    allowed_on.resize(static_cast<std::size_t>(device) + 1);
  }
  std::size_t& allowed = allowed_on[static_cast<std::size_t>(device)];
  if (bytes <= allowed) return;
  check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "shared memory");
  allowed = bytes;
}

inline cudaLaunchAttribute overlapping() {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  return overlap;
}

template <typename... Parameters, typename... Arguments>
void launch_as(cudaLaunchAttribute* attributes, unsigned count, void (*kernel)(Parameters...),
               dim3 grid, dim3 block, std::size_t shared, const Stream& s, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = s.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "launch");
  ++s.launches;
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
            const Stream& s, Arguments... arguments) {
  cudaLaunchAttribute overlap = overlapping();
  launch_as(&overlap, s.overlap ? 1 : 0, kernel, grid, block, shared, s, arguments...);
}

/// The same in clusters of `size` blocks.
template <typename... Parameters, typename... Arguments>
void launch_clusters(void (*kernel)(Parameters...), unsigned size, dim3 grid, dim3 block,
                     std::size_t shared, const Stream& s, Arguments... arguments) {
  if (size == 1) return launch(kernel, grid, block, shared, s, arguments...);
  cudaLaunchAttribute both[2] = {overlapping(), {}};
  both[1].id = cudaLaunchAttributeClusterDimension;
  both[1].val.clusterDim.x = size;
  both[1].val.clusterDim.y = 1;
  both[1].val.clusterDim.z = 1;
  launch_as(s.overlap ? both : both + 1, s.overlap ? 2 : 1, kernel, grid, block, shared, s,
            arguments...);
}

/// The same for a kernel whose blocks wait for each other: all of them run at once.
template <typename... Parameters, typename... Arguments>
void launch_together(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
                     const Stream& s, Arguments... arguments) {
  cudaLaunchAttribute both[2] = {overlapping(), {}};
  both[1].id = cudaLaunchAttributeCooperative;
  both[1].val.cooperative = 1;
  launch_as(s.overlap ? both : both + 1, s.overlap ? 2 : 1, kernel, grid, block, shared, s,
            arguments...);
}
#endif

inline unsigned ceil_div(std::int64_t a, std::int64_t b) {
  return static_cast<unsigned>((a + b - 1) / b);
}

}  // namespace toto::cuda
