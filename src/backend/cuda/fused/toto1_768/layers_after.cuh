// SPDX-License-Identifier: Apache-2.0
// The product after the layers, of the last tokens: with the bits of few_rows_f32.cu, in float32
// whatever the type of the layers. What it gives is handed on word by word.
#pragma once

#include "layers_f32.cuh"
#include "layers_work.cuh"

namespace toto::cuda::layers {

/// By all workers, which have `rows` last tokens.
template <typename T>
__device__ void multiply_after(Shared<T>& s, const Arguments& a, Progress<T>& progress) {
  static_assert(Float32::kSlices * kFewRows * Float32::kOutputs <= T::kSumWords);
  int unit = 0;
  const int count = progress.turn.take(s.deals[kAfter], unit);
  if (count == 0) return;
  Float32 product;
  product.take<kOut>(inputs_after(s.wires, a), progress.rows);
  if constexpr (T::kReleasesLate) {
    if (threadIdx.x == 0) s.ring.release(progress.used);
  }
  // A thread of the first warp has two outputs of a row.
  const int row = thread_now() / Float32::kItems;
  const int first = thread_now() % Float32::kItems * 2;
  const bool ends = row < progress.rows && row < kFewRows;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const int column = unit * Float32::kOutputs + first;
    const bool there = ends && column < a.after.outs;
    float2 bias = {0, 0};
    if (there) bias = *reinterpret_cast<const float2*>(a.after.bias + column);
    product.multiply_stage<!T::kReleasesLate>(s.part[0], s.ring, s.stages, progress.ring, 0,
                                              a.nothing);
    progress.ring.advance();
    sync_workers();
    if constexpr (T::kReleasesLate) {
      if (threadIdx.x == 0) s.ring.release(++progress.used);
    }
    if (there) {
      const float* const part = s.part[0] + row * Float32::kOutputs + first;
      float2 sum = {0, 0};
#pragma unroll
      for (int slice = 0; slice < Float32::kSlices; ++slice) {
        const float2 more = Float32::sums(kOut, part + slice * kFewRows * Float32::kOutputs);
        sum = {sum.x + more.x, sum.y + more.y};
      }
      sum = {sum.x + bias.x, sum.y + bias.y};
      const int at = row * a.after.outs + column;
      flag::publish_pair(s.wires + after_at(a.count) + at, sum);
      *reinterpret_cast<float2*>(a.after.y + at) = sum;
    }
    unit += static_cast<int>(gridDim.x);
    if (i + 1 < count) sync_workers();  // until sums were read
  }
}

}  // namespace toto::cuda::layers
