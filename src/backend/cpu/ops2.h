// SPDX-License-Identifier: Apache-2.0
// The operations of Toto 2.0 on the CPU backend's team, packed matrices and vector kernels.
#pragma once

#include "backend/cpu/ops2_kernels.h"
#include "backend/cpu/product_kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/ops2.h"
#include "core/thread_team.h"

namespace toto::cpu {

class CpuOps2 final : public Ops2 {
 public:
  CpuOps2(Isa isa, const ProductKernels& products, ThreadTeam& team, const ScratchSet& scratch)
      : kernels_(ops2_kernels(isa)), products_(products), team_(team), scratch_(scratch) {}

  void for_each_part(const Call& all, const Call& wanted, PartWork work,
                     const void* context) const override;

  void inputs(const Call& call, const SeriesArrays& a, bool first, const Matrix& next,
              void* z) const override;
  void quantiles(const Call& call, const SeriesArrays& a, const void* raw, void* y) const override;
  void knot_results(const Call& call, const SeriesArrays& a, const void* quantiles,
                    const KnotOutputs& to) const override;
  void feed_back(const Call& call, const void* quantiles, const SeriesArrays& a) const override;

  void linear_silu(const Matrix& w, const void* x, void* y, Rows rows) const override;
  void rms_norm(const void* x, void* y, Rows rows, const Matrix& next,
                double epsilon) const override;
  void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                      const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary, void* qkv,
                      const KvCache& kv, bool keep, void* out) const override;
  void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                         const HeadNorm& norm, void* qkv, void* out) const override;
  void gather(const Call& all, const Call& wanted, const void* x, void* y,
              std::int32_t dim) const override;

 private:
  void norm_heads(Rows rows, const HeadShape& shape, const HeadNorm& norm, void* qkv) const;
  void rotary_append(const Call& call, const HeadShape& shape, const HeadNorm& norm,
                     const Rotary& rotary, void* qkv, const KvCache& kv) const;

  const Ops2Kernels& kernels_;
  const ProductKernels& products_;
  ThreadTeam& team_;
  const ScratchSet& scratch_;
};

}  // namespace toto::cpu
