// SPDX-License-Identifier: Apache-2.0
// Products of the kernel of all layers in bfloat16, on tensor cores. A warp has one slice of k of
// each stage, whose inputs it holds in registers as the tensor cores take them; its weights wait
// there for them.
#pragma once

#include "backend/cuda/fused/toto1_768/layers.cuh"
#include "backend/cuda/fused/toto1_768/ring.cuh"
#include "backend/cuda/gemm/mma.cuh"

namespace toto::cuda::layers {

struct Bfloat16 {
  static constexpr int kOutputs = 16;  // of a unit
  static constexpr int kSlices = kDim / kSliceBf16;
  static constexpr int kSteps = kSliceBf16 / 16;
  /// Stages are given back when the inputs of the next product are there: refilled at once, they
  /// would be in the way of those inputs.
  static constexpr bool kReleasesLate = true;
  /// Tensor cores have so little to do that they need a warp that keeps the clock steady.
  static constexpr bool kSteadiesClock = true;
  /// In await_any(): of the last warp, which has nothing to do at the end of a product of up to
  /// three units and so asks while the first ones hand on what they have.
  static constexpr int kAsker = kWorkers - 32;
  static_assert(kSlices == kWorkers / 32 && kStageBytes == kOutputs * kDim * 2);

  static constexpr int kMostParts = outs(kMlpIn) / kOutputs / kLeastProcessors * kSlices;

  /// Sums of one product and of the next, so that nobody waits until those before were read.
  static constexpr int kSums = 2;
  static constexpr int kSumWords = kMostParts * kFewRows * kOutputs;  // [unit][slice][row][output]

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

  /// Inputs k and k + 1 of a row, `at` word_at() of them.
  static __device__ void put_inputs(float* at, float v, float next) {
    flag::publish(at, __uint_as_float(pack(v, next)));
  }

  /// What one thread ends, an item: two outputs, in mlp_in a gate and its value.
  static constexpr int kItems = kOutputs / 2;  // of a unit and row
  static __device__ int first_output(int p, int item) { return p == kMlpIn ? item : 2 * item; }
  static __device__ int second_output(int p) { return p == kMlpIn ? 8 : 1; }  // after the first
  static __device__ float2 sums(int p, const float* first) {
    if (p != kMlpIn) return *reinterpret_cast<const float2*>(first);
    return {first[0], first[second_output(p)]};
  }
  static constexpr int kAddedAtOnce = 4;  // stages
  static __device__ int gated_word(int row, int unit, int item) {
    return word_at(row, unit * 8 + item / 2 * 2);
  }
  /// By all of a warp. Of two neighbours the first one has a word with both.
  static __device__ void put_gated(float* to, float v) {
    const float next = __shfl_down_sync(~0U, v, 1);
    if (to != nullptr && threadIdx.x % 2 == 0) flag::publish(to, __uint_as_float(pack(v, next)));
  }

  static constexpr int kSets = kHidden / kDim;  // of inputs, in mlp_out; otherwise one
  /// Stages whose weights are read before the inputs are there.
  template <int P>
  static constexpr int kReady = P == kOut     ? 1
                                : P == kMlpIn ? 3
                                              : 2;
  std::uint32_t x[kSets][kSteps][2];
  std::uint32_t w[3][kSteps][4];
  Squares squares;  // of the warp's row

  /// Before take(): reads weights of the first of `count` stages from `at` on. Of fewer than it has
  /// room for it reads more all the same: registers that are only sometimes written would be in use
  /// from the first layer to the last.
  template <int P>
  __device__ void prepare(Ring& ring, const std::byte* stages, Cursor<kRingStages> at, int count) {
    const int thread = thread_now();
#pragma unroll
    for (int n = 0; n < kReady<P>; ++n) {
      if (n < count) ring.wait_full(at);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) load(w[n][step], stages, at, step, thread);
      at.advance();
    }
  }

  /// The inputs of a product into registers.
  template <int P>
  __device__ void take(const float* from, int rows) {
    constexpr int kFours = kSteps / 2;
    constexpr int kAll = (P == kMlpOut ? kSets : 1) * kFours;
    const int thread = thread_now();
    const int warp = thread / 32;
    const int lane = thread % 32;
    const bool there = lane / 4 < rows;
    const float* const own = from + (warp * kFours * 32 + lane) * 4;
    const float* const row = from + (kSquares - kInputs) + warp * kSquareWords + lane * 4;
    // Not in mlp_out, to which blocks come when most of its inputs are there.
    if constexpr (P != kMlpOut) await_any<kAsker>(from);
    if constexpr (is_normed(P)) squares.look(row, warp < rows);
    uint4 words[kAll] = {};
    flag::wait_fours(
        words, [&](int i) { return own + (i / kFours * kSlices * kFours + i % kFours) * 32 * 4; },
        there);
#pragma unroll
    for (int i = 0; i < kAll; ++i) {
      auto& to = x[i / kFours];
      const int step = i % kFours * 2;
      to[step][0] = words[i].x;
      to[step][1] = words[i].y;
      to[step + 1][0] = words[i].z;
      to[step + 1][1] = words[i].w;
    }
  }

  /// All units of this block, of which the stages begin at `ring_at`; in mlp_out a unit has four,
  /// each with a set of inputs. Sums go to `part`; the inverse of the norm of a warp's row, if any,
  /// to inverse[warp].
  template <int P>
  __device__ void multiply(float* part, float* inverse, Ring& ring, const std::byte* stages,
                           Cursor<kRingStages>& ring_at, int units, std::uint32_t /*nothing*/) {
    const int count = units * stages_of(P);
    if constexpr (P == kMlpOut) {
      two_and_two<P>(part, inverse, ring, stages, ring_at);
    } else if (P == kMlpIn && count == 3) {
      side_by_side<P, 3>(part, inverse);
    } else if (P != kOut && count == 2) {
      side_by_side<P, 2>(part, inverse);
    } else if (P == kMlpIn && count == 4) {
      two_and_two<P>(part, inverse, ring, stages, ring_at);
    } else {
      side_by_side<P, 1>(part, inverse);
    }
    ring_at.advance(count);
  }
  static_assert(outs(kMlpIn) / kOutputs <= 4 * kLeastProcessors && kSets == 4 &&
                outs(kQkv) / kOutputs <= 2 * kLeastProcessors &&
                kDim / kOutputs <= kLeastProcessors);
  static_assert(kSteps == Squares::kSteps);
  static_assert(kRingStages >= 4 + kReady<kMlpIn>);  // those before are given back after prepare()

 private:
  /// This lane's part of the weights of a stage, [k / 64][output][64], the chunks of sixteen bytes
  /// exchanged by output.
  static __device__ void load(std::uint32_t (&to)[4], const std::byte* stages,
                              const Cursor<kRingStages>& at, int step, int thread) {
    const int lane = thread % 32;
    const int k = thread / 32 * kSteps + step;  // in sixteens
    const int chunk = (k % 4 * 2 + lane / 16) ^ (lane % 8);
    load_matrices(
        to, stages + at.stage * kStageBytes + (k / 4 * kOutputs + lane % 16) * 128 + chunk * 16);
  }
  /// Where this thread's sums of the first stage go, and those of stage n.
  static __device__ float* place_of_sums(float* part, int thread) {
    return part + (thread / 32 * kFewRows + thread % 4 * 2) * kOutputs + thread % 32 / 4;
  }
  static __device__ void put_sum(float* first, int n, const float (&sum)[4]) {
    float* const to = first + n * kSlices * kFewRows * kOutputs;
    to[0] = sum[0];
    to[kOutputs] = sum[1];
    to[8] = sum[2];
    to[kOutputs + 8] = sum[3];
  }
  /// Between steps, which mostly wait for the one before: the inverse of the norm.
  template <int P>
  __device__ void norm_meanwhile(int step, float* inverse) {
    if constexpr (is_normed(P)) {
      squares.step(step, inverse);
    }
  }

  /// N stages side by side, for each of them is a chain of sums, which mostly waits for its last
  /// step.
  template <int P, int N>
  __device__ void side_by_side(float* part, float* inverse) {
    float* const to = place_of_sums(part, thread_now());
    float sum[N][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int n = 0; n < N; ++n) multiply_add(sum[n], w[n][step], x[0][step][0], x[0][step][1]);
      norm_meanwhile<P>(step, inverse);
    }
#pragma unroll
    for (int n = 0; n < N; ++n) put_sum(to, n, sum[n]);
  }

  /// Four stages from `at` on, the first two of which were read.
  template <int P>
  __device__ void two_and_two(float* part, float* inverse, Ring& ring, const std::byte* stages,
                              Cursor<kRingStages> at) {
    at.advance(2);
    Cursor<kRingStages> last = at;
    last.advance();
    const int thread = thread_now();
    float* const to = place_of_sums(part, thread);
    ring.wait_full(at);
    ring.wait_full(last);
    float sum[4][4] = {};
    const auto add = [&](int n, int step) {
      const auto& own = x[P == kMlpOut ? n : 0][step];
      multiply_add(sum[n], w[n % 2][step], own[0], own[1]);
    };
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      add(0, step);
      add(1, step);
      load(w[0][step], stages, at, step, thread);
      load(w[1][step], stages, last, step, thread);
      norm_meanwhile<P>(step, inverse);
    }
    put_sum(to, 0, sum[0]);
    put_sum(to, 1, sum[1]);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      add(2, step);
      add(3, step);
    }
    put_sum(to, 2, sum[2]);
    put_sum(to, 3, sum[3]);
  }
};

}  // namespace toto::cuda::layers
