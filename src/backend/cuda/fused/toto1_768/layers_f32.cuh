// SPDX-License-Identifier: Apache-2.0
// Products of the kernel of all layers in float32, on tensor cores, of operands that are split or
// rounded (split.cuh).
// A warp has three slices of each stage, whose inputs it holds in registers as the tensor cores
// take them; in mlp_out a stage has a quarter of the inputs, and those of the next one are asked
// for while it is multiplied.
#pragma once

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/split.cuh"
#include "layers.cuh"
#include "ring.cuh"

namespace toto::cuda::layers {

template <Operands O>
struct OfFloat32 {
  static constexpr int kOutputs = 8;                      // of a unit
  static constexpr int kSlices = kDim / kSplitSlice;      // of kDim inputs
  static constexpr int kOwn = kSlices / (kWorkers / 32);  // of a warp, side by side
  static constexpr int kSets = kHidden / kDim;            // stages of a unit of mlp_out
  static constexpr int kQuads = kOwn * 2;                 // of sixteen bytes: sixteen k of a row
  static constexpr bool kReleasesLate = false;
  static constexpr bool kSteadiesClock = false;  // tensor cores have more to do: worth less
  static constexpr int kAsker = 0;               // in await_any()
  static_assert(kOwn * (kWorkers / 32) == kSlices && kStageBytes == kOutputs * kDim * 4);
  static constexpr int kMaxParts = outs(kMlpIn) / kOutputs / kMinProcessors * kSlices;
  static_assert(kDim / kOutputs <= kMinProcessors && kMaxParts >= kSets * kSlices);

  static constexpr int kSums = 1;  // there is no room for those of two products
  static constexpr int kSumWords = kMaxParts * kFewRows * kOutputs;  // [unit][slice][row][output]

  static __device__ void stream(void* to, const CUtensorMap& map, int unit, int stage,
                                std::uint64_t* full) {
    copy_once(to, map, 0, unit * kOutputs, stage * kSlices, full);
  }
  static __device__ float residual(float before, float v) { return before + v; }

  /// The word with element (row, k) of inputs that lie as a warp loads them.
  static __device__ int word_at(int row, int place) {
    const auto k = static_cast<unsigned>(place);
    return static_cast<int>(((k / 16 * 32) + row * 4 + k % 4) * 4 + k % 16 / 4);
  }

  /// Inputs k, which is even, and k + 1 of a row, `at` word_at() of the first.
  static __device__ void put_inputs(float* at, float v, float next) {
    flag::publish(at, v);
    flag::publish(at + 4, next);
  }

  /// What one thread ends, an item: two outputs, in mlp_in a gate and its value.
  static constexpr int kItems = kOutputs / 2;  // of a unit and row
  static __device__ int first_output(int, int item) { return 2 * item; }
  static __device__ int second_output(int) { return 1; }  // after the first
  static constexpr int kAddedAtOnce = 1;                  // stages
  static __device__ float2 sums(int, const float* first) {
    return *reinterpret_cast<const float2*>(first);
  }
  static __device__ int gated_word(int row, int unit, int item) {
    return word_at(row, unit * 4 + item);
  }
  static __device__ void put_gated(float* to, float v) {
    if (to != nullptr) flag::publish(to, v);
  }

  SplitInputs<kOwn, O> x;
  static_assert(kWorkers / 32 == kFewRows);  // a warp has the squares of one row

  struct Places {
    Places() = default;
    __device__ explicit Places(const std::byte*) {}
  };

  /// Before take(): nothing here.
  template <int P>
  __device__ void prepare(Ring&, const Places&, const Cursor<kRingStages>&, int) {}

  /// The inputs of a product into registers, in mlp_out the first quarter.
  template <int P>
  __device__ void take(const float* from, int rows) {
    const int warp = thread_now() / 32;
    const int lane = thread_now() % 32;
    own_ = from + (warp * kQuads * 32 + lane) * 4;
    there_ = lane / 4 < rows;
    const float* const row = from + (kSquares - kInputs) + warp * kSquareWords + lane * 4;
    await_any<kAsker>(from);
    if constexpr (is_normed(P)) squares_.look(row, warp < rows);
    uint4 words[kQuads] = {};
    flag::wait_fours(
        words, [&](int i) { return own_ + i * 32 * 4; }, there_);
#pragma unroll
    for (int i = 0; i < kQuads; ++i) x.set(i, words[i]);
  }

  /// All units of this block, of which the stages begin at `ring_at`. Sums go to `part`; the
  /// inverse of the norm of a warp's row, if any, to inverse[warp].
  template <int P>
  __device__ void multiply(float* part, float* inverse, Ring& ring, const std::byte* stages,
                           Cursor<kRingStages>& ring_at, int units, std::uint32_t nothing) {
    if constexpr (P != kMlpOut) {
#pragma unroll 1
      for (int i = 0; i < units; ++i) {
        multiply_stage<true>(part, ring, stages, ring_at, i * kSlices, nothing);
        ring_at.advance();
      }
      if constexpr (is_normed(P)) {
#pragma unroll
        for (int i = 0; i < Squares::kSteps; ++i) squares_.step(i, inverse + thread_now() / 32);
      }
    } else {
#pragma unroll 1
      for (int set = 0; set < kSets; ++set) {
        uint4 next[kQuads] = {};
        own_ += kSlices * 2 * 32 * 4;
        const auto at = [&](int q) { return own_ + q * 32 * 4; };
        const bool more = set + 1 < kSets;
        if (more && there_) flag::peek_fours(next, at);
        multiply_stage<true>(part, ring, stages, ring_at, set * kSlices, nothing);
        ring_at.advance();
        if (!more) return;
        if (there_) flag::wait_peeked_fours(next, at);
#pragma unroll
        for (int q = 0; q < kQuads; ++q) x.set(q, next[q]);
      }
    }
  }

  /// A stage, of which the sums go to `part` from the slice `first_part` on. If it is not to be
  /// given back here, the caller does (Ring::release()).
  template <bool GivesBack>
  __device__ void multiply_stage(float* part, Ring& ring, const std::byte* stages,
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
    x.multiply(sum, w, GivesBack ? ring.release_once(ring_at, read, nothing) : 0);
    auto* const to = reinterpret_cast<float2*>(part) +
                     (first_part + warp * kOwn) * (kFewRows * kOutputs / 2) + lane;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) to[i * (kFewRows * kOutputs / 2)] = sum[i];
  }

 private:
  const float* own_;  // where the words of this lane lie
  bool there_;        // whether its row is
  Squares squares_;   // of the warp's row
};
using Float32 = OfFloat32<Operands::split>;
using Tf32 = OfFloat32<Operands::rounded>;

}  // namespace toto::cuda::layers
