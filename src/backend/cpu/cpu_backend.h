// SPDX-License-Identifier: Apache-2.0
// The fast CPU backend: float32 activations; float32, bfloat16 or int8 weights; vector kernels
// chosen at run time, a resident thread team.
//
// Bits: for one instruction set and weight type, a row's bits depend on that row's inputs alone;
// never on the number of rows or threads, nor on where the row lies. The scaler gives the bits of
// the reference backend. Between instruction sets bits differ.
//
// bfloat16 weights: the inputs of those products are rounded to bfloat16 as well (nearest even), on
// every instruction set, and products are accumulated in float32; everything else stays float32.
//
// int8 weights: each row of a matrix (one output) is rounded to whole numbers times a scale of its
// own. Inputs of products stay float32.
//
// Operations may be called from several threads; they take turns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/ops2.h"
#include "backend/cpu/packed_matrix.h"
#include "backend/cpu/paths.h"
#include "backend/cpu/product_kernels.h"
#include "backend/cpu/row_kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/host_statistics.h"
#include "core/thread_team.h"

namespace toto {

enum class CpuWeights { f32, bf16, int8 };

struct CpuOptions {
  int threads = 0;  // 0: one for each available core
  CpuWeights weights = CpuWeights::f32;
  std::string isa;  // empty: the best of this machine
  /// Threads stay awake for a moment between operations; otherwise they sleep at once, which leaves
  /// the processor to others and costs a few microseconds for each operation.
  bool spin = true;
};

/// Throws Error (2): invalid_isa, invalid_threads.
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

namespace cpu {

inline constexpr int kMaxThreads = 1024;

class CpuBackend final : public Backend {
 public:
  CpuBackend(Isa isa, CpuWeights weights, int threads, bool spin = true);

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] ElementType element_type() const override { return ElementType::f32; }
  [[nodiscard]] double weight_size() const override;
  [[nodiscard]] Isa instruction_set() const { return isa_; }
  [[nodiscard]] std::string_view isa() const override { return isa_name(isa_); }
  [[nodiscard]] int product_candidates() const override;
  void choose_product(const Matrix& w, int candidate) override;
  [[nodiscard]] CpuWeights weights() const { return weights_; }
  [[nodiscard]] ThreadTeam& team() const { return team_; }

  [[nodiscard]] int workers() const override { return team_.size(); }
  void for_each_share(std::int64_t count, ShareWork work, const void* context) const override;
  [[nodiscard]] std::uint64_t thread_parks() const override { return team_.counters().parks; }

  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void upload(std::span<const double> from, const View& to) const override;
  void upload(std::span<const float> from, const View& to) const override;
  void download(const ConstView& from, std::span<double> to) const override;

  [[nodiscard]] Matrix upload_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                     std::int32_t in, std::span<const float> bias,
                                     Epilogue use) override;
  [[nodiscard]] Matrix upload_exact_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                           std::int32_t in, std::span<const float> bias,
                                           Epilogue use) override;
  [[nodiscard]] Matrix upload_folded_matrix(const FoldedMatrix& matrix, Epilogue use,
                                            bool exact) override;

  [[nodiscard]] const Ops2* ops2() const override { return &ops2_; }
  [[nodiscard]] PathOps* paths() override { return &paths_; }

  void scale(const Batch& batch, const ScalerSpec& spec, const ConstView& x,
             const std::uint8_t* mask, ScalerState* state, const ScalerOutputs& to) const override;
  void repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                    ScalerState* to) const override;

  void linear(const Matrix& w, const ConstView& x, const View& y, Epilogue epilogue) const override;
  void rms_norm(const ConstView& x, const ConstView& gain, const View& y) const override;
  void set_labels(const Batch& batch, const ConstView& labels, const View& hidden) const override;
  void rotary_append(const Batch& batch, const Rotary& rotary, const View& qkv, const KvLayer& kv,
                     std::int32_t heads) const override;
  void time_attention(const Batch& batch, const ConstView& qkv, const KvLayer& kv, const View& out,
                      std::int32_t heads, bool last_only) const override;
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

  void reserve_statistics(std::int32_t components, std::int32_t levels,
                          std::int32_t samples) override;
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

 private:
  /// The format of weights that need not be exact.
  [[nodiscard]] const TileFormat& format() const;
  Matrix pack(const TileFormat& format, const float* weights, std::int32_t out, std::int32_t in,
              std::span<const float> bias, Epilogue use);
  Matrix keep(const PackedMatrix& matrix, std::int32_t out);

  Isa isa_;
  CpuWeights weights_;
  const ProductKernels& products_;
  const RowKernels& rows_;
  const AttentionKernels& attention_;
  mutable ThreadTeam team_;  // starting work on it changes nothing that anyone can see
  ScratchSet scratch_;
  CpuOps2 ops2_;
  CpuPaths paths_;
  mutable HostStatistics statistics_;  // room for its threads, nothing that lasts
  Arena arena_;
  std::vector<std::unique_ptr<PackedMatrix>> matrices_;
};

}  // namespace cpu
}  // namespace toto
