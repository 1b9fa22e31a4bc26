// SPDX-License-Identifier: Apache-2.0
// Captured graphs of operations, staging buffers, and waiting for results on the host.
#ifdef TOTO_CUDA
#include <algorithm>
#include <atomic>
#include <bit>

#include "backend/cuda/ops/copies.h"
#include "backend/cuda/runtime/device_backend.h"
#include "backend/cuda/runtime/empty_word.h"
#include "backend/cuda/runtime/live.h"

namespace toto::cuda {
namespace {

/// A captured graph, ready to be launched.
class Graph final : public Recorder::Recording {
 public:
  Graph(GraphOwner graph, std::size_t launches)
      : graph_(std::move(graph)), ready_(instantiate(graph_)), launches_(launches) {}
  [[nodiscard]] std::size_t launches() const override { return launches_; }
  [[nodiscard]] cudaGraphExec_t ready() const { return ready_.get(); }

 private:
  GraphOwner graph_;
  GraphExecOwner ready_;
  std::size_t launches_;
};

}  // namespace

Mirror DeviceBackend::allocate_mirror(std::size_t bytes) {
  Mirror mirror;
  mirror.bytes = std::max<std::size_t>(bytes, 1);
  PinnedMemory host = make_pinned_memory(mirror.bytes);
  std::fill_n(static_cast<std::byte*>(host.get()), mirror.bytes, std::byte{0});
  mirror.device = static_cast<std::byte*>(allocate(mirror.bytes));
  mirror.host = static_cast<std::byte*>(host.release());
  return mirror;
}

void DeviceBackend::release_mirror(const Mirror& mirror) noexcept {
  if (mirror.host == nullptr) return;
  release(mirror.device);
  const PinnedMemory host(mirror.host);
}

std::size_t DeviceBackend::live_bytes(std::int64_t blocks, std::int64_t ids) const {
  return LiveLayout(blocks, ids).bytes;
}

void DeviceBackend::write_live(const Batch& batch, std::uint64_t seed, const Mirror& mirror,
                               std::size_t at, std::int64_t blocks, std::int64_t ids) const {
  write_image(batch, seed, LiveLayout(blocks, ids), mirror.host + at, mirror.device + at);
}

void DeviceBackend::begin() {
  check(cudaStreamSynchronize(stream_.stream), "waiting for the device");
  launches_before_ = stream_.launches;
  check(cudaStreamBeginCapture(stream_.stream, cudaStreamCaptureModeThreadLocal), "capture");
}

std::unique_ptr<Recorder::Recording> DeviceBackend::end() {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_.stream, &graph), "capture");
  return std::make_unique<Graph>(GraphOwner(graph), stream_.launches - launches_before_);
}

void DeviceBackend::abandon() noexcept {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_.stream, &graph);
  const GraphOwner given_up(graph);
  cudaGetLastError();
}

void DeviceBackend::await(float& word) const {
  // Asking the driver takes it a microsecond, in which nobody looks at the word.
  constexpr std::uint32_t kSeldom = 1U << 16;
  const auto bits = [&] {
    return std::bit_cast<std::uint32_t>(std::atomic_ref(word).load(std::memory_order_acquire));
  };
  for (std::uint32_t asked = 1; bits() == kEmptyWord; ++asked) {
    if (asked % kSeldom != 0) continue;
    const cudaError_t status = cudaStreamQuery(stream_.stream);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check(status, "waiting for the device");
  }
}

double DeviceBackend::play(const Recording& recording, bool timed,
                           std::span<const Awaited> awaited) {
  const auto& graph = static_cast<const Graph&>(recording);
  const bool looks = !timed && std::any_of(awaited.begin(), awaited.end(),
                                           [](const Awaited& a) { return a.cells * a.used > 0; });
  const auto for_each_word = [&](const auto& visit) {
    for (const Awaited& a : awaited) {
      for (std::size_t cell = 0; cell < a.cells; ++cell) {
        for (std::size_t i = 0; i < a.used; ++i) visit(a.first[cell * a.stride + i]);
      }
    }
  };
  if (looks) for_each_word([](float& word) { word = std::bit_cast<float>(kEmptyWord); });
  if (timed) check(cudaEventRecord(first_.get(), stream_.stream), "event");
  check(cudaGraphLaunch(graph.ready(), stream_.stream), "graph launch");
  if (looks) {
    for_each_word([&](float& word) { await(word); });
    return 0;
  }
  if (timed) check(cudaEventRecord(last_.get(), stream_.stream), "event");
  check(cudaStreamSynchronize(stream_.stream), "waiting for the device");
  if (!timed) return 0;
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, first_.get(), last_.get()), "event");
  return static_cast<double>(milliseconds) * 1e-3;
}

void DeviceBackend::copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
  if (bytes <= kFewBytes && bytes % 16 == 0) {
    copy_few(to, from, bytes, stream_);
  } else {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.stream), "copy");
  }
}

void DeviceBackend::copy_in(const Mirror& mirror, std::size_t bytes) {
  copy(mirror.device, mirror.host, bytes);
}

std::byte* DeviceBackend::results(const Mirror& mirror, std::size_t bytes) const {
  return bytes <= kFewBytes ? mirror.host : mirror.device;
}

void DeviceBackend::copy_out(const Mirror& mirror, std::size_t bytes) {
  copy(mirror.host, mirror.device, bytes);
}

}  // namespace toto::cuda
#endif
