// SPDX-License-Identifier: Apache-2.0
// The operations of the seam, and recordings of them as CUDA graphs.
#ifdef TOTO_CUDA
#include <algorithm>
#include <atomic>
#include <bit>

#include "backend/cuda/runtime/device_backend.h"
#include "backend/cuda/runtime/empty_word.h"
#include "toto/error.hpp"

namespace toto::cuda {
namespace {

const float* floats(const void* p) { return static_cast<const float*>(p); }
float* floats(void* p) { return static_cast<float*>(p); }

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

ProductArgs product_of(const DeviceMatrix& matrix, const Matrix& w, const void* x, void* y,
                       Rows rows, Epilogue epilogue) {
  return {matrix.weights,
          matrix.bias,
          x,
          y,
          rows,
          w.out,
          epilogue == Epilogue::gated ? matrix.stored : w.out,
          matrix.in,
          matrix.pitch,
          epilogue,
          matrix.operands};
}

void multiply(const ProductArgs& args, bool bf16, const Stream& stream) {
  if (bf16) {
    product_bf16(args, stream);
  } else {
    product_f32(args, stream);
  }
}

}  // namespace

Extent DeviceBackend::extent(const Batch& batch) const {
  if (batch.live != nullptr) {
    return {batch.live, batch.rows, batch.lanes, batch.rows / kQueryGroup + batch.variates,
            batch.lanes / kQueryGroup + batch.variates};
  }
  const LiveLayout layout(batch.count, ids_of(batch));
  std::vector<std::byte> image(layout.bytes);
  Extent e{nullptr, batch.rows, batch.lanes, 0, 0};
  for (std::int32_t i = 0; i < batch.count; ++i) {
    e.groups += query_groups(batch.blocks[i], false);
    e.last_groups += query_groups(batch.blocks[i], true);
  }
  write_image(batch, 0, layout, image.data(), nullptr);
  for (Resident& r : resident_) {
    if (r.image == image) {
      r.used = ++clock_;
      e.live = static_cast<const LiveBatch*>(r.device.get());
      return e;
    }
  }
  Resident& r = *std::min_element(resident_.begin(), resident_.end(),
                                  [](const auto& a, const auto& b) { return a.used < b.used; });
  r.image.clear();
  r.used = ++clock_;
  if (r.device.bytes() < layout.bytes) {
    check(cudaStreamSynchronize(stream_.stream), "waiting for the device");
    r.device = {};  // first, so that there is room for the larger one
    r.device = DeviceMemory(layout.bytes, "memory");
  }
  std::vector<std::byte> placed(layout.bytes);
  write_image(batch, 0, layout, placed.data(), static_cast<const std::byte*>(r.device.get()));
  check(cudaMemcpyAsync(r.device.get(), placed.data(), placed.size(), cudaMemcpyHostToDevice,
                        stream_.stream),
        "upload");
  r.image = std::move(image);
  e.live = static_cast<const LiveBatch*>(r.device.get());
  return e;
}

void DeviceBackend::scale(const Batch& batch, const ScalerSpec& spec, const void* x,
                          const std::uint8_t* mask, ScalerState* state,
                          const ScalerOutputs& to) const {
  cuda::scale(extent(batch), spec, floats(x), mask, state, to, {}, stream_);
}

void DeviceBackend::copy_in_and_scale(const Mirror& mirror, std::size_t bytes, const Batch& batch,
                                      const ScalerSpec& spec, const void* x,
                                      const std::uint8_t* mask, ScalerState* state,
                                      const ScalerOutputs& to) {
  const Extent e = extent(batch);
  Arrival arrival;
  if (bytes * static_cast<std::size_t>(e.lanes) <= kMostArrival && bytes % 16 == 0) {
    arrival = {mirror.device, mirror.host, bytes};
  } else {
    copy(mirror.device, mirror.host, bytes);
  }
  cuda::scale(e, spec, floats(x), mask, state, to, arrival, stream_);
}

void DeviceBackend::repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                                 ScalerState* to) const {
  cuda::repeat_state(extent(source), extent(batch), from, to, stream_);
}

void DeviceBackend::linear(const Matrix& w, const void* x, void* y, Rows rows,
                           Epilogue epilogue) const {
  const auto& matrix = *static_cast<const DeviceMatrix*>(w.weights);
  multiply(product_of(matrix, w, x, y, rows, epilogue), matrix.bf16, stream_);
}

void DeviceBackend::rms_norm(const void* x, const void* scale, void* y, Rows rows,
                             std::int32_t dim) const {
  cuda::rms_norm(floats(x), floats(scale), y, bf16(), rows, dim, stream_);
}

void DeviceBackend::norm_linear(const void* x, const void* gain, void* normed, const Matrix& w,
                                void* y, Rows rows, Epilogue epilogue) const {
  const auto& matrix = *static_cast<const DeviceMatrix*>(w.weights);
  if (w.in != kNormedWidth) {
    rms_norm(x, gain, normed, rows, w.in);
    linear(w, normed, y, rows, epilogue);
    return;
  }
  ProductArgs args = product_of(matrix, w, x, y, rows, epilogue);
  if (rows.count <= kFewRows) {
    args.gain = floats(gain);
    if (matrix.bf16 ? few_rows_bf16(args, stream_) : few_rows_f32(args, stream_)) return;
    args.gain = nullptr;
  }
  float* const inverse = floats(normed) + std::int64_t{rows.count} * w.in;
  norm_later(floats(x), floats(gain), normed, inverse, bf16(), rows, stream_);
  args.x = normed;
  args.scale = inverse;
  multiply(args, matrix.bf16, stream_);
}

const void* DeviceBackend::prepare_stack(const StackWeights& weights) {
  auto fused = make_fused_forward(weights, type_, stream_);
  if (fused == nullptr) return nullptr;
  return stacks_
      .emplace_back(std::make_unique<PreparedStack>(
          PreparedStack{std::move(fused), weights.embed, weights.labels, weights.after}))
      .get();
}

bool DeviceBackend::stack(const void* stack, const Batch& all, const Batch& last,
                          const Rotary& rotary, std::span<const KvLayer> kv, const void* scaled,
                          void* hidden, void* tokens, std::int32_t outs, void* y) const {
  const auto& prepared = *static_cast<const PreparedStack*>(stack);
  const FusedForward& fused = *prepared.fused;
  if (all.rows > fused.max_rows()) return false;
  if (!fused.embeds()) {
    linear(prepared.embed, scaled, hidden, all.all_rows(), Epilogue::store);
    if (prepared.labels != nullptr) set_labels(all, prepared.labels, hidden, prepared.embed.out);
  }
  const LiveBatch* const rows = extent(all).live;
  fused.run({rows, extent(last).live, all.rows, rotary, kv,
             floats(fused.embeds() ? scaled : hidden), floats(tokens), outs, floats(y)},
            stream_);
  early_ = {y, fused.words_after(), stream_.launches};
  if (!fused.multiplies_after()) {
    Matrix after = prepared.after;
    after.out = outs;
    linear(after, tokens, y, last.all_lanes(), Epilogue::store);
  }
  return true;
}

void DeviceBackend::set_labels(const Batch& batch, const void* labels, void* hidden,
                               std::int32_t dim) const {
  cuda::set_labels(extent(batch), floats(labels), floats(hidden), dim, stream_);
}

void DeviceBackend::rotary_append(const Batch& batch, const Rotary& rotary, void* qkv,
                                  const KvLayer& kv, std::int32_t heads,
                                  std::int32_t head_dim) const {
  cuda::rotary_append(extent(batch), rotary, floats(qkv), kv, heads, head_dim, stream_);
}

void DeviceBackend::time_attention(const Batch& batch, const void* qkv, const KvLayer& kv,
                                   void* out, std::int32_t heads, std::int32_t head_dim,
                                   bool last_only) const {
  cuda::time_attention(extent(batch), floats(qkv), kv, out, bf16(), heads, head_dim, last_only,
                       stream_);
}

void DeviceBackend::variate_attention(const Batch& batch, const void* qkv, void* out,
                                      std::int32_t heads, std::int32_t head_dim) const {
  cuda::variate_attention(extent(batch), floats(qkv), out, bf16(), heads, head_dim, stream_);
}

void DeviceBackend::gather_last(const Batch& batch, const void* x, void* y,
                                std::int32_t dim) const {
  cuda::gather_last(extent(batch), floats(x), floats(y), dim, stream_);
}

void DeviceBackend::distribution(void* raw, Rows rows, std::int32_t components,
                                 bool mixture) const {
  cuda::distribution(floats(raw), rows, components, mixture, stream_);
}

void DeviceBackend::predict(const Batch& batch, const Batch* shared, const Prediction& p) const {
  cuda::predict(extent(batch), shared == nullptr ? nullptr : extent(*shared).live, p, stream_);
}

void DeviceBackend::predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                                 const void* params, const void* loc, const void* scale,
                                 void* y) const {
  predict(batch, shared,
          {shape, floats(params), floats(loc), floats(scale), floats(y), true, nullptr, 0});
}

void DeviceBackend::predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                                 std::uint64_t seed, const void* params, const void* loc,
                                 const void* scale, void* y) const {
  predict(batch, shared,
          {shape, floats(params), floats(loc), floats(scale), floats(y), false,
           batch.live == nullptr ? nullptr : &batch.live->seed, seed});
}

void DeviceBackend::inject(const Batch& batch, const PatchShape& shape, const void* covariates,
                           void* y) const {
  cuda::inject(extent(batch), shape, floats(covariates), floats(y), stream_);
}

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

void DeviceBackend::keep(const Batch& batch, const Batch& source, const PatchShape& shape,
                         const void* y, float* kept, std::int32_t horizon, std::int32_t samples) {
  cuda::keep(extent(batch), extent(source).live, shape, floats(y), kept, horizon, samples, stream_);
}

void DeviceBackend::exact_statistics(const Batch& batch, const PatchShape& shape, HeadOutput head,
                                     void* params, const void* loc, const void* scale,
                                     const Levels& levels, float* out) {
  const bool follows = early_.of == params && early_.launches == stream_.launches;
  cuda::exact_statistics(extent(batch), shape, head, floats(params), floats(loc), floats(scale),
                         levels, out, follows ? early_.words : EarlyWords(), stream_);
}

void DeviceBackend::sample_statistics(const Batch& source, const float* kept, std::int32_t horizon,
                                      std::int32_t first, std::int32_t samples,
                                      const Levels& levels, float* out) {
  cuda::sample_statistics(extent(source), kept, horizon, first, samples, levels, out, stream_);
}

}  // namespace toto::cuda
#endif
