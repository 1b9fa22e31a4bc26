// SPDX-License-Identifier: Apache-2.0
// Products of the fused forward in bfloat16, on tensor cores. A stage has four slices of k, each
// one chain of MMAs, so it takes four warps, a slice each. In mlp_out, where a thread block has
// four stages of one unit, both groups of four warps multiply, every second stage each. The other
// products have a stage for each unit and share one set of inputs: there the first group multiplies
// all units, since chains wait for latency, not for tensor cores, and a second group would load the
// same inputs again. A warp holds its inputs in registers as MMAs take them, and the weights of its
// first stages wait there for them; those of the others are read from the ring while it multiplies.
#pragma once

#include "backend/cuda/gemm/mma.cuh"
#include "layers.cuh"
#include "ring.cuh"

namespace toto::cuda::layers {

struct Bfloat16 {
  static constexpr int kOutputs = 16;  // of a unit
  static constexpr int kSlices = kDim / kSliceBf16;
  static constexpr int kSteps = kSliceBf16 / 16;
  static constexpr int kGroups = kWorkers / 32 / kSlices;  // of warps
  /// Stages are given back when the inputs of the next product are there: refilled at once, they
  /// would be in the way of those inputs.
  static constexpr bool kReleasesLate = true;
  /// Tensor cores have so little to do that they need a warp that keeps the clock steady.
  static constexpr bool kSteadiesClock = true;
  /// In await_any(): of the last warp, which has nothing to do at the end of a product of up to
  /// three units and so asks while the first ones hand on what they have.
  static constexpr int kAsker = kWorkers - 32;
  static_assert(kGroups == 2 && kSlices * kGroups == kWorkers / 32);
  static_assert(kSteps % 2 == 0 && kStageBytes == kOutputs * kDim * 2);

  static constexpr int kMaxParts = outs(kMlpIn) / kOutputs / kMinProcessors * kSlices;

  /// Sums of one product and of the next, so that nobody waits until those before were read.
  static constexpr int kSums = 2;
  static constexpr int kSumWords = kMaxParts * kFewRows * kOutputs;  // [unit][slice][row][output]

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

  static constexpr int kSets = kHidden / kDim / kGroups;  // of inputs, in mlp_out; otherwise one
  /// Of how many steps of a warp's n-th chain the weights are read before the inputs are there: as
  /// many as there are registers for.
  template <int P>
  static constexpr int held(int n) {
    return n == 0 ? kSteps : n == 1 && P == kMlpIn ? kSteps / 2 : 0;
  }
  std::uint32_t x[kSets][kSteps][2];
  std::uint32_t w[kSteps + kSteps / 2][4];  // chain by chain
  Squares squares;                          // of the warp's row

  /// Whether a warp of this group multiplies, and which of the block's stages its n-th chain is of.
  template <int P>
  static __device__ bool multiplies(int group) {
    return P == kMlpOut || group == 0;
  }
  template <int P>
  static __device__ int stage_of(int group, int n) {
    return P == kMlpOut ? group + n * kGroups : n;
  }

  /// Before take(): reads weights of the first chains, where `count` stages begin at `at`. Where
  /// there are fewer chains, or a warp has none, it writes the registers all the same: those that
  /// are only sometimes written would be in use from the first layer to the last.
  template <int P>
  __device__ void prepare(Ring& ring, const std::byte* stages, Cursor<kRingStages> at, int count) {
    const int thread = thread_now();
    const int group = thread / 32 / kSlices;
    const bool reads = multiplies<P>(group);
    at.advance(stage_of<P>(group, 0));
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      if (reads && held<P>(n) > 0 && stage_of<P>(group, n) < count) ring.wait_full(at);
#pragma unroll
      for (int step = 0; step < held<P>(n); ++step) {
        auto& to = w[n * kSteps + step];
#pragma unroll
        for (std::uint32_t& word : to) word = 0;
        if (reads) load(to, stages, at, step, thread);
      }
      at.advance(stage_of<P>(0, 1));
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
    const int group = warp / kSlices;
    const bool there = multiplies<P>(group) && lane / 4 < rows;
    // In fours of all lanes: the first of this warp, and from one of its sets to the next.
    const int first = (stage_of<P>(group, 0) * kSlices + warp % kSlices) * kFours;
    constexpr int kApart = P == kMlpOut ? kGroups * kSlices * kFours : 0;
    const float* const own = from + (first * 32 + lane) * 4;
    const float* const row = from + (kSquares - kInputs) + warp * kSquareWords + lane * 4;
    // Not in mlp_out, to which blocks come when most of its inputs are there.
    if constexpr (P != kMlpOut) await_any<kAsker>(from);
    if constexpr (is_normed(P)) squares.look(row, warp < rows);
    uint4 words[kAll] = {};
    flag::wait_fours(
        words, [&](int i) { return own + (i / kFours * kApart + i % kFours) * 32 * 4; }, there);
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
    if (!multiplies<P>(thread_now() / 32 / kSlices)) {
#pragma unroll
      for (int step = 0; step < Squares::kSteps; ++step) norm_meanwhile<P>(step, inverse);
    } else if (P == kMlpOut || (P != kOut && count == 2)) {
      chains<P, 2>(part, inverse, ring, stages, ring_at);
    } else if (P == kMlpIn && count == 3) {
      chains<P, 3>(part, inverse, ring, stages, ring_at);
    } else if (P == kMlpIn && count == 4) {
      chains<P, 4>(part, inverse, ring, stages, ring_at);
    } else {
      chains<P, 1>(part, inverse, ring, stages, ring_at);
    }
    ring_at.advance(count);
  }
  static_assert(outs(kMlpIn) / kOutputs <= 4 * kMinProcessors && kSets == 2 &&
                outs(kQkv) / kOutputs <= 2 * kMinProcessors && kDim / kOutputs <= kMinProcessors);
  static_assert(kSteps >= Squares::kSteps);
  // prepare() waits for up to two stages while those of the product before, up to four, are not
  // given back yet. multiply() waits for up to four when all before are.
  static_assert(kRingStages >= 4 + 2);

 private:
  /// This lane's part of the weights of a stage, [k / 64][output][64], the chunks of sixteen bytes
  /// exchanged by output.
  static __device__ void load(std::uint32_t (&to)[4], const std::byte* stages,
                              const Cursor<kRingStages>& at, int step, int thread) {
    const int lane = thread % 32;
    const int k = thread / 32 % kSlices * kSteps + step;  // in sixteens
    const int chunk = (k % 4 * 2 + lane / 16) ^ (lane % 8);
    load_matrices(
        to, stages + at.stage * kStageBytes + (k / 4 * kOutputs + lane % 16) * 128 + chunk * 16);
  }
  /// Where this thread's sums of the block's first stage go, and those of any.
  static __device__ float* place_of_sums(float* part, int thread) {
    return part + (thread / 32 % kSlices * kFewRows + thread % 4 * 2) * kOutputs + thread % 32 / 4;
  }
  static __device__ void put_sum(float* first, int stage, const float (&sum)[4]) {
    float* const to = first + stage * kSlices * kFewRows * kOutputs;
    to[0] = sum[0];
    to[kOutputs] = sum[1];
    to[8] = sum[2];
    to[kOutputs + 8] = sum[3];
  }
  /// Between steps, which mostly wait for the one before: the inverse of the norm.
  template <int P>
  __device__ void norm_meanwhile(int step, float* inverse) {
    if constexpr (is_normed(P)) {
      if (step < Squares::kSteps) squares.step(step, inverse);
    }
  }

  /// This warp's N chains side by side, for each of them mostly waits for its last step. Weights
  /// that are not held are read `kAhead` steps before they are needed.
  template <int P, int N>
  __device__ void chains(float* part, float* inverse, Ring& ring, const std::byte* stages,
                         const Cursor<kRingStages>& first) {
    constexpr int kAhead = N > 3 ? 1 : 2;
    const int thread = thread_now();
    const int group = thread / 32 / kSlices;
    std::uint32_t streamed[N][kAhead][4];
    const auto read = [&](int step) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (step < held<P>(n) || step >= kSteps) continue;
        Cursor<kRingStages> at = first;
        at.advance(stage_of<P>(group, n));
        if (step == 0) ring.wait_full(at);
        load(streamed[n][step % kAhead], stages, at, step, thread);
      }
    };
#pragma unroll
    for (int step = 0; step < kAhead; ++step) read(step);
    float sum[N][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const auto& in = x[P == kMlpOut ? n : 0][step];
        if (step < held<P>(n)) {
          multiply_add(sum[n], w[n * kSteps + step], in[0], in[1]);
        } else {
          multiply_add(sum[n], streamed[n][step % kAhead], in[0], in[1]);
        }
      }
      read(step + kAhead);
      norm_meanwhile<P>(step, inverse);
    }
    float* const to = place_of_sums(part, thread);
#pragma unroll
    for (int n = 0; n < N; ++n) put_sum(to, stage_of<P>(group, n), sum[n]);
  }
};

}  // namespace toto::cuda::layers
