// SPDX-License-Identifier: Apache-2.0
// The reference backend: every operation of the seam in plain loops, in float or double. It is the
// oracle that the fast backends are compared with, so it stays readable before all else.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/reference/ops2.h"
#include "backend/reference/paths.h"

namespace toto::reference {

template <typename T>
class ReferenceBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "reference"; }
  [[nodiscard]] ElementType element_type() const override { return kTypeOf<T>; }
  [[nodiscard]] double weight_size() const override { return sizeof(float); }

  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void upload(std::span<const double> from, const View& to) const override;
  void upload(std::span<const float> from, const View& to) const override;
  void download(const ConstView& from, std::span<double> to) const override;

  [[nodiscard]] Matrix upload_matrix(std::unique_ptr<float[]> take, std::int32_t out,
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
  /// A copy in the backend's own precision.
  template <typename From>
  static std::unique_ptr<T[]> own(std::span<const From> values);
  Matrix keep_matrix(std::unique_ptr<T[]> weights, std::unique_ptr<T[]> bias, std::int32_t out,
                     std::int32_t in);

  std::vector<std::unique_ptr<PlainWeights<T>>> weights_;
  ReferenceOps2<T> ops2_;
  ReferencePaths<T> paths_;
};

}  // namespace toto::reference
