// SPDX-License-Identifier: Apache-2.0
// Attention over time of a lane that sees few keys (queries.cuh), by one warp.
#pragma once

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/few_keys.cuh"
#include "backend/cuda/ops/heads.cuh"
#include "backend/cuda/ops/queries.cuh"
#include "backend/cuda/ops/rotary.cuh"
#include "backend/cuda/runtime/extent.h"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/runtime/typed.h"

namespace toto::cuda::attend {

static_assert(kFewKeys == kMaxFew);

/// rotary_append() has been: queries are rotated, and the call's own keys are among the others.
struct Appended {
  static constexpr bool kAppends = false;
};
/// It has not: who attends does it too, with the same bits.
struct Appending {
  static constexpr bool kAppends = true;
  RotaryTables rotary;
  float* keys;
  float* values;
  bool kept;
};

/// What all kernels here are given.
template <typename Room, typename T, typename A>
struct Heads {
  const LiveBatch* live;
  const float* qkv;
  const float* keys;
  const float* values;
  T* out;
  std::int32_t heads, d, pitch;
  bool last_only;
  A append;

  /// Queries (part 0), keys and values of a row.
  [[nodiscard]] __device__ const float* part(int of, std::int64_t row, std::int32_t head) const {
    return qkv + ((row * 3 + of) * heads + head) * width();
  }
  /// Four channels of a query, from `e` on: of a block's token.
  [[nodiscard]] __device__ float4 query(const Block& b, std::int32_t token, std::int64_t row,
                                        std::int32_t head, std::int32_t e) const {
    const float4 v = Room::load(part(0, row, head), e, width());
    if constexpr (A::kAppends) return Rotation(append.rotary, b, token, e, width())(v);
    return v;
  }
  /// Of the keys and values that a lane of a block has to itself.
  [[nodiscard]] __device__ std::int64_t suffix(const Block& b, std::int32_t lane,
                                               std::int32_t head) const {
    return b.suffix_at + (std::int64_t{lane} * heads + head) * b.suffix_capacity * width();
  }
  /// Channels of a head.
  [[nodiscard]] __device__ std::int32_t width() const { return Room::width(d); }
};

/// By one warp: values of a lane's tokens `from` to `end`, of which number 0 lies in `row`, to the
/// cache.
template <typename Room, typename T>
__device__ void append_values(const Heads<Room, T, Appending>& h, std::int32_t from,
                              std::int32_t end, std::int64_t at, std::int64_t row,
                              std::int32_t head) {
  constexpr int kFours = Room::D / 4;
  for (int i = from * kFours + static_cast<int>(threadIdx.x) % 32; i < end * kFours; i += 32) {
    const int j = i / kFours;
    const int e = i % kFours * 4;
    put_four(h.append.values + at + j * Room::D + e,
             Room::load(h.part(2, row + j, head), e, Room::D));
  }
}

/// By one warp: some tokens of a lane that sees few keys.
template <typename Room, typename T, typename A>
__device__ void attend_few_tokens(FewShared<Room::D>& shared, const Heads<Room, T, A>& h,
                                  const Block& b, std::int32_t lane, std::int32_t head,
                                  std::int32_t first_token, std::int32_t tokens) {
  const std::int32_t d = h.width();
  const std::int64_t at = h.suffix(b, lane, head);
  const std::int64_t row = b.row + std::int64_t{lane} * b.tokens + first_token;
  const std::int32_t before = b.suffix + first_token + 1;  // keys that the first token sees
  const std::int32_t seen = before + tokens - 1;
  // Where token j of the lane lies, counted with those of calls before.
  const std::int64_t first_row = row - first_token - b.suffix;
  __syncwarp();
  load_few<Room>(&shared.keys[0][0], Room::D + 4, seen, [&](int j, int e) {
    if constexpr (A::kAppends) {
      if (j >= b.suffix) {
        const float4 k = Rotation(h.append.rotary, b, j - b.suffix, e, d)
                             .of_key()(Room::load(h.part(1, first_row + j, head), e, d));
        if (h.append.kept) put_four(h.append.keys + at + j * d + e, k);
        return k;
      }
    }
    return Room::load(h.keys + at + j * d, e, d);
  });
  load_few<Room>(&shared.queries[0][0], Room::D, tokens,
                 [&](int q, int e) { return h.query(b, first_token + q, row + q, head, e); });
  if constexpr (A::kAppends) {
    if (h.append.kept) append_values(h, b.suffix, seen, at, first_row, head);
  }
  __syncwarp();
  const std::int64_t to = h.last_only ? b.lane + lane : row;
  attend_few<Room>(
      shared, tokens, seen, d, [&](int q, int key) { return key < before + q; },
      [&](int key) {
        if (A::kAppends && key >= b.suffix) return h.part(2, first_row + key, head);
        return h.values + at + key * d;
      },
      [&](int q, int e, const float4& v) {
        Room::store(h.out + (to + q) * h.pitch + head * d, e, d, v);
      });
  if (head != 0) return;
  for (std::int32_t q = 0; q < tokens; ++q) clear_padding(h.out, to + q, h.heads * d, h.pitch);
}

/// A warp for each lane and head; of series that see few keys. Appending: all of them do.
template <typename Room, typename T, typename A>
__global__ void __launch_bounds__(32 * kFewWarps<Room::D>) attend_few_keys(Heads<Room, T, A> h) {
  __shared__ __align__(16) FewShared<Room::D> shared[kFewWarps<Room::D>];
  begin_kernel();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t item = std::int64_t{blockIdx.x} * kFewWarps<Room::D> + warp;
  const auto lane = static_cast<std::int32_t>(item / h.heads);
  if (lane >= h.live->lanes) return;
  const Block& b = h.live->blocks[block_of_lane(*h.live, lane)];
  if (!A::kAppends && !sees_few_keys(b)) return;
  const std::int32_t first = h.last_only ? b.tokens - 1 : 0;
  attend_few_tokens<Room>(shared[warp], h, b, lane - b.lane,
                          static_cast<std::int32_t>(item % h.heads), first, b.tokens - first);
}

/// Launches attend_few_keys for these.
template <typename Room, typename T, typename A>
void launch_few_keys(const Extent& batch, const Heads<Room, T, A>& h, const Stream& s) {
  const std::int64_t warps = std::int64_t{batch.lanes} * h.heads;
  launch(attend_few_keys<Room, T, A>, dim3(ceil_div(warps, kFewWarps<Room::D>)),
         dim3(32 * kFewWarps<Room::D>), 0, s, h);
}

}  // namespace toto::cuda::attend
