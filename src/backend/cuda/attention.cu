// SPDX-License-Identifier: Apache-2.0
// Attention on the device. A query meets its keys in tiles of 32, one for each lane of a warp:
// first the prefix from its beginning, then the suffix from its own; tiles are merged by
// log-sum-exp in that order. Nothing in it depends on the other queries of the block of threads.
#include "backend/cuda/attend.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/live.h"
#include "backend/cuda/product.h"
#include "toto/error.hpp"

namespace toto::cuda {
namespace {

using namespace attend;

constexpr int kWarps = 4;
constexpr int kQueries = kQueryGroup / kWarps;  // of one warp

/// Which queries a block of threads has: some of one variate and head.
struct Group {
  Block b;
  std::int32_t variate, first, count, tokens;
  bool last_only;

  [[nodiscard]] __device__ std::int32_t lane(std::int32_t q) const {
    return (first + q) / tokens * b.variates + variate;
  }
  [[nodiscard]] __device__ std::int32_t token(std::int32_t q) const {
    return last_only ? b.tokens - 1 : (first + q) % tokens;
  }
  [[nodiscard]] __device__ std::int64_t row(std::int32_t q) const {
    return b.row + std::int64_t{lane(q)} * b.tokens + token(q);
  }
  /// Keys of the suffix that it sees.
  [[nodiscard]] __device__ std::int32_t seen(std::int32_t q) const {
    return b.suffix + token(q) + 1;
  }
};

__device__ Group group_of(const LiveBatch& live, const std::int32_t* groups, std::int32_t at,
                          bool last_only) {
  const std::int32_t index = find_block(live.count, at, [&](std::int32_t i) { return groups[i]; });
  Group g{live.blocks[index], 0, 0, 0, 0, last_only};
  g.tokens = last_only ? 1 : g.b.tokens;
  const std::int32_t of_variate = g.b.trajectories * g.tokens;
  const std::int32_t per_variate = (of_variate + kQueryGroup - 1) / kQueryGroup;
  g.variate = (at - groups[index]) / per_variate;
  g.first = (at - groups[index]) % per_variate * kQueryGroup;
  g.count = min(kQueryGroup, of_variate - g.first);
  return g;
}

template <int D>
struct Tiles {
  static constexpr int kKeyPitch = D + 4;
  float keys[kTile][kKeyPitch];
  float values[kTile][D];
  float queries[kQueryGroup][D];
};

/// `rows` rows of a tile [rows][pitch], from row_at(row), zero from `count` on.
template <int D, typename RowAt>
__device__ void fetch(float* tile, int pitch, int rows, int count, int d, const RowAt& row_at) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < rows * (D / 4); i += 32 * kWarps) {
    const int j = i / (D / 4);
    const int e = i % (D / 4) * 4;
    *reinterpret_cast<float4*>(tile + j * pitch + e) =
        j < count ? four(row_at(j), e, d, d % 4 == 0) : float4{0, 0, 0, 0};
  }
}

/// Keys that all queries of the block share, tile by tile through shared memory; query q sees the
/// first visible(q) of them.
template <int D, typename Visible>
__device__ void attend_shared(Running<D> (&running)[kQueries], Tiles<D>& tiles, const Group& g,
                              const float* keys, const float* values, std::int32_t most, int d,
                              const Visible& visible) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float root = sqrtf(static_cast<float>(d));
  for (std::int32_t tile = 0; tile < most; tile += kTile) {
    __syncthreads();
    const int loaded = min(kTile, most - tile);
    const std::int64_t at = std::int64_t{tile} * d;
    fetch<D>(&tiles.keys[0][0], Tiles<D>::kKeyPitch, kTile, loaded, d,
             [&](int j) { return keys + at + j * d; });
    fetch<D>(&tiles.values[0][0], D, kTile, loaded, d, [&](int j) { return values + at + j * d; });
    __syncthreads();
    Chains chains[kQueries];
#pragma unroll 4
    for (int e = 0; e < D; e += 4) {
      const float4 key = *reinterpret_cast<const float4*>(&tiles.keys[lane][e]);
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        chains[i].add(*reinterpret_cast<const float4*>(&tiles.queries[warp * kQueries + i][e]),
                      key);
      }
    }
    float weight[kQueries] = {};
    int count[kQueries] = {};
    int longest = 0;
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      const int q = warp * kQueries + i;
      count[i] = q < g.count ? min(kTile, visible(q) - tile) : 0;
      if (count[i] <= 0) continue;
      longest = max(longest, count[i]);
      weight[i] = weigh<D>(running[i], lane < count[i] ? chains[i].sum() / root : none());
    }
    take_values<D>(running, weight, count, longest, d,
                   [&](int, int j, int e) { return tiles.values[j][e]; });
  }
}

/// Keys of each query's own.
template <int D>
__device__ void attend_private(Running<D> (&running)[kQueries], const Tiles<D>& tiles,
                               const Group& g, const float* keys, const float* values,
                               std::int32_t heads, std::int32_t head, int d) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float root = sqrtf(static_cast<float>(d));
  std::int32_t seen[kQueries] = {};
  std::int64_t at[kQueries] = {};
  std::int32_t most = 0;
#pragma unroll
  for (int i = 0; i < kQueries; ++i) {
    const int q = warp * kQueries + i;
    if (q >= g.count) continue;
    seen[i] = g.seen(q);
    most = max(most, seen[i]);
    at[i] = g.b.suffix_at + (std::int64_t{g.lane(q)} * heads + head) * g.b.suffix_capacity * d;
  }
  for (std::int32_t tile = 0; tile < most; tile += kTile) {
    float score[kQueries];
    float weight[kQueries] = {};
    int count[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      count[i] = min(kTile, seen[i] - tile);
      score[i] = none();
      if (lane < count[i]) {
        score[i] = dot<D>(tiles.queries[warp * kQueries + i],
                          keys + at[i] + std::int64_t{tile + lane} * d, d, d % 4 == 0) /
                   root;
      }
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      if (count[i] > 0) weight[i] = weigh<D>(running[i], score[i]);
    }
    take_values<D>(running, weight, count, min(kTile, most - tile), d, [&](int i, int j, int e) {
      return values[at[i] + std::int64_t{tile + j} * d + e];
    });
  }
}

template <int D, typename T>
__global__ void __launch_bounds__(32 * kWarps, D <= 64 ? 6 : 4)
    attend_time(const LiveBatch* live, const float* qkv, const float* keys, const float* values,
                T* out, std::int32_t heads, std::int32_t d, std::int32_t pitch, bool last_only) {
  __shared__ __align__(16) Tiles<D> tiles;
  begin_kernel();
  const std::int32_t* const groups = last_only ? live->last_groups : live->groups;
  const auto at = static_cast<std::int32_t>(blockIdx.x);
  if (at >= groups[live->count]) return;
  const Group g = group_of(*live, groups, at, last_only);
  const Block& b = g.b;
  const auto head = static_cast<std::int32_t>(blockIdx.y);
  fetch<D>(&tiles.queries[0][0], D, kQueryGroup, g.count, d,
           [&](int q) { return qkv + (g.row(q) * 3 * heads + head) * d; });

  Running<D> running[kQueries];
  const std::int64_t of_head = std::int64_t{g.variate} * heads + head;
  const std::int64_t prefix = b.prefix_at + of_head * b.prefix * d;
  attend_shared<D>(running, tiles, g, keys + prefix, values + prefix, b.prefix, d,
                   [&](std::int32_t) { return b.prefix; });
  if (b.trajectories == 1) {
    const std::int64_t suffix = b.suffix_at + of_head * b.suffix_capacity * d;
    attend_shared<D>(running, tiles, g, keys + suffix, values + suffix, g.seen(g.count - 1), d,
                     [&](std::int32_t q) { return g.seen(q); });
  } else {
    __syncthreads();
    attend_private<D>(running, tiles, g, keys, values, heads, head, d);
  }

  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kQueries; ++i) {
    const int q = static_cast<int>(threadIdx.x) / 32 * kQueries + i;
    if (q >= g.count) continue;
    const std::int64_t row = last_only ? b.lane + g.lane(q) : g.row(q);
#pragma unroll
    for (int j = 0; j < D / 32; ++j) {
      const int e = lane + 32 * j;
      if (e < d) put(out, row * pitch + head * d + e, running[i].out[j] / running[i].total);
    }
    if (head == 0 && heads * d + lane < pitch) put(out, row * pitch + heads * d + lane, 0);
  }
}

/// A warp for each row and head: the variates of its trajectory and token with its id.
template <int D, typename T>
__global__ void __launch_bounds__(32 * kWarps)
    attend_variates(const LiveBatch* live, const float* qkv, T* out, std::int32_t heads,
                    std::int32_t d, std::int32_t pitch) {
  __shared__ __align__(16) float queries[kWarps][D];
  begin_kernel();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t item = std::int64_t{blockIdx.x} * kWarps + warp;
  const auto row = static_cast<std::int32_t>(item / heads);
  const auto head = static_cast<std::int32_t>(item % heads);
  if (row >= live->rows) return;
  const Block b = live->blocks[block_of_row(*live, row)];
  const std::int32_t own = row - b.row;
  const std::int32_t token = own % b.tokens;
  const std::int32_t own_lane = own / b.tokens;
  const std::int32_t variate = own_lane % b.variates;
  const std::int32_t first = own_lane - variate;  // lane of this trajectory's variate 0
  const std::int32_t* const ids = live->ids + b.ids;
  const std::int32_t id = ids[variate * b.tokens + token];
  const float root = sqrtf(static_cast<float>(d));
  const auto part = [&](std::int32_t v, std::int32_t which) {
    const std::int64_t at = b.row + std::int64_t{first + v} * b.tokens + token;
    return qkv + ((at * 3 + which) * heads + head) * d;
  };
  for (int e = lane; e < D; e += 32) queries[warp][e] = e < d ? part(variate, 0)[e] : 0;
  __syncwarp();
  Running<D> running[1];
  for (std::int32_t tile = 0; tile < b.variates; tile += kTile) {
    const int count[1] = {min(kTile, b.variates - tile)};
    float score = none();
    if (lane < count[0] && ids[(tile + lane) * b.tokens + token] == id) {
      score = dot<D>(queries[warp], part(tile + lane, 1), d, d % 4 == 0) / root;
    }
    // A tile of strangers only has nothing to say.
    if (__all_sync(~0U, score == none()) != 0) continue;
    const float weight[1] = {weigh<D>(running[0], score)};
    take_values<D>(running, weight, count, count[0], d, [&](int, int j, int e) {
      return ids[(tile + j) * b.tokens + token] == id ? part(tile + j, 2)[e] : 0.0F;
    });
  }
#pragma unroll
  for (int j = 0; j < D / 32; ++j) {
    const int e = lane + 32 * j;
    if (e < d) {
      put(out, std::int64_t{row} * pitch + head * d + e, running[0].out[j] / running[0].total);
    }
  }
  if (head == 0 && heads * d + lane < pitch) {
    put(out, std::int64_t{row} * pitch + heads * d + lane, 0);
  }
}

template <int D, typename T>
void run_time(const Extent& batch, const float* qkv, const KvLayer& kv, T* out, std::int32_t pitch,
              std::int32_t heads, std::int32_t d, bool last_only, const Stream& s) {
  const std::int32_t groups = last_only ? batch.last_groups : batch.groups;
  launch(attend_time<D, T>, dim3(static_cast<unsigned>(groups), static_cast<unsigned>(heads)),
         dim3(32 * kWarps), 0, s, batch.live, qkv, static_cast<const float*>(kv.keys),
         static_cast<const float*>(kv.values), out, heads, d, pitch, last_only);
}

/// Calls run(integral constant of the width at least d).
template <typename Run>
void with_width(std::int32_t d, const Run& run) {
  if (d <= 32) {
    run(std::integral_constant<int, 32>{});
  } else if (d <= 64) {
    run(std::integral_constant<int, 64>{});
  } else if (d <= 128) {
    run(std::integral_constant<int, 128>{});
  } else {
    throw Error(ExitStatus::usage, "unsupported_model",
                "the cuda backend has no heads of more than 128 channels", {}, "use --device cpu");
  }
}

}  // namespace

void time_attention(const Extent& batch, const float* qkv, const KvLayer& kv, void* out, bool bf16,
                    std::int32_t heads, std::int32_t d, bool last_only, const Stream& s) {
  with_width(d, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    if (bf16) {
      run_time<kWidth>(batch, qkv, kv, static_cast<__nv_bfloat16*>(out), padded_bf16(heads * d),
                       heads, d, last_only, s);
    } else {
      run_time<kWidth>(batch, qkv, kv, static_cast<float*>(out), heads * d, heads, d, last_only, s);
    }
  });
}

void variate_attention(const Extent& batch, const float* qkv, void* out, bool bf16,
                       std::int32_t heads, std::int32_t d, const Stream& s) {
  const dim3 grid(ceil_div(std::int64_t{batch.rows} * heads, kWarps));
  with_width(d, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    if (bf16) {
      launch(attend_variates<kWidth, __nv_bfloat16>, grid, dim3(32 * kWarps), 0, s, batch.live, qkv,
             static_cast<__nv_bfloat16*>(out), heads, d, padded_bf16(heads * d));
    } else {
      launch(attend_variates<kWidth, float>, grid, dim3(32 * kWarps), 0, s, batch.live, qkv,
             static_cast<float*>(out), heads, d, heads * d);
    }
  });
}

}  // namespace toto::cuda
