// SPDX-License-Identifier: Apache-2.0
// Captured graphs of operations, staging buffers, and waiting for results on the host.
#ifdef TOTO_CUDA
#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "backend/cuda/ops/copies.h"
#include "backend/cuda/runtime/device_backend.h"
#include "backend/cuda/runtime/empty_word.h"
#include "backend/operation.h"

namespace toto::cuda {
namespace {

// From so many bytes on results are copied in two parts: the host takes the first while the second
// is on its way. More parts gain nothing: threads that took them have to meet again.
constexpr std::size_t kTwoParts = std::size_t{1} << 20U;

/// A captured graph, ready to be launched.
class LaunchableGraph final : public GraphCapture::Graph {
 public:
  LaunchableGraph(GraphOwner graph, std::size_t launches, std::vector<CopyMark> marks)
      : graph_(std::move(graph)),
        ready_(instantiate(graph_)),
        launches_(launches),
        marks_(std::move(marks)),
        begun_(make_event()),
        timed_end_(make_event()),
        end_(make_untimed_event()) {}
  [[nodiscard]] std::size_t launches() const override { return launches_; }
  [[nodiscard]] cudaGraphExec_t ready() const { return ready_.get(); }
  /// The first is reached before any are copied. Empty: they are not copied.
  [[nodiscard]] std::span<const CopyMark> marks() const { return marks_; }
  [[nodiscard]] cudaEvent_t begun() const { return begun_.get(); }
  [[nodiscard]] cudaEvent_t end(bool timed) const { return (timed ? timed_end_ : end_).get(); }

 private:
  GraphOwner graph_;
  GraphExecOwner ready_;
  std::size_t launches_;
  std::vector<CopyMark> marks_;
  // Of the last launch. Threads that wait look at these and not at the stream, of which another
  // thread may be capturing operations.
  Event begun_, timed_end_, end_;
};

void for_each_word(std::span<const HostResult> results, const auto& visit) {
  for (const HostResult& r : results) {
    for (std::size_t cell = 0; cell < r.cells; ++cell) {
      for (std::size_t i = 0; i < r.used; ++i) visit(r.first[cell * r.stride + i]);
    }
  }
}

/// Until a word of the host's is another one than kEmptyWord, or `end` has come.
void await(float& word, cudaEvent_t end) {
  // Asking the driver takes it a microsecond, in which nobody looks at the word.
  constexpr std::uint32_t kSeldom = 1U << 16;
  const auto bits = [&] {
    return std::bit_cast<std::uint32_t>(std::atomic_ref(word).load(std::memory_order_acquire));
  };
  for (std::uint32_t asked = 1; bits() == kEmptyWord; ++asked) {
    if (asked % kSeldom != 0) continue;
    const cudaError_t status = cudaEventQuery(end);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check(status, "waiting for the device");
  }
}

}  // namespace

Staging DeviceBackend::allocate_staging(std::size_t bytes) {
  const OnDevice on(*this);
  Staging staging;
  staging.bytes = std::max<std::size_t>(bytes, 1);
  PinnedMemory host = make_pinned_memory(staging.bytes);
  std::fill_n(static_cast<std::byte*>(host.get()), staging.bytes, std::byte{0});
  staging.device = static_cast<std::byte*>(allocate(staging.bytes));
  staging.host = static_cast<std::byte*>(host.release());
  return staging;
}

void DeviceBackend::release_staging(const Staging& staging) noexcept {
  if (staging.host == nullptr) return;
  release(staging.device);
  const PinnedMemory host(staging.host);
}

void DeviceBackend::begin() {
  check(cudaStreamSynchronize(stream_.stream), "waiting for the device");
  launches_before_ = stream_.launches;
  marks_.clear();
  check(cudaStreamBeginCapture(stream_.stream, cudaStreamCaptureModeThreadLocal), "capture");
  capturing_ = true;
}

std::unique_ptr<GraphCapture::Graph> DeviceBackend::end() {
  capturing_ = false;
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_.stream, &graph), "capture");
  return std::make_unique<LaunchableGraph>(GraphOwner(graph), stream_.launches - launches_before_,
                                           std::exchange(marks_, {}));
}

void DeviceBackend::abandon() noexcept {
  capturing_ = false;
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_.stream, &graph);
  const GraphOwner given_up(graph);
  cudaGetLastError();
}

void DeviceBackend::launch(Graph& captured, bool timed, std::span<const HostResult> results) {
  const auto& graph = static_cast<const LaunchableGraph&>(captured);
  if (!timed) {
    for_each_word(results, [](float& word) { word = std::bit_cast<float>(kEmptyWord); });
  }
  if (timed) check(cudaEventRecord(graph.begun(), stream_.stream), "event");
  check(cudaGraphLaunch(graph.ready(), stream_.stream), "graph launch");
  check(cudaEventRecord(graph.end(timed), stream_.stream), "event");
}

void DeviceBackend::await_copy(Graph& captured) {
  const std::span<const CopyMark> marks = static_cast<const LaunchableGraph&>(captured).marks();
  if (marks.empty()) return;
  check(cudaEventSynchronize(marks.front().reached.get()), "waiting for the device");
  team_.run(team_.size(), [](int) noexcept {});
}

std::size_t DeviceBackend::await_results(Graph& captured, std::size_t have) {
  for (const CopyMark& mark : static_cast<const LaunchableGraph&>(captured).marks()) {
    if (mark.bytes <= have) continue;
    check(cudaEventSynchronize(mark.reached.get()), "waiting for the device");
    return mark.bytes;
  }
  return kAll;
}

double DeviceBackend::finish(Graph& captured, bool timed, std::span<const HostResult> results) {
  const auto& graph = static_cast<const LaunchableGraph&>(captured);
  const bool looks = !timed && std::any_of(results.begin(), results.end(), [](const HostResult& r) {
    return r.cells * r.used > 0;
  });
  if (looks) {
    for_each_word(results, [&graph](float& word) { await(word, graph.end(false)); });
    return 0;
  }
  check(cudaEventSynchronize(graph.end(timed)), "waiting for the device");
  if (!timed) return 0;
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, graph.begun(), graph.end(true)), "event");
  return static_cast<double>(milliseconds) * 1e-3;
}

void DeviceBackend::copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
  stream_.forget_calls();
  if (bytes <= kFewBytes && bytes % 16 == 0) {
    copy_few(to, from, bytes, stream_);
  } else {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.stream), "copy");
  }
}

void DeviceBackend::copy_in(const Staging& staging, std::size_t offset, std::size_t bytes) {
  const OperationSpan span(Operation::copy_in);
  copy(staging.device + offset, staging.host + offset, bytes);
}

std::byte* DeviceBackend::results(const Staging& staging, std::size_t bytes) const {
  return bytes <= kFewBytes ? staging.host : staging.device;
}

void DeviceBackend::copy_out(const Staging& staging, std::size_t bytes) {
  const OperationSpan span(Operation::copy_out);
  if (!capturing_ || bytes <= kFewBytes) return copy(staging.host, staging.device, bytes);
  const std::size_t each = bytes < kTwoParts ? bytes : (bytes / 2 + 255) / 256 * 256;
  for (std::size_t begin = 0; begin < bytes; begin += each) {
    const CopyMark& mark = marks_.emplace_back(CopyMark{make_untimed_event(), begin});
    check(cudaEventRecordWithFlags(mark.reached.get(), stream_.stream, cudaEventRecordExternal),
          "event");
    copy(staging.host + begin, staging.device + begin, std::min(each, bytes - begin));
  }
}

}  // namespace toto::cuda
#endif
