// SPDX-License-Identifier: Apache-2.0
// The operations of Toto 2.0 on the CPU backend's team, packed matrices and vector kernels.
#pragma once

#include "backend/cpu/knot_kernels.h"
#include "backend/cpu/ops2_kernels.h"
#include "backend/cpu/product_kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/ops2.h"
#include "core/thread_team.h"

namespace toto::cpu {

struct Product;

class CpuOps2 final : public Ops2 {
 public:
  CpuOps2(Isa isa, const ProductKernels& products, ThreadTeam& team, const ScratchSet& scratch)
      : kernels_(ops2_kernels(isa)),
        knots_(knot_kernels(isa)),
        products_(products),
        team_(team),
        scratch_(scratch) {}

  void for_each_part(const Call& all, const Call& wanted, PartWork work,
                     const void* context) const override;

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
  [[nodiscard]] bool skips_unread() const override { return true; }
  void linear_values(const Matrix& w, const HeadShape& shape, const ConstView& x,
                     const View& y) const override;
  void linear_wanted(const Call& all, const Call& wanted, const Matrix& w, const HeadShape& shape,
                     const ConstView& x, const View& scratch, const View& y) const override;
  void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                      const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                      const View& qkv, const KvCache& kv, bool keep,
                      const View& out) const override;
  void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                         const HeadNorm& norm, const View& qkv, const View& out) const override;
  void gather(const Call& all, const Call& wanted, const ConstView& x,
              const View& y) const override;

 private:
  [[nodiscard]] Product stored(const Matrix& w, const ConstView& x, const View& y) const;
  void linear_from(std::int32_t first, const Matrix& w, const ConstView& x, const View& y) const;
  void norm_heads(Rows rows, const HeadShape& shape, const HeadNorm& norm, float* qkv) const;
  void take_scores(const CallSlice& s, std::int32_t patch, std::int32_t variate, std::int32_t token,
                   const float* knots, const KnotOutputs& to) const;
  void rotary_append(const Call& call, const HeadShape& shape, const HeadNorm& norm,
                     const Rotary& rotary, float* qkv, const KvCache& kv) const;

  const Ops2Kernels& kernels_;
  const KnotKernels& knots_;
  const ProductKernels& products_;
  ThreadTeam& team_;
  const ScratchSet& scratch_;
};

}  // namespace toto::cpu
