// SPDX-License-Identifier: Apache-2.0
// How the kernel of all layers begins: the patch embedding (spec A5), in float32 whatever the type
// of the layers.
#pragma once

#include "backend/cuda/gemm/split.cuh"
#include "layers.cuh"

namespace toto::cuda::layers {

inline constexpr int kEmbedded = 8;  // outputs of a block
static_assert(kDim / kEmbedded <= kMinProcessors);

/// Begins the kernel and embeds, or takes what was embedded before: the last warp of workers of
/// each block its outputs of all rows, with the bits of few_rows_f32.cu. `gain`: of the first norm.
/// Returns how many rows there are.
template <typename T>
__device__ int begin_and_embed(const Arguments& a, const float* gain) {
  constexpr int kSlices = kMaxEmbedded / kSplitSlice;
  constexpr int kQuads = 2 * kSlices;
  const DeviceMatrix& e = a.embed;
  const auto* const weights = static_cast<const float*>(e.weights);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int output = static_cast<int>(blockIdx.x) * kEmbedded;
  const bool works = output < kDim && threadIdx.x >= kWorkers - 32;
  const bool embeds = weights != nullptr;
  // Of four k in turn this lane has one, of one output and of one row.
  std::uint32_t w[kQuads][4];
  float2 bias = {0, 0};
  float2 gains = {0, 0};
  if (works) gains = *reinterpret_cast<const float2*>(gain + output + lane % 4 * 2);
  if (works && embeds) {
#pragma unroll
    for (int i = 0; i < kQuads * 4; ++i) {
      const int k = i * 4 + lane % 4;
      w[i / 4][i % 4] =
          k < e.pitch ? __float_as_uint(weights[(output + lane / 4) * e.pitch + k]) : kHighHalf;
    }
    if (e.bias != nullptr) {
      bias = *reinterpret_cast<const float2*>(e.bias + output + lane % 4 * 2);
    }
  }
  await_previous();
  const int rows = a.all->rows;
  if (!works) return rows;
  float* const stream = own_wires(a);
  const int row = lane / 4;
  const bool there = row < rows;
  float2 sum = {0, 0};
  if (embeds) {
    SplitInputs<kSlices, Operands::split> x;
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = q * 16 + i * 4 + lane % 4;
        words[i] = row < a.most_rows && k < e.in ? __float_as_uint(a.x[row * e.in + k]) : 0;
      }
      x.set(q, {words[0], words[1], words[2], words[3]});
    }
    float2 slices[kSlices];
    x.multiply(slices, w);
#pragma unroll
    for (int i = 0; i < kSlices; ++i) {
      if (i * kSplitSlice >= e.in) break;
      sum.x += slices[i].x;
      sum.y += slices[i].y;
    }
    sum = {sum.x + bias.x, sum.y + bias.y};
  } else if (there) {
    const uint2 words = *reinterpret_cast<const uint2*>(a.x + row * kDim + output + lane % 4 * 2);
    sum = {flag::publishable(words.x), flag::publishable(words.y)};
  }
  const StreamPlace to = there ? StreamPlace(stream, 0, T::word_at(row, output + lane % 4 * 2), row,
                                             output + lane % 4 * 2)
                               : StreamPlace();
  put_stream<T>(to, sum, gains);
  return rows;
}

}  // namespace toto::cuda::layers
