// SPDX-License-Identifier: Apache-2.0
// Coherent paths on the CPU: the steps of a patch side by side in vectors. A step's bits depend on
// its own parameters and normal score alone.
#pragma once

#include "backend/cpu/mixture_kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/path_ops.h"
#include "core/thread_team.h"

namespace toto::cpu {

class CpuPaths final : public PathOps {
 public:
  CpuPaths(Isa isa, ThreadTeam& team, ScratchSet& scratch)
      : kernels_(mixture_kernels(isa)), team_(team), scratch_(scratch) {}
  void reserve(std::int32_t components) override;
  void neighbours(const Batch& context, const PatchShape& shape, const ConstView& params,
                  const ConstView& loc, const ConstView& scale, const float* x,
                  const std::uint8_t* mask, double* scores, float* rho) const override;
  void draw(const Batch& batch, const Batch* shared, const Batch& source, const PatchShape& shape,
            const ConstView& params, const ConstView& loc, const ConstView& scale, const float* rho,
            const View& y) const override;

 private:
  struct Draw;
  struct Group;
  void draw_group(const Draw& d, const Group& group, float* room) const;

  const MixtureKernels& kernels_;
  ThreadTeam& team_;
  ScratchSet& scratch_;
};

}  // namespace toto::cpu
