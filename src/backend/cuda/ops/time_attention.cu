// SPDX-License-Identifier: Apache-2.0
// Attention over time on the device. A query meets the shared prefix first, then the suffix of its
// own trajectory, each from its beginning in tiles whose places are fixed; tiles are merged by
// log-sum-exp in that order. Series that see few keys have a simpler way (few_keys.cuh). Which way
// a query goes follows from the counts of its own series, and nothing in its arithmetic depends on
// the other queries of the block of threads.
#include <algorithm>
#include <type_traits>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/gemm/tile_f32.cuh"
#include "backend/cuda/gemm/tile_tf32.cuh"
#include "backend/cuda/ops/attention.h"
#include "backend/cuda/ops/few_keys.cuh"
#include "backend/cuda/ops/heads.cuh"
#include "backend/cuda/ops/queries.cuh"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/runtime/typed.h"

namespace toto::cuda {
namespace {

using namespace attend;
static_assert(kFewKeys == kMaxFew && kQueryGroup == 4 * kWarpQueries);

constexpr int kThreads = 128;
constexpr int kResident = 3;  // blocks of threads of a multiprocessor

/// What all kernels here are given.
template <typename Room, typename T>
struct Heads {
  const LiveBatch* live;
  const float* qkv;
  const float* keys;
  const float* values;
  T* out;
  std::int32_t heads, d, pitch;
  bool last_only;

  [[nodiscard]] __device__ const float* query(std::int64_t row, std::int32_t head) const {
    return qkv + (row * 3 * heads + head) * width();
  }
  /// Of the keys and values that a lane of a block has to itself.
  [[nodiscard]] __device__ std::int64_t suffix(const Block& b, std::int32_t lane,
                                               std::int32_t head) const {
    return b.suffix_at + (std::int64_t{lane} * heads + head) * b.suffix_capacity * width();
  }
  /// Channels of a head.
  [[nodiscard]] __device__ std::int32_t width() const { return Room::width(d); }
};

/// By one warp: some tokens of a lane that sees few keys.
template <typename Room, typename T>
__device__ void attend_few_tokens(FewShared<Room::D>& shared, const Heads<Room, T>& h,
                                  const Block& b, std::int32_t lane, std::int32_t head,
                                  std::int32_t first_token, std::int32_t tokens) {
  const std::int32_t d = h.width();
  const std::int64_t at = h.suffix(b, lane, head);
  const std::int64_t row = b.row + std::int64_t{lane} * b.tokens + first_token;
  const std::int32_t before = b.suffix + first_token + 1;  // keys that the first token sees
  const std::int32_t seen = before + tokens - 1;
  __syncwarp();
  load_few<Room>(&shared.keys[0][0], Room::D + 4, seen, d,
                 [&](int j) { return h.keys + at + j * d; });
  load_few<Room>(&shared.queries[0][0], Room::D, tokens, d,
                 [&](int q) { return h.query(row + q, head); });
  __syncwarp();
  const std::int64_t to = h.last_only ? b.lane + lane : row;
  attend_few<Room>(
      shared, tokens, seen, d, [&](int q, int key) { return key < before + q; },
      [&](int key) { return h.values + at + key * d; },
      [&](int q, int e, const float4& v) {
        Room::store(h.out + (to + q) * h.pitch + head * d, e, d, v);
      });
  if (head != 0) return;
  for (std::int32_t q = 0; q < tokens; ++q) clear_padding(h.out, to + q, h.heads * d, h.pitch);
}

/// A warp for each lane and head; only series that see few keys.
template <typename Room, typename T>
__global__ void __launch_bounds__(32 * kFewWarps<Room::D>) attend_few_keys(Heads<Room, T> h) {
  __shared__ __align__(16) FewShared<Room::D> shared[kFewWarps<Room::D>];
  begin_kernel();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t item = std::int64_t{blockIdx.x} * kFewWarps<Room::D> + warp;
  const auto lane = static_cast<std::int32_t>(item / h.heads);
  if (lane >= h.live->lanes) return;
  const Block& b = h.live->blocks[block_of_lane(*h.live, lane)];
  if (!sees_few_keys(b)) return;
  const std::int32_t first = h.last_only ? b.tokens - 1 : 0;
  attend_few_tokens<Room>(shared[warp], h, b, lane - b.lane,
                          static_cast<std::int32_t>(item % h.heads), first, b.tokens - first);
}

/// The same for the queries of a group.
template <typename Room, typename T>
__device__ __noinline__ void attend_few_group(FewShared<Room::D> (&shared)[kFewWarps<Room::D>],
                                              const Heads<Room, T>& h, const Group& g,
                                              std::int32_t head) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (warp >= kFewWarps<Room::D>) return;
  const std::int32_t end = g.first + g.count;
  for (std::int32_t n = g.first / g.tokens + warp; n * g.tokens < end; n += kFewWarps<Room::D>) {
    const std::int32_t from = max(g.first, n * g.tokens);
    const std::int32_t to = min(end, (n + 1) * g.tokens);
    attend_few_tokens<Room>(shared[warp], h, g.b, n * g.b.variates + g.variate, head,
                            g.token(from - g.first), to - from);
  }
}

template <typename Room, typename T>
using TileFor = std::conditional_t<std::is_same_v<T, float>, TileF32<Room>, TileTf32<Room>>;

template <typename Room, typename T>
union TimeShared {
  typename TileFor<Room, T>::Shared tile;
  FewShared<Room::D> few[kFewWarps<Room::D>];
};

/// A group of one head, by a block of threads.
template <typename Room, typename T>
__device__ void attend_group(typename TileFor<Room, T>::Shared& shared, const Heads<Room, T>& h,
                             const Group& g, std::int32_t head) {
  using Tile = TileFor<Room, T>;
  using Softmax = typename Tile::Softmax;
  constexpr int kRows = Softmax::kRows;
  const Block& b = g.b;
  const std::int32_t d = h.width();
  const float scale = 1.0F / sqrtf(static_cast<float>(d));
  const int first = static_cast<int>(threadIdx.x) / 32 * kWarpQueries;  // query of this warp
  const bool alone = b.tokens == 1;  // every query has keys of its own
  Tile tile(shared, g.count, d, [&](int q) { return h.query(g.row(q), head); });
  Softmax rows;

  // The prefix (lane -1), then the suffixes of all lanes that are here.
  const std::int64_t of_head = std::int64_t{g.variate} * h.heads + head;
  const std::int32_t last = alone ? -1 : g.lane(g.count - 1);
  for (std::int32_t lane = -1; lane <= last; lane = lane < 0 ? g.lane(0) : lane + b.variates) {
    const std::int64_t at =
        lane < 0 ? b.prefix_at + of_head * b.prefix * d : h.suffix(b, lane, head);
    const std::int32_t most = lane < 0 ? b.prefix : b.suffix + b.tokens;
    for (std::int32_t begin = 0; begin < most; begin += Tile::kKeys) {
      const std::int64_t from = at + std::int64_t{begin} * d;
      tile.load(h.keys + from, h.values + from, min(Tile::kKeys, most - begin), d);
      __syncthreads();
      int count[kRows];
      bool works = false;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int q = first + Softmax::query(i);
        const std::int32_t visible = lane < 0 ? most : g.lane(q) == lane ? g.seen(q) : 0;
        count[i] = q < g.count ? min(Tile::kKeys, visible - begin) : 0;
        works = works || count[i] > 0;
      }
      tile.take(rows, count, __any_sync(~0U, works) != 0, scale);
      __syncthreads();
    }
  }
  if (alone) {
    if (b.prefix == 0) __syncthreads();  // the tile may have its queries in shared memory
    std::int32_t seen[kRows];
    std::int64_t at[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int q = first + Softmax::query(i);
      seen[i] = q < g.count ? g.seen(q) : 0;
      at[i] = q < g.count ? h.suffix(b, g.lane(q), head) : 0;
    }
    attend_own(rows, tile, seen, at, h.keys, h.values, d, scale);
  }

#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int q = first + Softmax::query(i);
    if (q >= g.count) continue;
    const float share = 1.0F / rows.total[i];
    const float(&v)[4 * Softmax::kFours] = rows.out[i];
    T* const to = h.out + g.out_row(q) * h.pitch + head * d;
#pragma unroll
    for (int j = 0; j < 4 * Softmax::kFours; j += 4) {
      Room::store(to, Softmax::channel(j / 4), d,
                  {v[j] * share, v[j + 1] * share, v[j + 2] * share, v[j + 3] * share});
    }
  }
  if (head != 0) return;
  for (int q = first; q < min(g.count, first + kWarpQueries); ++q) {
    clear_padding(h.out, g.out_row(q), h.heads * d, h.pitch);
  }
}

/// A block of threads for each group and head, one after another where there are many. `few`: those
/// that see few keys as well.
template <typename Room, typename T>
__global__ void __launch_bounds__(kThreads, Room::D <= 64 ? kResident : 2)
    attend_time(Heads<Room, T> h, bool few) {
  extern __shared__ float4 dynamic[];
  auto& shared = *reinterpret_cast<TimeShared<Room, T>*>(dynamic);
  begin_kernel();
  if (!few) {
    bool any = false;
#pragma unroll 4
    for (auto i = static_cast<std::int32_t>(threadIdx.x); i < h.live->count; i += kThreads) {
      any |= !sees_few_keys(h.live->blocks[i]);
    }
    if (__syncthreads_or(static_cast<int>(any)) == 0) return;
  }
  const std::int32_t* const groups = h.last_only ? h.live->last_groups : h.live->groups;
  const std::int32_t items = groups[h.live->count] * h.heads;
  for (auto item = static_cast<std::int32_t>(blockIdx.x); item < items;
       item += static_cast<std::int32_t>(gridDim.x)) {
    const std::int32_t head = item % h.heads;
    const Group g = group_of(*h.live, groups, item / h.heads, h.last_only);
    if (!sees_few_keys(g.b)) {
      attend_group<Room, T>(shared.tile, h, g, head);
    } else if (few) {
      attend_few_group<Room>(shared.few, h, g, head);
    }
    __syncthreads();
  }
}

template <typename Room, typename T>
void run_time(const Extent& batch, const Heads<Room, T>& h, const Stream& s) {
  const std::int32_t groups = h.last_only ? batch.last_groups : batch.groups;
  // Worth a launch of its own where that is most of the work.
  const bool few = batch.rows > batch.lanes && batch.rows <= kFewKeys * batch.lanes &&
                   batch.lanes >= s.processors;
  if (few) {
    launch(attend_few_keys<Room, T>,
           dim3(ceil_div(std::int64_t{batch.lanes} * h.heads, kFewWarps<Room::D>)),
           dim3(32 * kFewWarps<Room::D>), 0, s, h);
  }
  constexpr std::size_t kBytes = sizeof(TimeShared<Room, T>);
  allow_shared_memory<attend_time<Room, T>>(kBytes);
  const std::int64_t items = std::int64_t{groups} * h.heads;
  launch(attend_time<Room, T>,
         dim3(static_cast<unsigned>(std::min<std::int64_t>(items, kResident * s.processors))),
         dim3(kThreads), kBytes, s, h, !few);
}

}  // namespace

void time_attention(const Extent& batch, const float* qkv, const KvLayer& kv, const View& out,
                    std::int32_t heads, std::int32_t d, bool last_only, const Stream& s) {
  with_room(d, [&](auto room) {
    using Room = decltype(room);
    with_type(out, [&](auto* to) {
      using T = std::remove_pointer_t<decltype(to)>;
      run_time<Room, T>(batch,
                        {batch.live, qkv, typed<float>(kv.keys), typed<float>(kv.values), to, heads,
                         d, static_cast<std::int32_t>(out.stride()), last_only},
                        s);
    });
  });
}

}  // namespace toto::cuda
