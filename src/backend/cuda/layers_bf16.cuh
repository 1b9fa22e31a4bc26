// SPDX-License-Identifier: Apache-2.0
// Products of the kernel of all layers in bfloat16, on tensor cores. A warp has one slice of k,
// whose inputs it holds in registers as the tensor cores take them, and every other stage.
#pragma once

#include "backend/cuda/layers.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/ring.cuh"

namespace toto::cuda::layers {

struct Bfloat16 {
  static constexpr int kOutputs = 16;  // of a unit
  static constexpr int kReaders = 4;   // warps, one for each slice of a stage
  static constexpr int kSlices = kDim / kSliceBf16;
  static constexpr int kSteps = kSliceBf16 / 16;
  static constexpr int kPitch = kDim + 8;
  /// Stages are given back when the inputs of the next product are there: refilled at once, they
  /// would be in the way of those inputs.
  static constexpr bool kReleasesLate = true;
  static __device__ bool reads(int stage) {
    return stage % 2 == static_cast<int>(threadIdx.x) / 128;
  }
  static_assert(kSlices == kReaders && kStageBytes == kOutputs * kDim * 2);

  static constexpr int kMostParts = outs(kMlpIn) / kOutputs / kLeastProcessors * kSlices;

  struct Memory {
    alignas(16) __nv_bfloat16 x[kFewRows][kPitch];
    alignas(16) float part[kMostParts * kFewRows * kOutputs];  // [unit][slice][row][output]
  };

  static __device__ void stream(void* to, const CUtensorMap& map, int unit, int stage,
                                std::uint64_t* full) {
    copy_tile(to, map, 0, unit * kOutputs, stage * (kDim / 64), full);
  }

  /// The word with elements (row, k) and (row, k + 1) of inputs that lie as a warp loads them.
  static __device__ int word_at(int row, int k) {
    const int step = k % kSliceBf16 / 16;
    const int lane = row * 4 + k % 8 / 2;
    return ((k / kSliceBf16 * (kSteps / 2) + step / 2) * 32 + lane) * 4 + step % 2 * 2 + k % 16 / 8;
  }
  static __device__ std::uint32_t pack(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&both);
  }

  static __device__ void put_attended(float* wire, int row, int channel, float v) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float next = __shfl_down_sync(~0U, v, 1);
    if (lane % 2 == 0)
      wire::put(wire + word_at(row, channel + lane), __uint_as_float(pack(v, next)));
  }

  /// Outputs that one thread takes at the end: two, in mlp_in two gates and their values.
  static constexpr int kPlainOuts = 2;
  static constexpr int kGatedOuts = 4;
  static __device__ int item_bits(int p) { return p == kMlpIn ? 2 : 3; }
  static __device__ int output(int item, int e) { return 2 * item + e % 2 + e / 2 * 8; }
  static __device__ int gated_word(int row, int unit, int pair) {
    return word_at(row, unit * 8 + 2 * pair);
  }
  static __device__ float gated(const float (&v)[kGatedOuts]) {
    return __uint_as_float(pack(silu(v[0]) * v[2], silu(v[1]) * v[3]));
  }

  static constexpr int kSets = kHidden / kDim / 2;  // slices of a warp in mlp_out; otherwise one
  std::uint32_t x[kSets][kSteps][2];

  /// The inputs of product p into registers. All workers.
  __device__ void take(int p, Memory& m, const float* from, const float* gain, int rows) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (p == kOut || p == kMlpOut) {
      take_words(x[0], from, p == kOut ? warp % 4 : warp / 4 * kSlices + warp % 4, rows);
      if (p == kMlpOut) take_words(x[1], from, (warp / 4 + 2) * kSlices + warp % 4, rows);
      sync_workers();
      return;
    }
    float4 v[kDim / 128] = {};
    if (warp < rows) take_row(v, from + warp * kDim, gain, true);
#pragma unroll
    for (int i = 0; i < kDim / 128; ++i) {
      auto* const to = reinterpret_cast<std::uint32_t*>(&m.x[warp][i * 128 + lane * 4]);
      to[0] = pack(v[i].x, v[i].y);
      to[1] = pack(v[i].z, v[i].w);
    }
    sync_workers();
#pragma unroll
    for (int i = 0; i < kSteps; i += 2) {
      std::uint32_t r[4];
      load_matrices(r, &m.x[lane % 8][warp % 4 * kSliceBf16 + i * 16 + lane / 8 * 8]);
      x[0][i][0] = r[0];
      x[0][i][1] = r[1];
      x[0][i + 1][0] = r[2];
      x[0][i + 1][1] = r[3];
    }
  }

  /// All units of this block, of which the stages begin at `ring_at`. Each half of the warps has
  /// every other stage; in mlp_out a unit has four, of as many slices each.
  __device__ void multiply(int p, Memory& m, Ring& ring, const std::byte* stages,
                           Cursor<kRingStages>& ring_at, int units,
                           std::uint32_t /*nothing*/) const {
    const int count = units * stages_of(p);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      if (reads(i)) {
        multiply_stage(m, ring, stages, ring_at, i * kSlices, p == kMlpOut && i % 4 >= 2);
      }
      ring_at.advance();
    }
  }

 private:
  static __device__ void take_words(std::uint32_t (&to)[kSteps][2], const float* from, int slice,
                                    int rows) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    uint4 words[kSteps / 2] = {};
    if (lane / 4 < rows) {
      wire::take_fours(words,
                       [&](int i) { return from + ((slice * (kSteps / 2) + i) * 32 + lane) * 4; });
    }
#pragma unroll
    for (int i = 0; i < kSteps / 2; ++i) {
      to[2 * i][0] = words[i].x;
      to[2 * i][1] = words[i].y;
      to[2 * i + 1][0] = words[i].z;
      to[2 * i + 1][1] = words[i].w;
    }
  }

  __device__ void multiply_stage(Memory& m, Ring& ring, const std::byte* stages,
                                 const Cursor<kRingStages>& ring_at, int first_part,
                                 bool second) const {
    const int slice = static_cast<int>(threadIdx.x) / 32 % 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    ring.wait_full(ring_at);
    // [k / 64][output][64], the chunks of sixteen bytes exchanged by output.
    const std::byte* const from =
        stages + ring_at.stage * kStageBytes + (slice * 3 * kOutputs + lane % 16) * 128;
    std::uint32_t a[kSteps][4];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int chunk = (step % 4 * 2 + lane / 16) ^ (lane % 8);
      load_matrices(a[step], from + step / 4 * kOutputs * 128 + chunk * 16);
    }
    float sum[4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      multiply_add(sum, a[step], second ? x[1][step][0] : x[0][step][0],
                   second ? x[1][step][1] : x[0][step][1]);
    }
    float* const to =
        m.part + ((first_part + slice) * kFewRows + lane % 4 * 2) * kOutputs + lane / 4;
    to[0] = sum[0];
    to[kOutputs] = sum[1];
    to[8] = sum[2];
    to[kOutputs + 8] = sum[3];
  }
};

}  // namespace toto::cuda::layers
