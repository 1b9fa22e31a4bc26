// SPDX-License-Identifier: Apache-2.0
// Products of the kernel of all layers in float32. A thread has one row and one slice of k, whose
// inputs it holds in registers; the eight slices that lie side by side in a warp read eight different
// banks of a stage, because the copy engine has swizzled it.
#pragma once

#include "backend/cuda/layers.cuh"
#include "backend/cuda/ring.cuh"

namespace toto::cuda::layers {

struct Float32 {
  static constexpr int kReaders = kWorkers / 32;
  static constexpr int kSlices = kDim / kSlice;           // of kDim inputs
  static constexpr int kQuads = kSlice / 4;
  static constexpr int kSegment = 32;                     // floats of 128 bytes
  static constexpr int kRowSegments = kDim / kSegment;    // of kDim inputs of one output
  static constexpr int kSlicePitch = kSlice + 4;
  static constexpr int kMostUnits = outs(kMlpIn) / 8 / kLeastProcessors;
  static_assert(kSlices == 8 && kStageBytes == 8 * kDim * 4);

  /// A unit is one stage: so many outputs with all their inputs.
  static constexpr __host__ __device__ int unit_outs(int p) { return 8 * kDim / ins(p); }
  static constexpr __host__ __device__ int units(int p) { return outs(p) / unit_outs(p); }
  static constexpr __host__ __device__ int stages(int) { return 1; }  // of a unit

  struct Memory {
    alignas(16) float x[kFewRows][kSlices][kSlicePitch];
    alignas(16) float part[kMostUnits * 8 * kFewRows * kSlices];  // [unit][output][row][slice]
  };

  static __device__ void stream(void* to, const TensorMap* map, int, int unit, int,
                                std::uint64_t* full) {
    stream_box(to, map, 0, unit * 8 * kRowSegments, full);
  }

  /// The place of this thread: row, and slice among those of kDim inputs.
  struct Place {
    int row, group, slice;
    __device__ Place() {
      const int warp = static_cast<int>(threadIdx.x) / 32;
      const int lane = static_cast<int>(threadIdx.x) % 32;
      row = warp % 2 * 4 + lane / 8;
      group = warp / 2;
      slice = lane % 8;
    }
  };

  /// Element (row, k) of the gated values: a thread of mlp_out reads its own sixteen bytes at a time.
  static __device__ int gated_at(int row, int k) {
    const int slice = k / kSlice;
    const int thread = (slice / 8 * 2 + row / 4) * 32 + row % 4 * 8 + slice % 8;
    return (k % kSlice / 4 * kWorkers + thread) * 4 + k % 4;
  }

  static __device__ void put_attended(const Wires& w, int row, int channel, float v) {
    wire::put(w.attended + row * kDim + channel + static_cast<int>(threadIdx.x) % 32, v);
  }

  /// Outputs that one thread takes at the end of mlp_in: a gate and its value.
  static constexpr int kGatedOuts = 2;
  template <typename Total>
  static __device__ void put_gated(const Wires& w, int row, int unit, int pair, const Total& total) {
    wire::put(w.gated + gated_at(row, unit * 4 + pair),
              silu(total(2 * pair)) * total(2 * pair + 1));
  }

  template <int P>
  struct Phase {
    uint4 x[kQuads];
    static constexpr int kOutSlices = ins(P) / kSlice;

    /// Inputs into registers. All workers.
    __device__ void take(Memory& m, const Wires& w, const float* x_wire, const float* gain,
                         int rows) {
      const Place at;
      if constexpr (P == kMlpOut) {
        sync_workers();
        const int thread = static_cast<int>(threadIdx.x);
        if (at.row < rows) {
          wire::take_fours(x, [&](int i) { return w.gated + (i * kWorkers + thread) * 4; });
        } else {
          for (auto& v : x) v = {0, 0, 0, 0};
        }
        return;
      }
      const int warp = static_cast<int>(threadIdx.x) / 32;
      const int lane = static_cast<int>(threadIdx.x) % 32;
      float4 v[kDim / 128] = {};
      if (warp < rows) {
        if constexpr (P == kOut) {
          uint4 words[kDim / 128];
          wire::take_fours(words,
                           [&](int i) { return w.attended + warp * kDim + i * 128 + lane * 4; });
#pragma unroll
          for (int i = 0; i < kDim / 128; ++i) {
            v[i] = {__uint_as_float(words[i].x), __uint_as_float(words[i].y),
                    __uint_as_float(words[i].z), __uint_as_float(words[i].w)};
          }
        } else {
          take_normed(v, x_wire + warp * kDim, gain);
        }
      }
#pragma unroll
      for (int i = 0; i < kDim / 128; ++i) {
        const int k = i * 128 + lane * 4;
        *reinterpret_cast<float4*>(&m.x[warp][k / kSlice][k % kSlice]) = v[i];
      }
      sync_workers();
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        x[i] = *reinterpret_cast<const uint4*>(&m.x[at.row][at.slice][i * 4]);
      }
    }

    /// Unit number i of this block, from stage n: two chains side by side.
    __device__ void multiply(Memory& m, Ring& ring, const std::byte* stages, std::uint32_t n,
                             int i) const {
      const Place at;
      ring.wait_full(n);
      const std::byte* const from = stages + n % kRingStages * kStageBytes +
                                    at.group * kRowSegments * 128 + at.slice * 3 * 128;
      float low = 0;
      float high = 0;
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        const int swizzle = (at.slice * 3 + c) % 8;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const std::byte* const chunk = from + c * 128 + ((e ^ swizzle) << 4);
          const float4 u = *reinterpret_cast<const float4*>(chunk);
          const float4 v = *reinterpret_cast<const float4*>(chunk + 4 * kRowSegments * 128);
          const uint4 q = x[c * 8 + e];
          low = __fmaf_rn(u.x, __uint_as_float(q.x), low);
          high = __fmaf_rn(v.x, __uint_as_float(q.x), high);
          low = __fmaf_rn(u.y, __uint_as_float(q.y), low);
          high = __fmaf_rn(v.y, __uint_as_float(q.y), high);
          low = __fmaf_rn(u.z, __uint_as_float(q.z), low);
          high = __fmaf_rn(v.z, __uint_as_float(q.z), high);
          low = __fmaf_rn(u.w, __uint_as_float(q.w), low);
          high = __fmaf_rn(v.w, __uint_as_float(q.w), high);
        }
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0) ring.release(n);
      if constexpr (P == kMlpOut) {  // groups are further slices
        float* const to = m.part + (i * 2 * kFewRows + at.row) * kOutSlices + at.group * 8 + at.slice;
        to[0] = low;
        to[kFewRows * kOutSlices] = high;
      } else {  // groups are outputs
        float* const to = m.part + ((i * 8 + at.group) * kFewRows + at.row) * kOutSlices + at.slice;
        to[0] = low;
        to[4 * kFewRows * kOutSlices] = high;
      }
    }

    static __device__ float total(const Memory& m, int output, int row, const float* bias) {
      const float* const part = m.part + (output * kFewRows + row) * kOutSlices;
      float sum = 0;
#pragma unroll
      for (int s = 0; s < kOutSlices; s += 4) {
        const float4 v = *reinterpret_cast<const float4*>(part + s);
        sum += v.x;
        sum += v.y;
        sum += v.z;
        sum += v.w;
      }
      return bias == nullptr ? sum + 0.0F : sum + *bias;
    }
  };
};

}  // namespace toto::cuda::layers
