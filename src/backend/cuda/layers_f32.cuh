// SPDX-License-Identifier: Apache-2.0
// Products of the kernel of all layers in float32. What bounds them is the way from shared memory
// to registers, so a thread holds the inputs of two rows in registers and reads each weight once
// for both. A slice of k is then too long for one thread: two lanes have a half of it each, and the
// first passes its sums on to the second, so that every chain still runs over its slice in order.
// The eight slices side by side in a warp read different banks of a stage, because the copy engine
// has swizzled it.
#pragma once

#include "backend/cuda/layers.cuh"
#include "backend/cuda/ring.cuh"

namespace toto::cuda::layers {

struct Float32 {
  static constexpr int kReaders = kWorkers / 32;
  static constexpr int kSlices = kDim / kSlice;         // of kDim inputs
  static constexpr int kRows = 2;                       // of a thread
  static constexpr int kQuads = kSlice / 2 / 4;         // of sixteen bytes in half a slice
  static constexpr int kSegment = 32;                   // floats of 128 bytes
  static constexpr int kRowSegments = kDim / kSegment;  // of kDim inputs of one output
  static constexpr int kSlicePitch = kSlice + 4;
  static constexpr bool kReleasesLate = false;  // a product can have more stages than the ring
  static __device__ bool reads(int) { return true; }
  static constexpr int kMostUnits = outs(kMlpIn) / 8 / kLeastProcessors;
  static_assert(kSlices == 8 && kStageBytes == 8 * kDim * 4);

  /// A unit is one stage: so many outputs with all their inputs.
  static constexpr __host__ __device__ int unit_outs(int p) { return 8 * kDim / ins(p); }
  static constexpr __host__ __device__ int units(int p) { return outs(p) / unit_outs(p); }
  static constexpr __host__ __device__ int stages_of(int) { return 1; }

  struct Memory {
    alignas(16) float x[kFewRows][kSlices][kSlicePitch];
    alignas(16) float part[kMostUnits * 8 * kFewRows * kSlices];  // [unit][output][row][slice]
  };

  static __device__ void stream(void* to, const CUtensorMap& map, int unit, int,
                                std::uint64_t* full) {
    copy_tile(to, map, 0, unit * 8 * kRowSegments, full);
  }

  /// The place of this thread.
  struct Place {
    int row;    // the first of its rows
    int group;  // of outputs, or of slices where there are more than eight
    int half;   // of the slice
    int slice;  // of eight
    __device__ Place() {
      const int warp = static_cast<int>(threadIdx.x) / 32;
      const int lane = static_cast<int>(threadIdx.x) % 32;
      row = warp % 2 * 4 + lane / 16 * kRows;
      group = warp / 2;
      half = lane / 8 % 2;
      slice = lane % 8;
    }
  };

  /// Element (row, k) of the gated values: a thread of mlp_out reads its own sixteen bytes at a
  /// time.
  static __device__ int gated_at(int row, int k) {
    const int slice = k / kSlice;
    const int quad = k % kSlice / 4;
    const int thread =
        (slice / 8 * 2 + row / 4) * 32 + row % 4 / kRows * 16 + quad / kQuads * 8 + slice % 8;
    return ((row % kRows * kQuads + quad % kQuads) * kWorkers + thread) * 4 + k % 4;
  }

  static __device__ void put_attended(float* wire, int row, int channel, float v) {
    wire::put(wire + row * kDim + channel + static_cast<int>(threadIdx.x) % 32, v);
  }

  /// Outputs that one thread takes at the end of mlp_in: a gate and its value.
  static constexpr int kGatedOuts = 2;
  static __device__ int item_bits(int p) { return p == kMlpOut ? 1 : p == kMlpIn ? 2 : 3; }
  static __device__ int gated_output(int item, int i) { return 2 * item + i; }
  static __device__ void put_gated(float* wire, int row, int unit, int pair,
                                   const float (&v)[kGatedOuts]) {
    wire::put(wire + gated_at(row, unit * 4 + pair), silu(v[0]) * v[1]);
  }

  uint4 x[kRows][kQuads];

  /// The inputs of product p into registers. All workers.
  __device__ void take(int p, Memory& m, const float* from, const float* gain, int rows) {
    const Place at;
    const int thread = static_cast<int>(threadIdx.x);
    if (p == kMlpOut) {
      // For rows that are not there row 0 is read, of which nobody asks for the outputs.
      const float* own[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        own[r] = from + (at.row + r < rows ? r * kQuads * kWorkers + thread : thread & ~48) * 4;
      }
      wire::take_fours(*reinterpret_cast<uint4(*)[kRows * kQuads]>(&x),
                       [&](int i) { return own[i / kQuads] + i % kQuads * kWorkers * 4; });
      sync_workers();
      return;
    }
    const int warp = thread / 32;
    const int lane = thread % 32;
    float4 v[kDim / 128] = {};
    if (warp < rows) take_row(v, from + warp * kDim, gain, p != kOut);
#pragma unroll
    for (int i = 0; i < kDim / 128; ++i) {
      const int k = i * 128 + lane * 4;
      *reinterpret_cast<float4*>(&m.x[warp][k / kSlice][k % kSlice]) = v[i];
    }
    sync_workers();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        x[r][i] =
            *reinterpret_cast<const uint4*>(&m.x[at.row + r][at.slice][(at.half * kQuads + i) * 4]);
      }
    }
  }

  /// All units of this block, of which the stages begin at `ring_at`. Of each a warp has two
  /// outputs.
  __device__ void multiply(int p, Memory& m, Ring& ring, const std::byte* stages,
                           Cursor<kRingStages>& ring_at, int units) const {
    const Place at;
    // Twelve chunks of sixteen bytes in three runs of four; within a run the swizzle is an
    // exclusive or with the address of its first.
    unsigned runs[3];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const int quad = at.half * kQuads + i * 4;
      const int segment = at.slice * 3 + quad / 8;
      runs[i] = static_cast<unsigned>(at.group * kRowSegments * 128 + segment * 128 +
                                      ((quad % 8 ^ segment % 8) << 4));
    }
    // Groups are outputs; where there are more slices than eight, they are slices.
    const int slices = ins(p) / kSlice;
    float* part = p == kMlpOut ? m.part + at.row * slices + at.group * 8 + at.slice
                               : m.part + (at.group * kFewRows + at.row) * slices + at.slice;
    const int next_part = (p == kMlpOut ? 1 : 4) * kFewRows * slices;
    const int outputs = 2 * units;
    Cursor<kRingStages> done = ring_at;
    const unsigned begin = ring_at.stage;
    static_assert(kMostUnits <= 2 * kRingStages);
    const unsigned first = shared_address(stages);
    unsigned from = first + begin * kStageBytes;  // of the output that this lane is at
    float sum[kRows] = {};
#pragma unroll 1
    for (int step = 0; step <= outputs; ++step) {
      if (step < outputs && step % 2 == 0) {
        ring.wait_full(ring_at);
        ring_at.advance();
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float before = __shfl_up_sync(~0U, sum[r], 8);
        sum[r] = at.half == 0 ? 0.0F : before;
      }
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const float4 u = load_shared((from + runs[i / 4]) ^ static_cast<unsigned>(i % 4 << 4));
#pragma unroll
        for (int r = 0; r < kRows; ++r) sum[r] = __fmaf_rn(u.x, __uint_as_float(x[r][i].x), sum[r]);
#pragma unroll
        for (int r = 0; r < kRows; ++r) sum[r] = __fmaf_rn(u.y, __uint_as_float(x[r][i].y), sum[r]);
#pragma unroll
        for (int r = 0; r < kRows; ++r) sum[r] = __fmaf_rn(u.z, __uint_as_float(x[r][i].z), sum[r]);
#pragma unroll
        for (int r = 0; r < kRows; ++r) sum[r] = __fmaf_rn(u.w, __uint_as_float(x[r][i].w), sum[r]);
      }
      if (step > 0) {
        if (at.half == 1) {
#pragma unroll
          for (int r = 0; r < kRows; ++r) part[r * slices] = sum[r];
        }
        part += next_part;
        if (step % 2 == 0) {  // a unit's second output has come through
          __syncwarp();
          if (threadIdx.x % 32 == 0) ring.release(done);
          done.advance();
        }
      }
      // The second half is an output behind; beyond the last one nobody asks for what is summed.
      const int next = min(step + 1 - at.half, outputs - 1);
      const unsigned slot = begin + static_cast<unsigned>(next) / 2;
      from = first + (slot < kRingStages ? slot : slot - kRingStages) * kStageBytes +
             next % 2 * 4 * kRowSegments * 128;
    }
  }

  /// The sum over the slices of a product's output, counted over the units of this block.
  static __device__ float total(int p, const Memory& m, int output, int row) {
    const int slices = ins(p) / kSlice;
    const float* const part = m.part + (output * kFewRows + row) * slices;
    float sum = 0;
    for (int s = 0; s < slices; s += 8) {
      const float4 u = *reinterpret_cast<const float4*>(part + s);
      const float4 v = *reinterpret_cast<const float4*>(part + s + 4);
      sum += u.x;
      sum += u.y;
      sum += u.z;
      sum += u.w;
      sum += v.x;
      sum += v.y;
      sum += v.z;
      sum += v.w;
    }
    return sum;
  }
};

}  // namespace toto::cuda::layers
