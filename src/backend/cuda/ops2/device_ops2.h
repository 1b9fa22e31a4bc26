// SPDX-License-Identifier: Apache-2.0
// The operations of Toto 2.0 on a CUDA device. Activations are float32, but for what products with
// bfloat16 weights take: that is bfloat16, in rows of padded_bf16().
#pragma once

#include "backend/cuda/gemm/stream.cuh"
#include "backend/ops2.h"

namespace toto::cuda {

class DeviceOps2 final : public Ops2 {
 public:
  /// `bf16`: the weights of layers are bfloat16. Both must outlive it.
  DeviceOps2(const Backend& backend, const Stream& stream, bool bf16)
      : backend_(backend), stream_(stream), bf16_(bf16) {}

  [[nodiscard]] bool exact_inputs(std::int32_t width) const override;
  void inputs(const Call& call, const SeriesArrays& a, bool first, const Matrix& next,
              void* z) const override;
  void quantiles(const Call& call, const SeriesArrays& a, const void* raw, void* y) const override;
  void knot_results(const Call& call, const SeriesArrays& a, const void* quantiles,
                    const KnotOutputs& to) const override;
  void feed_back(const Call& call, const void* quantiles, const SeriesArrays& a) const override;

  void linear_silu(const Matrix& w, const void* x, void* y, Rows rows) const override;
  void rms_norm(const void* x, void* y, Rows rows, const Matrix& next,
                double epsilon) const override;
  [[nodiscard]] bool norm_linear(const void* x, double epsilon, void* normed, const Matrix& w,
                                 void* y, Rows rows, Epilogue epilogue) const override;
  void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                      const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary, void* qkv,
                      const KvCache& kv, bool keep, void* out) const override;
  void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                         const HeadNorm& norm, void* qkv, void* out) const override;
  void gather(const Call& all, const Call& wanted, const void* x, void* y,
              std::int32_t dim) const override;

 private:
  const Backend& backend_;
  const Stream& stream_;
  bool bf16_;
};

}  // namespace toto::cuda
