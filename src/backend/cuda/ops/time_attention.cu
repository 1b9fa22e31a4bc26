// SPDX-License-Identifier: Apache-2.0
// Attention over time on the device. A query meets the shared prefix first, then the suffix of its
// own trajectory, each from its beginning in tiles whose places are fixed; tiles are merged by
// log-sum-exp in that order. Series that see few keys have a simpler way (few_keys.cuh). Which way
// a query goes follows from the counts of its own series, and nothing in its arithmetic depends on
// the other queries of the block of threads.
#include <algorithm>
#include <type_traits>

#include "backend/cuda/gemm/tile_f32.cuh"
#include "backend/cuda/gemm/tile_tf32.cuh"
#include "backend/cuda/ops/attention.h"
#include "backend/cuda/ops/lane_attention.cuh"

namespace toto::cuda {
namespace {

using namespace attend;
static_assert(kQueryGroup == 4 * kWarpQueries);

constexpr int kThreads = 128;
constexpr int kResident = 3;  // blocks of threads of a multiprocessor

/// The same for the queries of a group.
template <typename Room, typename T>
__device__ __noinline__ void attend_few_group(FewShared<Room::D> (&shared)[kFewWarps<Room::D>],
                                              const Heads<Room, T, Appended>& h, const Group& g,
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
__device__ void attend_group(typename TileFor<Room, T>::Shared& shared,
                             const Heads<Room, T, Appended>& h, const Group& g, std::int32_t head) {
  using Tile = TileFor<Room, T>;
  using Softmax = typename Tile::Softmax;
  constexpr int kRows = Softmax::kRows;
  const Block& b = g.b;
  const std::int32_t d = h.width();
  const float scale = 1.0F / sqrtf(static_cast<float>(d));
  const int first = static_cast<int>(threadIdx.x) / 32 * kWarpQueries;  // query of this warp
  const bool alone = b.tokens == 1;  // every query has keys of its own
  Tile tile(shared, g.count,
            [&](int q, int e) { return h.query(b, g.token(q), g.row(q), head, e); });
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
    attend_time(Heads<Room, T, Appended> h, bool few) {
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
void run_time(const Extent& batch, const Heads<Room, T, Appended>& h, const Stream& s) {
  // Worth a launch of its own where that is most of the work.
  const bool few = batch.rows > batch.lanes && batch.rows <= kFewKeys * batch.lanes &&
                   batch.lanes >= s.processors;
  if (few) launch_few_keys(batch, h, s);
  constexpr std::size_t kBytes = sizeof(TimeShared<Room, T>);
  allow_shared_memory<attend_time<Room, T>>(kBytes);
  const std::int64_t items = std::int64_t{h.last_only ? batch.last_groups : batch.groups} * h.heads;
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
      const Heads<Room, T, Appended> h{batch.live,
                                       qkv,
                                       typed<float>(kv.keys),
                                       typed<float>(kv.values),
                                       to,
                                       heads,
                                       d,
                                       static_cast<std::int32_t>(out.stride()),
                                       last_only,
                                       Appended{}};
      run_time(batch, h, s);
    });
  });
}

}  // namespace toto::cuda
