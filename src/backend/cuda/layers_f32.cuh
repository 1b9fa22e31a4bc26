// SPDX-License-Identifier: Apache-2.0
// Products of the kernel of all layers in float32, on tensor cores, of operands that are split or
// rounded (split.cuh).
// A warp has three slices of each stage, whose inputs it holds in registers as the tensor cores
// take them; in mlp_out a stage has a quarter of the inputs, and those of the next one are asked
// for while it is multiplied.
#pragma once

#include "backend/cuda/layers.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/ring.cuh"
#include "backend/cuda/split.cuh"

namespace toto::cuda::layers {

template <Operands O>
struct OfFloat32 {
  static constexpr int kOutputs = 8;                      // of a unit
  static constexpr int kSlices = kDim / kSplitSlice;      // of kDim inputs
  static constexpr int kOwn = kSlices / (kWorkers / 32);  // of a warp, side by side
  static constexpr int kSets = kHidden / kDim;            // stages of a unit of mlp_out
  static constexpr int kQuads = kOwn * 2;                 // of sixteen bytes: sixteen k of a row
  static constexpr int kPitch = kDim + 4;
  static constexpr bool kReleasesLate = false;
  static_assert(kOwn * (kWorkers / 32) == kSlices && kStageBytes == kOutputs * kDim * 4);
  static constexpr int kMostParts = outs(kMlpIn) / kOutputs / kLeastProcessors * kSlices;
  static_assert(kDim / kOutputs <= kLeastProcessors && kMostParts >= kSets * kSlices);

  union Memory {  // the inputs are in registers before there are sums
    alignas(16) float x[kFewRows][kPitch];
    alignas(16) float part[kMostParts * kFewRows * kOutputs];  // [unit][slice][row][output]
  };

  static __device__ void stream(void* to, const CUtensorMap& map, int unit, int stage,
                                std::uint64_t* full) {
    copy_tile(to, map, 0, unit * kOutputs, stage * kSlices, full);
  }

  /// The word with element (row, k) of inputs that lie as a warp loads them.
  static __device__ int word_at(int row, int k) {
    return ((k / 16 * 32) + row * 4 + k % 4) * 4 + k % 16 / 4;
  }

  static __device__ void put_attended(float* wire, int row, int channel, float v, float next) {
    wire::put(wire + word_at(row, channel), v);
    wire::put(wire + word_at(row, channel + 1), next);
  }

  /// What one thread ends, an item: two outputs, in mlp_in a gate and its value.
  static constexpr int kItems = kOutputs / 2;  // of a unit and row
  static __device__ int first_output(int, int item) { return 2 * item; }
  static __device__ int second_output(int) { return 1; }  // after the first
  static __device__ float2 sums(int, const float* first) {
    return *reinterpret_cast<const float2*>(first);
  }
  static __device__ int gated_word(int row, int unit, int item) {
    return word_at(row, unit * 4 + item);
  }
  static __device__ void put_gated(float* to, float v) {
    if (to != nullptr) wire::put(to, v);
  }

  SplitInputs<kOwn, O> x;

  /// The inputs of product p into registers, in mlp_out the first quarter. All workers.
  __device__ void take(int p, Memory& m, const float* from, const float* gain, int rows) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    own_ = from + (warp * kQuads * 32 + lane) * 4;
    there_ = lane / 4 < rows;
    if (p == kOut || p == kMlpOut) {
      uint4 words[kQuads] = {};
      wire::await_first(own_);
      if (there_) wire::take_fours(words, [&](int i) { return own_ + i * 32 * 4; });
#pragma unroll
      for (int i = 0; i < kQuads; ++i) x.set(i, words[i]);
      sync_workers();
      return;
    }
    sync_workers();  // what is in the inputs' place was read
    float4 v[kDim / 128] = {};
    if (warp < rows) take_row(v, from + warp * kDim, gain);
#pragma unroll
    for (int i = 0; i < kDim / 128; ++i) {
      *reinterpret_cast<float4*>(&m.x[warp][i * 128 + lane * 4]) = v[i];
    }
    sync_workers();
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      std::uint32_t r[4];
      load_matrices(r, &m.x[lane % 8][(warp * kQuads + i) * 16 + lane / 8 * 4]);
      x.set(i, {r[0], r[1], r[2], r[3]});
    }
    sync_workers();
  }

  /// All units of this block, of which the stages begin at `ring_at`.
  __device__ void multiply(int p, Memory& m, Ring& ring, const std::byte* stages,
                           Cursor<kRingStages>& ring_at, int units, std::uint32_t nothing) {
    if (p != kMlpOut) {
#pragma unroll 1
      for (int i = 0; i < units; ++i) {
        multiply_stage(m, ring, stages, ring_at, i * kSlices, nothing);
        ring_at.advance();
      }
      return;
    }
#pragma unroll 1
    for (int set = 0; set < kSets; ++set) {
      uint4 next[kQuads] = {};
      own_ += kSlices * 2 * 32 * 4;
      const auto at = [&](int q) { return own_ + q * 32 * 4; };
      const bool more = set + 1 < kSets;
      if (more && there_) wire::look_fours(next, at);
      multiply_stage(m, ring, stages, ring_at, set * kSlices, nothing);
      ring_at.advance();
      if (!more) return;
      if (there_) wire::take_fours_looked_at(next, at);
#pragma unroll
      for (int q = 0; q < kQuads; ++q) x.set(q, next[q]);
    }
  }

 private:
  const float* own_;  // where the words of this lane lie
  bool there_;        // whether its row is

  __device__ void multiply_stage(Memory& m, Ring& ring, const std::byte* stages,
                                 const Cursor<kRingStages>& ring_at, int first_part,
                                 std::uint32_t nothing) const {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    ring.wait_full(ring_at);
    // [k / 32][output][32], the chunks of sixteen bytes exchanged by output.
    const std::byte* const from =
        stages + ring_at.stage * kStageBytes + (warp * kOwn * kOutputs + lane % 8) * 128;
    std::uint32_t w[kQuads][4];
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int chunk = (i % 2 * 4 + lane / 8) ^ (lane % 8);
      load_matrices(w[i], from + i / 2 * kOutputs * 128 + chunk * 16);
    }
    std::uint32_t read = 0;
#pragma unroll
    for (int i = 0; i < kQuads; ++i) read |= w[i][0];
    float2 sum[kOwn];
    x.multiply(sum, w, ring.release_once(ring_at, read, nothing));
    auto* const to = reinterpret_cast<float2*>(m.part) +
                     (first_part + warp * kOwn) * (kFewRows * kOutputs / 2) + lane;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) to[i * (kFewRows * kOutputs / 2)] = sum[i];
  }
};
using Float32 = OfFloat32<Operands::split>;
using Tf32 = OfFloat32<Operands::rounded>;

}  // namespace toto::cuda::layers
