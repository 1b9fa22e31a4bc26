// SPDX-License-Identifier: Apache-2.0
// What the kernel of all layers is made of, whatever its type: sizes, the wires between its blocks
// of threads, who computes what, norm.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/norm.cuh"
#include "backend/cuda/ops/rotary.cuh"
#include "backend/cuda/runtime/flag_in_data.cuh"
#include "backend/cuda/runtime/live.h"

namespace toto::cuda::layers {

inline constexpr int kDim = kNormedWidth;
inline constexpr int kHidden = 3072;
inline constexpr int kHead = 64;
inline constexpr int kHeads = 12;
inline constexpr int kMaxLayers = 24;
inline constexpr int kMaxEmbedded = 64;  // steps of a patch
inline constexpr int kMinProcessors = 96;
inline constexpr int kMaxProcessors = 144;  // then every block has units of qkv and mlp_in
inline constexpr int kWorkers = 256;        // threads that compute; a warp more streams weights

enum Product { kQkv, kOut, kMlpIn, kMlpOut, kProducts, kAfter = kProducts };
__host__ __device__ constexpr int outs(int p) {
  return p == kQkv ? 3 * kDim : p == kMlpIn ? 2 * kHidden : kDim;
}
__host__ __device__ constexpr int ins(int p) { return p == kMlpOut ? kHidden : kDim; }
/// Whether its inputs are normed: with their squares.
__host__ __device__ constexpr bool is_normed(int p) { return p == kQkv || p == kMlpIn; }
/// Stages of a unit, which is so many outputs with all their inputs.
__host__ __device__ constexpr int stages_of(int p) { return ins(p) / kDim; }

/// What there is of a layer besides its matrices.
struct Vectors {
  const float* bias[kProducts];
  const float* norm[2];
  std::int32_t space;
};

/// One layer, in the device's memory.
struct LayerOnDevice {
  CUtensorMap maps[kProducts];
  Vectors vectors;
};

/// Brings a share of the vectors as far as the cache: lines of 128 bytes dealt to `count` lanes of
/// all blocks of threads.
__device__ inline void prefetch(const Vectors& v, int lane, int count) {
  const int own = lane * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  const int all = count * static_cast<int>(gridDim.x);
  const auto lines = [&](const float* from, int length) {
    for (int i = own; i * 32 < length; i += all) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i * 32));
    }
  };
  for (int p = 0; p < kProducts; ++p) lines(v.bias[p], outs(p));
  lines(v.norm[0], kDim);
  lines(v.norm[1], kDim);
}

/// The product after the layers, of the last tokens, in float32 whatever the type of the layers.
struct After {
  std::int32_t outs;  // 0: there is none in this kernel
  const float* bias;
  float* y;  // [rows][outs]
};
inline constexpr int kMaxAfter = 6144;  // outputs

struct Arguments {
  const LayerOnDevice* layers;  // [count], and one whose first map is of the product after them
  std::int32_t count;
  std::int32_t last_time;  // after its attention only the last tokens go on; count: never
  std::int32_t most_rows;  // there is room for in x
  const LiveBatch* all;
  const LiveBatch* last;
  RotaryTables rotary;
  DeviceMatrix embed;  // the patch embedding; without weights it was carried out before
  const float* x;      // scaled values [rows][embed.in], or rows that are embedded [rows][768]
  float* y;            // the last tokens, where no product comes after them
  After after;
  float* wires;       // two sets: of this launch, and of the next, which this one clears
  std::int32_t* set;  // [2] which one is of this launch; the same, to be read by the next kernel
  std::uint32_t nothing;    // zero, which the compiler does not know (Ring::release_once)
  float* keys[kMaxLayers];  // of each layer; of time layers only
  float* values[kMaxLayers];
};

/// Words of the residual stream between two parts of a layer: where each kind begins.
inline constexpr int kRows = 0;                             // [rows][dim]
inline constexpr int kInputs = kRows + kFewRows * kDim;     // times the next norm's gain
inline constexpr int kSquares = kInputs + kFewRows * kDim;  // sums of groups, as square_at()
inline constexpr int kStreamWords = kSquares + kFewRows * kSquareWords;
/// Words between the phases of one layer: where each kind begins. Inputs of products are laid out
/// by their type.
enum Wire {
  kQkvWire = 0,                                    // [rows][3][heads][64]
  kAttendedWire = kQkvWire + kFewRows * 3 * kDim,  // inputs
  kMiddleWire = kAttendedWire + kFewRows * kDim,   // the stream, after the attention
  kGatedWire = kMiddleWire + kStreamWords,         // inputs
  kEndWire = kGatedWire + kFewRows * kHidden,      // the stream into the next layer
  kWireWords = kEndWire + kStreamWords
};
/// Where the words of the product after the layers are, [rows][outs].
__host__ __device__ constexpr int after_at(int layers) {
  return layers * kWireWords + kStreamWords;
}
/// Words of a set: the stream of embedded rows, all layers, what comes after them.
__host__ __device__ constexpr int set_words(int layers) {
  return after_at(layers) + kFewRows * kMaxAfter;
}

/// The set of this launch. Once the kernel has begun: one before it may have had the other.
__device__ inline float* own_wires(const Arguments& a) {
  return a.wires + *a.set * set_words(a.count);
}

/// Where in a set the words of a wire begin, and those of the stream that goes into a layer:
/// without a sign, so that one addition of 64 bits makes a pointer of them.
__device__ inline unsigned wire_at(int layer, Wire wire) {
  return static_cast<unsigned>(kStreamWords + layer * kWireWords + wire);
}
__device__ inline unsigned stream_at(int layer) {
  return static_cast<unsigned>(layer * kWireWords);
}
__device__ inline float* wire_of(float* wires, int layer, Wire wire) {
  return wires + wire_at(layer, wire);
}
__device__ inline float* stream_into(float* wires, int layer) { return wires + stream_at(layer); }

/// The inputs of the product after the layers, as Float32 takes them.
__device__ inline float* inputs_after(float* wires, const Arguments& a) {
  return stream_into(wires, a.count) + kInputs;
}

/// Where two neighbours of a row of the stream go.
struct StreamPlace {
  float* inputs = nullptr;  // nullptr: there are none
  float* rows = nullptr;
  float* squares = nullptr;  // of their group; nullptr where another lane has it

  StreamPlace() = default;
  /// `stream`: where it begins in the set. `word`: where the type of the products has them.
  __device__ StreamPlace(float* wires, unsigned stream, int word, int row, int column)
      : inputs(wires + (stream + static_cast<unsigned>(kInputs + word))),
        rows(wires + (stream + static_cast<unsigned>(kRows + row * kDim + column))),
        squares(column % kNormGroup == 0
                    ? wires + (stream + static_cast<unsigned>(kSquares + square_at(row, column)))
                    : nullptr) {}
};

/// Hands them on: by all of a warp, of which four lanes in turn have the columns of a group.
template <typename T>
__device__ void put_stream(const StreamPlace& to, const float2& v, const float2& gain) {
  const bool there = to.inputs != nullptr;
  if (there) T::put_inputs(to.inputs, v.x * gain.x, v.y * gain.y);
  float squares = pair_squares(v.x, v.y);
  squares += __shfl_xor_sync(~0U, squares, 1);
  squares += __shfl_xor_sync(~0U, squares, 2);
  if (to.squares != nullptr) flag::publish(to.squares, squares);
  if (there) flag::publish_pair(to.rows, v);
}

/// Makes this block's share of a set of wires empty: `count` lanes of all blocks.
__device__ inline void clear(float* wires, int words, int lane, int count) {
  const int own = lane * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  const int all = count * static_cast<int>(gridDim.x);
  auto* const fours = reinterpret_cast<uint4*>(wires);
  constexpr std::uint32_t kEmpty = kEmptyWord;
  for (int i = own; i < words / 4; i += all) {
    fours[i] = uint4{kEmpty, kEmpty, kEmpty, kEmpty};
  }
}

/// The index of this thread, read anew: otherwise all that follows from it would be kept in
/// registers from the first layer to the last. Of the workers only.
__device__ inline int thread_now() {
  int thread = 0;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  __builtin_assume(thread >= 0 && thread < kWorkers);  // or divisions would look at the sign
  return thread;
}

/// The same of this block's index.
__device__ inline int block_now() {
  int block = 0;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  __builtin_assume(block >= 0 && block < kMaxProcessors);
  return block;
}

/// Of the workers only.
__device__ inline void sync_workers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kWorkers) : "memory");
}

/// Units of work of the whole launch are dealt to the blocks of threads in turn. What a block has
/// to know of a product for that: its units as so many rounds and a rest.
struct Deal {
  int rounds, rest;
};
/// Where the dealing has come to for this block: how many units are to be dealt before its next.
struct Turn {
  int wait = static_cast<int>(blockIdx.x);
  /// Its share of a product's units: `first`, first + blocks, ... Goes on to the next product.
  __device__ int take(const Deal& deal, int& first) {
    first = wait;
    const int count = deal.rounds + (wait < deal.rest ? 1 : 0);
    wait -= deal.rest;
    if (wait < 0) wait += static_cast<int>(gridDim.x);
    return count;
  }
};

/// Where a row of the trimmed batch comes from.
__device__ inline int row_before(const Arguments& a, int lane) {
  const Block& b = a.all->blocks[block_of_lane(*a.all, lane)];
  return b.row + (lane - b.lane) * b.tokens + b.tokens - 1;
}

/// Until the first word of a product's inputs is there, by all workers: one of them, `Asker`, asks
/// for it. If all of them asked for all that they want, again and again, they would be in the way
/// of those who write it.
template <int Asker>
__device__ void await_any(const float* inputs) {
  static_assert(Asker < kWorkers);
  if (thread_now() == Asker) flag::wait_word(inputs);
  sync_workers();
}

/// The squares of a row, which a warp adds up while the row is multiplied.
class Squares {
 public:
  static constexpr int kSteps = 6;

  /// Asks for this lane's three, which lie at `at` with a word that nobody writes; not `there`:
  /// there are none.
  __device__ void look(const float* at, bool there) {
    at_ = at;
    three_ = {};
    if (there) three_ = flag::peek_four(at);
  }
  /// By steps i = 0, 1, ... in order, after the last of which *inverse is what a product of the row
  /// is multiplied with.
  __device__ void step(int i, float* inverse) {
    if (i == 0) {
      for (std::uint32_t asked = 0; !flag::three_there(three_); ++asked) {
        if (asked == flag::kMaxPolls) __trap();
        three_ = flag::peek_four(at_);
      }
      sum_ = __uint_as_float(three_.x) + __uint_as_float(three_.y) + __uint_as_float(three_.z);
    }
    if (i < kSteps - 1) {
      sum_ += __shfl_xor_sync(~0U, sum_, 1 << i);
    } else if (threadIdx.x % 32 == 0) {
      *inverse = inverse_root_mean(sum_);
    }
  }

 private:
  const float* at_;
  uint4 three_;
  float sum_ = 0;
};

}  // namespace toto::cuda::layers
