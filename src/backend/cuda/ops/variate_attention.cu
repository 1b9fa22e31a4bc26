// SPDX-License-Identifier: Apache-2.0
// Attention over the variates of one trajectory and token on the device.
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops/attention.h"
#include "backend/cuda/ops/few_keys.cuh"
#include "backend/cuda/ops/heads.cuh"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/runtime/typed.h"

namespace toto::cuda {
namespace {

using namespace attend;

/// The variates of one trajectory and token, and one head of them.
struct Column {
  const float* qkv;
  const std::int32_t* ids;  // of the token, every `stride`
  std::int64_t row;         // of variate 0
  std::int32_t stride, heads, head, d;

  [[nodiscard]] __device__ const float* part(std::int32_t variate, std::int32_t which) const {
    return qkv + (((row + std::int64_t{variate} * stride) * 3 + which) * heads + head) * d;
  }
  [[nodiscard]] __device__ std::int32_t id(std::int32_t variate) const {
    return ids[variate * stride];
  }
};

/// One query in tiles of 32 keys, merged by log-sum-exp in order.
template <int D, typename T>
__device__ void attend_many(const Column& c, std::int32_t variate, std::int32_t variates,
                            float* query, T* out, std::int32_t pitch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t d = c.d;
  const std::int32_t id = c.id(variate);
  const float root = sqrtf(static_cast<float>(d));
  for (int e = lane; e < D; e += 32) query[e] = e < d ? c.part(variate, 0)[e] : 0;
  __syncwarp();
  Running<D> running[1];
  for (std::int32_t tile = 0; tile < variates; tile += kTile) {
    const int count[1] = {min(kTile, variates - tile)};
    float score = none();
    if (lane < count[0] && c.id(tile + lane) == id) {
      score = dot<D>(query, c.part(tile + lane, 1), d, d % 4 == 0) / root;
    }
    // A tile of strangers only has nothing to say.
    if (__all_sync(~0U, score == none()) != 0) continue;
    const float weight[1] = {weigh<D>(running[0], score)};
    take_values<D>(running, weight, count, count[0], d, [&](int, int j, int e) {
      return c.id(tile + j) == id ? c.part(tile + j, 2)[e] : 0.0F;
    });
  }
  const std::int64_t row = c.row + std::int64_t{variate} * c.stride;
#pragma unroll
  for (int j = 0; j < D / 32; ++j) {
    const int e = lane + 32 * j;
    if (e < d) put(out, row * pitch + c.head * d + e, running[0].out[j] / running[0].total);
  }
}

/// A warp for each row and head. Where variates are few, the first of them takes all.
template <typename Room, typename T>
__global__ void __launch_bounds__(32 * kFewWarps<Room::D>)
    attend_variates(const LiveBatch* live, const float* qkv, T* out, std::int32_t heads,
                    std::int32_t channels, std::int32_t pitch) {
  const std::int32_t d = Room::width(channels);
  constexpr int D = Room::D;
  __shared__ __align__(16) FewShared<D> all[kFewWarps<D>];
  begin_kernel();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t item = std::int64_t{blockIdx.x} * kFewWarps<D> + warp;
  const auto row = static_cast<std::int32_t>(item / heads);
  const auto head = static_cast<std::int32_t>(item % heads);
  if (row >= live->rows) return;
  const Block& b = live->blocks[block_of_row(*live, row)];
  const std::int32_t own = row - b.row;
  const std::int32_t token = own % b.tokens;
  const std::int32_t own_lane = own / b.tokens;
  const std::int32_t variates = b.variates;
  const std::int32_t variate = own_lane % variates;
  const Column c{qkv,
                 live->ids + b.ids + token,
                 b.row + std::int64_t{own_lane - variate} * b.tokens + token,
                 b.tokens,
                 heads,
                 head,
                 d};
  if (head == 0) clear_padding(out, row, heads * d, pitch);
  FewShared<D>& shared = all[warp];
  if (variates > kMaxFew) {
    attend_many<D>(c, variate, variates, shared.queries[0], out, pitch);
    return;
  }
  if (variate != 0) return;
  load_few<Room>(&shared.keys[0][0], D + 4, variates, d, [&](int v) { return c.part(v, 1); });
  load_few<Room>(&shared.queries[0][0], D, variates, d, [&](int v) { return c.part(v, 0); });
  __syncwarp();
  attend_few<Room>(
      shared, variates, variates, d, [&](int q, int key) { return c.id(q) == c.id(key); },
      [&](int key) { return c.part(key, 2); },
      [&](int q, int e, const float4& v) {
        Room::store(out + (c.row + std::int64_t{q} * c.stride) * pitch + head * d, e, d, v);
      });
}

}  // namespace

void variate_attention(const Extent& batch, const float* qkv, const View& out, std::int32_t heads,
                       std::int32_t d, const Stream& s) {
  with_room(d, [&](auto room) {
    using Room = decltype(room);
    constexpr int kWarps = kFewWarps<Room::D>;
    const dim3 grid(ceil_div(std::int64_t{batch.rows} * heads, kWarps));
    with_type(out, [&](auto* to) {
      using T = std::remove_pointer_t<decltype(to)>;
      launch(attend_variates<Room, T>, grid, dim3(32 * kWarps), 0, s, batch.live, qkv, to, heads, d,
             static_cast<std::int32_t>(out.stride()));
    });
  });
}

}  // namespace toto::cuda
