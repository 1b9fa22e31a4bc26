// SPDX-License-Identifier: Apache-2.0
// The seam on a CUDA device. Its operations are in ops/, gemm/ and statistics/, in the .cpp files
// that are named like the headers of their kernels; capture and replay in capture.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/paths.h"
#include "backend/cuda/ops/predict.h"
#include "backend/cuda/ops2/device_ops2.h"
#include "backend/cuda/runtime/cuda_backend.h"
#include "backend/cuda/runtime/early_words.h"
#include "backend/cuda/runtime/extent.h"
#include "backend/cuda/runtime/fused_forward.h"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/runtime/owners.h"
#include "backend/cuda/statistics/statistics.h"
#include "backend/graph_capture.h"
#include "core/thread_team.h"

namespace toto::cuda {

inline const float* floats(const ConstView& v) { return typed<float>(v); }
inline float* floats(const View& v) { return typed<float>(v); }

/// What prepare_stack() makes.
struct DeviceStack final : PreparedStack {
  std::unique_ptr<FusedForward> fused;
  Matrix embed;
  ConstView labels;
  Matrix after;
  EarlyWords words;  // of what comes after the layers
};

class DeviceBackend final : public Backend, public GraphCapture {
 public:
  explicit DeviceBackend(const CudaOptions& options);
  ~DeviceBackend() override;

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] ElementType element_type() const override { return ElementType::f32; }
  [[nodiscard]] ElementType operand_type(const Matrix& w) const override {
    return static_cast<const DeviceMatrix*>(w.weights)->bf16 ? ElementType::bf16 : ElementType::f32;
  }
  [[nodiscard]] double weight_size() const override { return bf16() ? 2 : 4; }
  [[nodiscard]] std::string_view isa() const override { return architecture_; }

  [[nodiscard]] int bind() const override;
  void unbind(int previous) const noexcept override;
  [[nodiscard]] std::string_view device() const override { return device_; }

  [[nodiscard]] int workers() const override { return team_.size(); }
  void for_each_share(std::int64_t count, ShareWork work, const void* context) const override;
  [[nodiscard]] std::uint64_t thread_parks() const override { return team_.counters().parks; }

  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void upload(std::span<const double> from, const View& to) const override;
  void upload(std::span<const float> from, const View& to) const override;
  void upload_bytes(std::span<const std::uint8_t> from, std::uint8_t* to) const override;
  void download(const ConstView& from, std::span<double> to) const override;
  void download_bytes(const std::uint8_t* from, std::span<std::uint8_t> to) const override;
  [[nodiscard]] GraphCapture* capture() override { return this; }
  [[nodiscard]] std::uint64_t device_bytes() const override;
  [[nodiscard]] std::uint64_t host_reads() const override {
    return host_reads_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] Matrix upload_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                     std::int32_t in, std::span<const float> bias,
                                     Epilogue use) override;
  [[nodiscard]] Matrix upload_exact_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                           std::int32_t in, std::span<const float> bias,
                                           Epilogue use) override;

  [[nodiscard]] const Ops2* ops2() const override { return &ops2_; }
  [[nodiscard]] PathOps* paths() override { return &paths_; }

  void scale(const Batch& batch, const ScalerSpec& spec, const ConstView& x,
             const std::uint8_t* mask, ScalerState* state, const ScalerOutputs& to) const override;
  void repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                    ScalerState* to) const override;
  void linear(const Matrix& w, const ConstView& x, const View& y, Epilogue epilogue) const override;
  void rms_norm(const ConstView& x, const ConstView& gain, const View& y) const override;
  void norm_linear(const ConstView& x, const ConstView& gain, const View& scratch, const Matrix& w,
                   const View& y, Epilogue epilogue) const override;
  [[nodiscard]] const PreparedStack* prepare_stack(const StackWeights& weights) override;
  [[nodiscard]] bool stack(const PreparedStack& stack, const Batch& all, const Batch& last,
                           const Rotary& rotary, std::span<const KvLayer> kv,
                           const ConstView& scaled, const View& hidden, const View& tokens,
                           const View& y, EarlyResults& early) const override;
  void set_labels(const Batch& batch, const ConstView& labels, const View& hidden) const override;
  void rotary_append(const Batch& batch, const Rotary& rotary, const View& qkv, const KvLayer& kv,
                     std::int32_t heads) const override;
  void time_attention(const Batch& batch, const ConstView& qkv, const KvLayer& kv, const View& out,
                      std::int32_t heads, bool last_only) const override;
  void append_and_attend(const Batch& batch, const Rotary& rotary, const View& qkv,
                         const KvLayer& kv, const View& out, std::int32_t heads, bool last_only,
                         bool kept) const override;
  void variate_attention(const Batch& batch, const ConstView& qkv, const View& out,
                         std::int32_t heads) const override;
  void gather_last(const Batch& batch, const ConstView& x, const View& y) const override;
  void distribution(const View& raw, bool mixture) const override;
  void predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                    const ConstView& params, const ConstView& loc, const ConstView& scale,
                    const View& y) const override;
  void predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                    const ConstView& params, const ConstView& loc, const ConstView& scale,
                    const View& y) const override;
  void inject(const Batch& batch, const PatchShape& shape, const float* covariates,
              const View& y) const override;

  [[nodiscard]] StatisticsLimits statistics_limits() const override {
    return {kMaxSamples, kMaxComponents};
  }
  void keep(const Batch& batch, const Batch& source, const PatchShape& shape, const ConstView& y,
            float* kept, const KeptShape& room) const override;
  void exact_statistics(const Batch& batch, const PatchShape& shape, const HeadResults& head,
                        const View& params, const ConstView& loc, const ConstView& scale,
                        const Levels& levels, float* out) const override;
  void sample_statistics(const Batch& source, const float* kept, const KeptShape& room,
                         std::int32_t first, const Levels& levels, float* out) const override;
  void keep_parameters(const Batch& batch, const Batch& source, const PatchShape& shape,
                       const ConstView& params, const ConstView& loc, const ConstView& scale,
                       float* out, std::int32_t horizon) const override;

  [[nodiscard]] Staging allocate_staging(std::size_t bytes) override;
  void release_staging(const Staging& staging) noexcept override;
  [[nodiscard]] bool reads_device_batches() const override { return true; }
  void copy_in(const Staging& staging, std::size_t offset, std::size_t bytes) override;
  void copy_out(const Staging& staging, std::size_t bytes) override;
  void copy_in_and_scale(const Staging& staging, std::size_t bytes, const Batch& batch,
                         const ScalerSpec& spec, const float* x, const std::uint8_t* mask,
                         const View& scratch, ScalerState* state, const ScalerOutputs& to) override;
  [[nodiscard]] std::byte* results(const Staging& staging, std::size_t bytes) const override;
  void synchronise() const override { wait(); }

  void begin() override;
  [[nodiscard]] std::unique_ptr<Graph> end() override;
  void abandon() noexcept override;
  void launch(Graph& graph, bool timed, std::span<const HostResult> results) override;
  void await_copy(Graph& graph) override;
  std::size_t await_results(Graph& graph, std::size_t have) override;
  double finish(Graph& graph, bool timed, std::span<const HostResult> results) override;

 private:
  [[nodiscard]] bool bf16() const { return type_ == CudaWeights::bf16; }
  [[nodiscard]] Matrix keep_matrix(const float* weights, std::int32_t out, std::int32_t in,
                                   std::span<const float> bias, Epilogue use, CudaWeights type);
  /// Between pinned memory and the device's: a few bytes by a kernel, more by the copy engine.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) const;
  [[nodiscard]] Extent extent(const Batch& batch) const;
  void predict(const Batch& batch, const Batch* shared, const Prediction& p) const;
  void wait() const;

  CudaWeights type_;
  int index_;  // of the device
  std::string device_;
  mutable ThreadTeam team_;  // of the host
  StreamOwner owned_stream_;
  Stream stream_;  // of owned_stream_
  DeviceOps2 ops2_{*this, stream_, type_ == CudaWeights::bf16};
  DevicePaths paths_{stream_};
  std::string architecture_;
  struct KeptMatrix {
    DeviceMatrix matrix;  // in the memory below
    DeviceMemory weights, bias;
  };
  std::vector<std::unique_ptr<KeptMatrix>> matrices_;
  std::vector<std::unique_ptr<DeviceStack>> stacks_;
  // Read by counters() of one forecaster while another one is at work; all other state is touched
  // only by whoever has the model's turn (Model::Impl::turn), the count of launches too.
  mutable std::atomic<std::uint64_t> host_reads_ = 0;
  // Of the capture that has begun.
  bool capturing_ = false;
  std::uint64_t launches_before_ = 0;
  std::vector<CopyMark> marks_;
};

}  // namespace toto::cuda
