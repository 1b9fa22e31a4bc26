// SPDX-License-Identifier: Apache-2.0
// The operations of Toto 2.0 in plain loops, in float or double: the oracle.
#pragma once

#include <memory>

#include "backend/ops2.h"

namespace toto::reference {

/// A matrix [out][in] and its bias [out], or nullptr.
template <typename T>
struct PlainWeights : PackedWeights {
  std::unique_ptr<T[]> weights, bias;
};

template <typename T>
class ReferenceOps2 final : public Ops2 {
 public:
  void inputs(const Call& call, const SeriesArrays& a, bool first, const View& z) const override;
  void quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                 const View& y) const override;
  void knot_results(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                    const KnotOutputs& to) const override;
  void feed_back(const Call& call, const ConstView& quantiles,
                 const SeriesArrays& a) const override;
  [[nodiscard]] bool has_paths() const override { return true; }
  void knot_neighbours(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                       double* scores, float* rho) const override;
  void knot_chains(const Call& call, const SeriesArrays& a, const float* rho,
                   const KnotOutputs& to) const override;

  void linear_silu(const Matrix& w, const ConstView& x, const View& y) const override;
  void rms_norm(const ConstView& x, const View& y, double epsilon) const override;
  void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                      const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                      const View& qkv, const KvCache& kv, bool keep,
                      const View& out) const override;
  void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                         const HeadNorm& norm, const View& qkv, const View& out) const override;
  void gather(const Call& all, const Call& wanted, const ConstView& x,
              const View& y) const override;

 private:
  void norm_heads(Rows rows, const HeadShape& shape, const HeadNorm& norm, T* qkv) const;
  void rotary_append(const Call& call, const HeadShape& shape, const HeadNorm& norm,
                     const Rotary& rotary, T* qkv, const KvCache& kv) const;
};

}  // namespace toto::reference
