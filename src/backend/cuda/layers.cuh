// SPDX-License-Identifier: Apache-2.0
// What the kernel of all layers is made of, whatever its type: sizes, the wires between its blocks
// of threads, who computes what, norm.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "backend/cuda/live.h"
#include "backend/cuda/norm.cuh"
#include "backend/cuda/product.h"
#include "backend/cuda/rotary.cuh"
#include "backend/cuda/wire.cuh"

namespace toto::cuda::layers {

inline constexpr int kDim = kNormedWidth;
inline constexpr int kHidden = 3072;
inline constexpr int kHead = 64;
inline constexpr int kHeads = 12;
inline constexpr int kMostLayers = 32;
inline constexpr int kMostEmbedded = 64;  // steps of a patch
inline constexpr int kLeastProcessors = 96;
inline constexpr int kMostProcessors = 144;  // then every block has units of qkv and mlp_in
inline constexpr int kWorkers = 256;         // threads that compute; a warp more streams weights

enum Product { kQkv, kOut, kMlpIn, kMlpOut, kProducts };
__host__ __device__ constexpr int outs(int p) {
  return p == kQkv ? 3 * kDim : p == kMlpIn ? 2 * kHidden : kDim;
}
__host__ __device__ constexpr int ins(int p) { return p == kMlpOut ? kHidden : kDim; }
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

struct Arguments {
  const LayerOnDevice* layers;
  std::int32_t count;
  std::int32_t last_time;  // after its attention only the last tokens go on
  const LiveBatch* all;
  const LiveBatch* last;
  Rotary rotary;
  DeviceMatrix embed;  // the patch embedding; without weights it was carried out before
  const float* x;      // scaled values [rows][embed.in], or rows that are embedded [rows][768]
  float* y;
  float* wires;              // two sets: of this launch, and of the next, which this one clears
  std::int32_t* set;         // which one is of this launch
  std::uint32_t nothing;     // zero, which the compiler does not know (Ring::release_once)
  float* keys[kMostLayers];  // of each layer; of time layers only
  float* values[kMostLayers];
};

/// Words between the phases of one layer: where each kind begins.
enum Wire {
  kQkvWire = 0,                                    // [rows][3][heads][64]
  kAttendedWire = kQkvWire + kFewRows * 3 * kDim,  // laid out by the type of the products
  kMiddleWire = kAttendedWire + kFewRows * kDim,   // [rows][dim], after the attention
  kGatedWire = kMiddleWire + kFewRows * kDim,      // laid out by the type of the products
  kEndWire = kGatedWire + kFewRows * kHidden,      // [rows][dim]
  kWireWords = kEndWire + kFewRows * kDim
};
/// Words of a set: of all layers, and before those the embedded rows [rows][dim].
__host__ __device__ constexpr int set_words(int layers) {
  return layers * kWireWords + kFewRows * kDim;
}

__device__ inline float* wire_of(float* wires, int layer, Wire wire) {
  return wires + (kFewRows * kDim + layer * kWireWords + wire);
}
/// What goes into a layer. The first one's may lie there from the beginning.
__device__ inline const float* input_of(const Arguments& a, float* wires, int layer) {
  if (layer > 0) return wire_of(wires, layer - 1, kEndWire);
  return a.embed.weights != nullptr ? wires : a.x;
}

/// Makes this block's share of a set of wires empty: `count` lanes of all blocks.
__device__ inline void clear(float* wires, int words, int lane, int count) {
  const int own = lane * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  const int all = count * static_cast<int>(gridDim.x);
  auto* const fours = reinterpret_cast<uint4*>(wires);
  constexpr std::uint32_t kEmpty = wire::kNothing;
  for (int i = own; i < words / 4; i += all) {
    fours[i] = uint4{kEmpty, kEmpty, kEmpty, kEmpty};
  }
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

/// A warp's row, normed as rms_norm does it: this lane's part of it.
__device__ inline void take_row(float4 (&v)[kDim / 128], const float* row, const float* gain) {
  constexpr int kFours = kDim / 128;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float4 gains[kFours];
  load_part(gains, gain);
  uint4 words[kFours];
  wire::await_first(row);
  wire::take_fours(words, [&](int i) { return row + i * 128 + lane * 4; });
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    v[i] = {__uint_as_float(words[i].x), __uint_as_float(words[i].y), __uint_as_float(words[i].z),
            __uint_as_float(words[i].w)};
  }
  norm_part(v, gains);
}

}  // namespace toto::cuda::layers
