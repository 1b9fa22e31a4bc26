// SPDX-License-Identifier: Apache-2.0
// Products of the kernel of all layers in bfloat16, on tensor cores. A warp has one slice of k, whose
// inputs it holds in registers as the tensor cores take them, and every other stage.
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
  static_assert(kSlices == kReaders && kStageBytes == kOutputs * kDim * 2);

  static constexpr __host__ __device__ int unit_outs(int) { return kOutputs; }
  static constexpr __host__ __device__ int units(int p) { return outs(p) / kOutputs; }
  static constexpr __host__ __device__ int stages(int p) { return ins(p) / kDim; }
  static constexpr int kMostParts = outs(kMlpIn) / kOutputs / kLeastProcessors * kSlices;

  struct Memory {
    alignas(16) __nv_bfloat16 x[kFewRows][kPitch];
    alignas(16) float part[kMostParts * kFewRows * kOutputs];  // [unit][slice][row][output]
  };

  static __device__ void stream(void* to, const TensorMap* map, int, int unit, int stage,
                                std::uint64_t* full) {
    stream_box(to, map, 0, unit * kOutputs, stage * (kDim / 64), full);
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

  static __device__ void put_attended(const Wires& w, int row, int channel, float v) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float next = __shfl_down_sync(~0U, v, 1);
    if (lane % 2 == 0) wire::put(w.attended + word_at(row, channel + lane), __uint_as_float(pack(v, next)));
  }

  /// Outputs that one thread takes at the end of mlp_in: two gates and their values.
  static constexpr int kGatedOuts = 4;
  template <typename Total>
  static __device__ void put_gated(const Wires& w, int row, int unit, int pair, const Total& total) {
    const int o = 2 * pair;
    const float low = silu(total(o)) * total(o + 8);
    const float high = silu(total(o + 1)) * total(o + 9);
    wire::put(w.gated + word_at(row, unit * 8 + o), __uint_as_float(pack(low, high)));
  }

  template <int P>
  struct Phase {
    static constexpr int kSets = P == kMlpOut ? kHidden / kDim / 2 : 1;
    static constexpr int kOutSlices = ins(P) / kSliceBf16;
    std::uint32_t b[kSets][kSteps][2];

    /// Inputs into registers. All workers.
    __device__ void take(Memory& m, const Wires& w, const float* x_wire, const float* gain,
                         int rows) {
      const int warp = static_cast<int>(threadIdx.x) / 32;
      const int lane = static_cast<int>(threadIdx.x) % 32;
      if constexpr (P == kOut || P == kMlpOut) {
        const float* const from = P == kOut ? w.attended : w.gated;
        uint4 words[kSets * kSteps / 2] = {};
        if (lane / 4 < rows) {
          wire::take_fours(words, [&](int i) {
            const int set = i / (kSteps / 2);
            const int slice = P == kOut ? warp % 4 : (warp / 4 + set * 2) * kSlices + warp % 4;
            return from + ((slice * (kSteps / 2) + i % (kSteps / 2)) * 32 + lane) * 4;
          });
        }
#pragma unroll
        for (int i = 0; i < kSets * kSteps / 2; ++i) {
          auto& to = b[i / (kSteps / 2)];
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
      if (warp < rows) take_normed(v, x_wire + warp * kDim, gain);
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
        b[0][i][0] = r[0];
        b[0][i][1] = r[1];
        b[0][i + 1][0] = r[2];
        b[0][i + 1][1] = r[3];
      }
    }

    /// Unit number i of this block, from stage n on.
    __device__ void multiply(Memory& m, Ring& ring, const std::byte* stages, std::uint32_t n,
                             int i) const {
      const int warp = static_cast<int>(threadIdx.x) / 32;
      if constexpr (P != kMlpOut) {
        if (i % 2 == warp / 4) multiply_stage(m, ring, stages, n, i * kSlices, b[0]);
      } else {
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
          const int quarter = warp / 4 + set * 2;
          multiply_stage(m, ring, stages, n + static_cast<std::uint32_t>(quarter),
                         i * kOutSlices + quarter * kSlices, b[set]);
        }
      }
    }

    static __device__ float total(const Memory& m, int output, int row, const float* bias) {
      const float* const part =
          m.part + (output / kOutputs * kOutSlices * kFewRows + row) * kOutputs + output % kOutputs;
      float sum = 0;
#pragma unroll
      for (int s = 0; s < kOutSlices; ++s) sum += part[s * kFewRows * kOutputs];
      return sum + (bias == nullptr ? 0.0F : *bias);
    }

   private:
    static __device__ void multiply_stage(Memory& m, Ring& ring, const std::byte* stages,
                                          std::uint32_t n, int first_part,
                                          const std::uint32_t (&x)[kSteps][2]) {
      const int slice = static_cast<int>(threadIdx.x) / 32 % 4;
      const int lane = static_cast<int>(threadIdx.x) % 32;
      ring.wait_full(n);
      // [k / 64][output][64], the chunks of sixteen bytes exchanged by output.
      const std::byte* const from = stages + n % kRingStages * kStageBytes +
                                    (slice * 3 * kOutputs + lane % 16) * 128;
      float sum[4] = {};
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        std::uint32_t a[4];
        const int chunk = (step % 4 * 2 + lane / 16) ^ (lane % 8);
        load_matrices(a, from + step / 4 * kOutputs * 128 + chunk * 16);
        multiply_add(sum, a, x[step][0], x[step][1]);
      }
      __syncwarp();
      if (lane == 0) ring.release(n);
      float* const to =
          m.part + ((first_part + slice) * kFewRows + lane % 4 * 2) * kOutputs + lane / 4;
      to[0] = sum[0];
      to[kOutputs] = sum[1];
      to[8] = sum[2];
      to[kOutputs + 8] = sum[3];
    }
  };
};

}  // namespace toto::cuda::layers
