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
  static constexpr int kSlices = kDim / kSliceBf16;
  static constexpr int kSteps = kSliceBf16 / 16;
  static constexpr int kPitch = kDim + 8;
  /// Stages are given back when the inputs of the next product are there: refilled at once, they
  /// would be in the way of those inputs.
  static constexpr bool kReleasesLate = true;
  static_assert(2 * kSlices == kWorkers / 32 && kStageBytes == kOutputs * kDim * 2);

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

  static __device__ void put_attended(float* wire, int row, int channel, float v, float next) {
    wire::put(wire + word_at(row, channel), __uint_as_float(pack(v, next)));
  }

  /// What one thread ends, an item: two outputs, in mlp_in a gate and its value.
  static constexpr int kItems = kOutputs / 2;  // of a unit and row
  static __device__ int first_output(int p, int item) { return p == kMlpIn ? item : 2 * item; }
  static __device__ int second_output(int p) { return p == kMlpIn ? 8 : 1; }  // after the first
  static __device__ float2 sums(int p, const float* first) {
    return {first[0], first[second_output(p)]};
  }
  static __device__ int gated_word(int row, int unit, int item) {
    return word_at(row, unit * 8 + item / 2 * 2);
  }
  /// By all of a warp. Of two neighbours the first one has a word with both.
  static __device__ void put_gated(float* to, float v) {
    const float next = __shfl_down_sync(~0U, v, 1);
    if (to != nullptr && threadIdx.x % 2 == 0) wire::put(to, __uint_as_float(pack(v, next)));
  }

  static constexpr int kSets = kHidden / kDim / 2;  // slices of a warp in mlp_out; otherwise one
  std::uint32_t x[kSets][kSteps][2];

  /// The inputs of product p into registers. All workers.
  __device__ void take(int p, Memory& m, const float* from, const float* gain, int rows) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (p == kOut || p == kMlpOut) {
      const int slice = p == kOut ? warp % 4 : warp / 4 * kSlices + warp % 4;
      const bool two = p == kMlpOut;  // slices; in out half of the warps have none
      uint4 words[kSets * kSteps / 2] = {};
      if (lane / 4 < rows && (two || warp < kSlices)) {
        wire::take_fours(
            words,
            [&](int i) {
              const int of = i < kSteps / 2 ? slice : slice + 2 * kSlices;
              return from + ((of * (kSteps / 2) + i % (kSteps / 2)) * 32 + lane) * 4;
            },
            two);
      }
#pragma unroll
      for (int i = 0; i < kSets * kSteps / 2; ++i) {
        auto& to = x[i / (kSteps / 2)];
        const int step = i % (kSteps / 2) * 2;
        to[step][0] = words[i].x;
        to[step][1] = words[i].y;
        to[step + 1][0] = words[i].z;
        to[step + 1][1] = words[i].w;
      }
      sync_workers();
      return;
    }
    float4 v[kDim / 128] = {};
    if (warp < rows) take_row(v, from + warp * kDim, gain);
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
    const int half = static_cast<int>(threadIdx.x) / 128;
    Cursor<kRingStages> own[2] = {ring_at, ring_at};
    own[0].advance(half);
    own[1].advance(half + 2);
    if (half + 2 < count) {
      multiply_stages<2>(m, ring, stages, own, half * kSlices, p == kMlpOut);
    } else if (half < count) {
      multiply_stages<1>(m, ring, stages, own, half * kSlices, false);
    }
    ring_at.advance(count);
  }
  static_assert(outs(kMlpIn) / kOutputs <= 4 * kLeastProcessors && stages_of(kMlpOut) == 4 &&
                kDim / kOutputs <= kLeastProcessors);

 private:
  /// N stages side by side, for each of them is a chain of sums, which mostly waits for its last
  /// step. If `second`, the second one has the second set of inputs.
  template <int N>
  __device__ void multiply_stages(Memory& m, Ring& ring, const std::byte* stages,
                                  const Cursor<kRingStages> (&own)[2], int first_part,
                                  bool second) const {
    const int slice = static_cast<int>(threadIdx.x) / 32 % 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int n = 0; n < N; ++n) ring.wait_full(own[n]);
    // [k / 64][output][64], the chunks of sixteen bytes exchanged by output.
    const std::byte* const from = stages + (slice * 3 * kOutputs + lane % 16) * 128;
    std::uint32_t a[N][kSteps][4];
    const auto load = [&](int step) {
      const int chunk = (step % 4 * 2 + lane / 16) ^ (lane % 8);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        load_matrices(a[n][step],
                      from + own[n].stage * kStageBytes + step / 4 * kOutputs * 128 + chunk * 16);
      }
    };
    float sum[N][4] = {};
    constexpr int kAhead = 4;
#pragma unroll
    for (int step = 0; step < kAhead; ++step) load(step);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const bool other = n == 1 && second;
        multiply_add(sum[n], a[n][step], other ? x[1][step][0] : x[0][step][0],
                     other ? x[1][step][1] : x[0][step][1]);
      }
      if (step + kAhead < kSteps) load(step + kAhead);
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      float* const to =
          m.part + ((first_part + 2 * n * kSlices + slice) * kFewRows + lane % 4 * 2) * kOutputs +
          lane / 4;
      to[0] = sum[n][0];
      to[kOutputs] = sum[n][1];
      to[8] = sum[n][2];
      to[kOutputs + 8] = sum[n][3];
    }
  }
};

}  // namespace toto::cuda::layers
