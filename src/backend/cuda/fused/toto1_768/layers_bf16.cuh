// SPDX-License-Identifier: Apache-2.0
// Products of the fused forward in bfloat16, on tensor cores. A stage has four slices of k, each
// one chain of MMAs, so it takes four warps, a slice each. In mlp_out, where a thread block has
// four stages of one unit, both groups of four warps multiply, every second stage each. The other
// products have a stage for each unit and share one set of inputs: there the first group multiplies
// all units, since chains wait for latency, not for tensor cores, and a second group would load the
// same inputs again; the second one has the norm. A warp holds its inputs in registers as MMAs take
// them, and the weights of its first stages wait there for them; the rest are read from the ring
// while it multiplies.
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
    copy_once(to, map, 0, unit * kOutputs, stage * (kDim / 64), full);
  }
  static __device__ float residual(float before, float v) { return add_residual(before, v); }

  /// The word with elements (row, k) and (row, k + 1) of inputs that lie as a warp loads them.
  static __device__ int word_at(int row, int place) {
    const auto k = static_cast<unsigned>(place);
    const unsigned step = k % kSliceBf16 / 16;
    const unsigned lane = row * 4 + k % 8 / 2;
    return static_cast<int>(((k / kSliceBf16 * (kSteps / 2) + step / 2) * 32 + lane) * 4 +
                            step % 2 * 2 + k % 16 / 8);
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
    return n == 0 || (n == 1 && is_normed(P)) ? kSteps : 0;
  }
  std::uint32_t w[2][kSteps][4];  // of chains

  /// Where things of a thread lie, found out once: addresses take more instructions than all else
  /// between inputs and outputs.
  struct Places {
    std::uint32_t weights;  // in shared memory: what load() reads first, of stage 0

    Places() = default;
    __device__ explicit Places(const std::byte* stages) {
      const std::uint32_t thread = threadIdx.x;
      const std::uint32_t slice = thread / 32 % kSlices;
      const std::uint32_t lane = thread % 32;
      const std::uint32_t chunk = lane / 16 ^ lane % 8;
      weights = kept(shared_address(stages) + (slice * kSteps / 4 * kOutputs + lane % 16) * 128 +
                     chunk * 16);
    }

   private:
    /// The same, so that the compiler keeps it instead of finding it out again.
    static __device__ std::uint32_t kept(std::uint32_t v) {
      asm volatile("" : "+r"(v));
      return v;
    }
  };

  /// Whether a warp of this group multiplies, and which of the block's stages its n-th chain is of.
  template <int P>
  static __device__ bool multiplies(int group) {
    return P == kMlpOut || group == 0;
  }
  template <int P>
  static __device__ int stage_of(int group, int n) {
    return P == kMlpOut ? group + n * kGroups : n;
  }

  /// Before multiply(): reads weights of the first chains, where `count` stages begin at `at`.
  /// Where there are fewer chains, or a warp has none, it reads what lies there all the same:
  /// registers that are only sometimes written would be in use from the first layer to the last.
  template <int P>
  __device__ void prepare(Ring& ring, const Places& places, Cursor<kRingStages> at, int count) {
    const int group = thread_now() / 32 / kSlices;
    at.advance(stage_of<P>(group, 0));
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      if (held<P>(n) == 0) break;
      if (multiplies<P>(group) && stage_of<P>(group, n) < count) ring.wait_full(at);
      const std::uint32_t from = stage_at(places, at);
#pragma unroll
      for (int step = 0; step < held<P>(n); ++step) load(w[n][step], from, step);
      at.advance(stage_of<P>(0, 1));
    }
  }

  /// Takes the inputs `from` and multiplies all units of this block, of which the stages begin at
  /// `ring_at`; in mlp_out a unit has four, each with a set of inputs. Sums go to `part`; the
  /// inverse of the norm of a row, if any, to inverse[row]. `taken()`: once the inputs are there,
  /// by warps that multiply.
  template <int P, typename Taken>
  __device__ void multiply(const float* from, int rows, float* part, float* inverse, Ring& ring,
                           const Places& places, Cursor<kRingStages>& ring_at, int units,
                           const Taken& taken) {
    constexpr int kFours = kSteps / 2;
    constexpr int kStage = kSlices * kFours * 32 * 4;  // words of a stage
    const int thread = thread_now();
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int group = warp / kSlices;
    // Lanes whose row is not there take another one's words, which nobody needs.
    const int place = lane / 4 < rows ? lane : lane % 4;
    const float* own =
        from + ((P == kMlpOut ? group * kStage : 0) + (warp % kSlices * kFours * 32 + place) * 4);
    asm volatile("" : "+l"(own));  // found out here, not when the first word is there
    // Not in mlp_out, to which blocks come when most of its inputs are there.
    if constexpr (P != kMlpOut) await_any<kAsker>(from);
    const int count = units * stages_of(P);
    if (multiplies<P>(group)) {
      uint4 x[P == kMlpOut ? kSets : 1][kFours];
      flag::wait_fours(reinterpret_cast<uint4(&)[sizeof(x) / sizeof(uint4)]>(x), [&](int i) {
        return own + i / kFours * (kGroups * kStage) + i % kFours * (32 * 4);
      });
      taken();
      if (P == kMlpOut || (P != kOut && count == 2)) {
        chains<P, 2>(x, part, ring, places, ring_at);
      } else if (P == kMlpIn && count == 3) {
        chains<P, 3>(x, part, ring, places, ring_at);
      } else if (P == kMlpIn && count == 4) {
        chains<P, 4>(x, part, ring, places, ring_at);
      } else {
        chains<P, 1>(x, part, ring, places, ring_at);
      }
    } else if (is_normed(P)) {
      find_inverses(from + (kSquares - kInputs) + lane * 4, inverse, warp % kSlices, rows);
    }
    ring_at.advance(count);
  }
  static_assert(outs(kMlpIn) / kOutputs <= 4 * kMinProcessors && kSets == 2 &&
                outs(kQkv) / kOutputs <= 2 * kMinProcessors && kDim / kOutputs <= kMinProcessors);
  static_assert(2 * kSlices == kFewRows);  // rows of a warp of the second group
  // prepare() waits for up to two stages while those of the product before, up to four, are not
  // given back yet. multiply() waits for up to four when all before are.
  static_assert(kRingStages >= 4 + 2);

 private:
  /// By a warp of the second group, of rows `row` and row + kSlices. `squares`: of this lane in row
  /// 0.
  static __device__ void find_inverses(const float* squares, float* inverse, int row, int rows) {
    Squares own[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      own[i].look(squares + (row + i * kSlices) * kSquareWords, row + i * kSlices < rows);
    }
#pragma unroll
    for (int step = 0; step < Squares::kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) own[i].step(step, inverse + row + i * kSlices);
    }
  }
  static __device__ std::uint32_t stage_at(const Places& places, const Cursor<kRingStages>& at) {
    return places.weights + at.stage * kStageBytes;
  }
  /// This lane's part of the weights of a stage, [k / 64][output][64], the chunks of sixteen bytes
  /// exchanged by output. `stage`: stage_at(). A slice begins with a multiple of 64, so a step's
  /// place among the four of those only exchanges chunks.
  static __device__ void load(std::uint32_t (&to)[4], std::uint32_t stage, int step) {
    static_assert(kSteps % 4 == 0);
    load_matrices(to, (stage ^ step % 4 * 32) + step / 4 * (kOutputs * 128));
  }

  /// This warp's N chains side by side, for each of them mostly waits for its last step. Weights
  /// that are not held are read `kAhead` steps before they are needed.
  template <int P, int N, int Sets>
  __device__ void chains(const uint4 (&x)[Sets][kSteps / 2], float* part, Ring& ring,
                         const Places& places, const Cursor<kRingStages>& first) {
    constexpr int kAhead = N > 3 ? 1 : 2;
    const int group = P == kMlpOut ? thread_now() / 32 / kSlices : 0;
    std::uint32_t streamed[N][kAhead][4];
    std::uint32_t from[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (held<P>(n) == kSteps) continue;
      Cursor<kRingStages> at = first;
      at.advance(stage_of<P>(group, n));
      from[n] = stage_at(places, at);
      if (held<P>(n) == 0) ring.wait_full(at);
    }
    const auto read = [&](int step) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (step >= held<P>(n) && step < kSteps) load(streamed[n][step % kAhead], from[n], step);
      }
    };
#pragma unroll
    for (int step = 0; step < kAhead; ++step) read(step);
    float sum[N][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const uint4& both = x[P == kMlpOut ? n : 0][step / 2];
        const auto& weights =
            step < held<P>(n) ? w[n < 2 ? n : 0][step] : streamed[n][step % kAhead];
        multiply_add(sum[n], weights, step % 2 == 0 ? both.x : both.z,
                     step % 2 == 0 ? both.y : both.w);
      }
      read(step + kAhead);
    }
    const int thread = thread_now();
    float* const to = part + stage_of<P>(group, 0) * kStageSums +
                      (thread / 32 % kSlices * kFewRows + thread % 4 * 2) * kOutputs +
                      thread % 32 / 4;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      float* const at = to + stage_of<P>(0, n) * kStageSums;
      at[0] = sum[n][0];
      at[kOutputs] = sum[n][1];
      at[8] = sum[n][2];
      at[kOutputs + 8] = sum[n][3];
    }
  }
  static constexpr int kStageSums = kSlices * kFewRows * kOutputs;
};

}  // namespace toto::cuda::layers
