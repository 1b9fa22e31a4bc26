// SPDX-License-Identifier: Apache-2.0
// Owners of memory, streams, events and graphs. All functions that make one throw Error
// device_failed (70), std::bad_alloc for want of memory.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/runtime/owner.h"

namespace toto::cuda {
namespace release {
inline void device(void* memory) { cudaFree(memory); }
inline void pinned(void* memory) { cudaFreeHost(memory); }
inline void stream(cudaStream_t stream) { cudaStreamDestroy(stream); }
inline void event(cudaEvent_t event) { cudaEventDestroy(event); }
inline void graph(cudaGraph_t graph) { cudaGraphDestroy(graph); }
inline void graph_exec(cudaGraphExec_t graph) { cudaGraphExecDestroy(graph); }
}  // namespace release

/// Memory of the device, not initialised; at least one byte.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// `what`: for the error.
  DeviceMemory(std::size_t bytes, const char* what) : bytes_(std::max<std::size_t>(bytes, 1)) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes_), what);
    memory_ = Owner<void*, release::device>(memory);
  }
  /// Takes back what release() gave away.
  static DeviceMemory adopt(void* memory) noexcept {
    DeviceMemory adopted;
    adopted.memory_ = Owner<void*, release::device>(memory);
    return adopted;
  }
  [[nodiscard]] void* get() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] void* release() noexcept { return memory_.release(); }

 private:
  std::size_t bytes_ = 0;
  Owner<void*, release::device> memory_;
};

/// Pinned memory of the host.
using PinnedMemory = Owner<void*, release::pinned>;
inline PinnedMemory make_pinned_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "pinned memory");
  return PinnedMemory(memory);
}

/// A stream that does not wait for the default stream.
using StreamOwner = Owner<cudaStream_t, release::stream>;
inline StreamOwner make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  return StreamOwner(stream);
}

using Event = Owner<cudaEvent_t, release::event>;
inline Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "event");
  return Event(event);
}
/// Without a time, which costs less.
inline Event make_untimed_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  return Event(event);
}

/// An event within a graph, when so many bytes of its results have been copied.
struct CopyMark {
  Event reached;
  std::size_t bytes = 0;
};

using GraphOwner = Owner<cudaGraph_t, release::graph>;
using GraphExecOwner = Owner<cudaGraphExec_t, release::graph_exec>;
inline GraphExecOwner instantiate(const GraphOwner& graph) {
  cudaGraphExec_t ready = nullptr;
  check(cudaGraphInstantiate(&ready, graph.get(), 0), "graph");
  return GraphExecOwner(ready);
}

}  // namespace toto::cuda
