// SPDX-License-Identifier: Apache-2.0
// The operations of Toto 2.0 on a CUDA device. Activations are float32, but for what products with
// bfloat16 weights take: that is bfloat16, in rows of padded_bf16().
#pragma once

#include "backend/cuda/gemm/product.h"
#include "backend/expected_views2.h"
#include "backend/ops2.h"

namespace toto::cuda {

class DeviceOps2 final : public Ops2 {
 public:
  /// `bf16`: the weights of layers are bfloat16. Both must outlive it.
  DeviceOps2(const Backend& backend, const Stream& stream, bool bf16)
      : backend_(backend), stream_(stream), types_{ElementType::f32, bf16} {}

  [[nodiscard]] bool exact_ends(std::int32_t width) const override;
  void inputs(const Call& call, const SeriesArrays& a, bool first, const View& z) const override;
  [[nodiscard]] bool copy_in_and_inputs(const Staging& staging, std::size_t bytes, const Call& call,
                                        const SeriesArrays& a, bool first,
                                        const View& z) const override;
  void quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                 const View& y) const override;
  [[nodiscard]] bool quantiles_and_statistics(const Call& call, const SeriesArrays& a,
                                              const ConstView& raw, const View& y,
                                              const KnotOutputs& to) const override;
  void knot_results(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                    const KnotOutputs& to) const override;
  void feed_back(const Call& call, const ConstView& quantiles,
                 const SeriesArrays& a) const override;
  [[nodiscard]] bool has_paths() const override { return true; }
  void knot_neighbours(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                       double* scores, float* rho) const override;
  void knot_chains(const Call& call, const SeriesArrays& a, const float* rho,
                   const KnotOutputs& to) const override;
  bool knot_paths(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                  const KnotOutputs& to) const override;

  void linear_silu(const Matrix& w, const ConstView& x, const View& y) const override;
  [[nodiscard]] bool norms_ahead(Rows rows, std::int32_t width, std::int32_t inputs) const override;
  [[nodiscard]] bool linear_sum(const Matrix& w, const ConstView& x, const Matrix& v,
                                const ConstView& z, const View& y,
                                const NormRoom& next) const override;
  void linear_ahead(const Matrix& w, const ConstView& x, const View& y,
                    const View& room) const override;
  void rms_norm(const ConstView& x, const View& y, double epsilon) const override;
  [[nodiscard]] bool norm_residual_mlp(const ConstView& x, double epsilon, const NormRoom& room,
                                       const Matrix& first, const Matrix& second,
                                       const Matrix& skip, const View& inner,
                                       const View& y) const override;
  [[nodiscard]] bool norm_linear(const ConstView& x, double epsilon, const NormRoom& room,
                                 const Matrix& w, const View& y, Epilogue epilogue) const override;
  [[nodiscard]] bool norm_values(const ConstView& x, double epsilon, const NormRoom& room,
                                 const Matrix& w, const HeadShape& shape,
                                 const View& out) const override;
  void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                      const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                      const View& qkv, const KvCache& kv, bool keep,
                      const View& out) const override;
  [[nodiscard]] bool time_attention_and_gather(const Call& all, const Call& wanted,
                                               const SeriesArrays& a, const HeadShape& shape,
                                               const HeadNorm& norm, const Rotary& rotary,
                                               const View& qkv, const KvCache& kv, bool keep,
                                               const View& out, const ConstView& x,
                                               const View& y) const override;
  void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                         const HeadNorm& norm, const View& qkv, const View& out) const override;
  void gather(const Call& all, const Call& wanted, const ConstView& x,
              const View& y) const override;

 private:
  /// A product in bfloat16 of rows that are to be normed.
  void take_normed(ProductArgs& args, const ConstView& x, double epsilon,
                   const NormRoom& room) const;

  const Backend& backend_;
  const Stream& stream_;
  expected2::Types types_;
};

}  // namespace toto::cuda
