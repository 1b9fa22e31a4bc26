// SPDX-License-Identifier: Apache-2.0
// Attention on the device. A query meets its keys in tiles of 32, one for each lane of a warp:
// first the prefix from its beginning, then the suffix from its own; tiles are merged by
// log-sum-exp in that order. Nothing in it depends on the other queries of the block of threads.
#include <cuda_bf16.h>

#include <limits>

#include "backend/cuda/kernels.h"
#include "backend/cuda/live.h"
#include "backend/cuda/product.h"
#include "toto/error.hpp"

namespace toto::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kQueries = kQueryGroup / kWarps;  // of one warp
constexpr int kTile = 32;

__device__ float highest_of_warp(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(~0U, v, offset));
  return v;
}
__device__ float sum_of_warp(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(~0U, v, offset);
  return v;
}
__device__ void put(float* y, std::int64_t at, float v) { y[at] = v; }
__device__ void put(__nv_bfloat16* y, std::int64_t at, float v) { y[at] = __float2bfloat16_rn(v); }

/// One query's softmax so far. Each lane has the outputs lane, lane + 32, ...
template <int D>
struct Running {
  float highest = -std::numeric_limits<float>::infinity();
  float total = 0;
  float out[D / 32] = {};
};

/// q . k in four chains, by channel mod 4. `q` and `k` are readable to the next multiple of four.
__device__ float dot(const float* q, const float* k, int d) {
  float s[4] = {};
  int e = 0;
  for (; e + 4 <= d; e += 4) {
    const float4 a = *reinterpret_cast<const float4*>(q + e);
    const float4 b = *reinterpret_cast<const float4*>(k + e);
    s[0] = __fmaf_rn(a.x, b.x, s[0]);
    s[1] = __fmaf_rn(a.y, b.y, s[1]);
    s[2] = __fmaf_rn(a.z, b.z, s[2]);
    s[3] = __fmaf_rn(a.w, b.w, s[3]);
  }
  return (s[0] + s[1]) + (s[2] + s[3]);
}

/// The same from memory that is not aligned to sixteen bytes, or for odd widths.
__device__ float dot_any(const float* q, const float* k, int d) {
  float s[4] = {};
  for (int e = 0; e < d; ++e) s[e % 4] = __fmaf_rn(q[e], k[e], s[e % 4]);
  return (s[0] + s[1]) + (s[2] + s[3]);
}

/// Takes in up to 32 keys: `score` is this lane's (-inf where it has none), value(j, e) reads.
template <int D, typename Value>
__device__ void take_tile(Running<D>& r, float score, int count, int d, const Value& value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float highest = fmaxf(r.highest, highest_of_warp(score));
  const float correction = expf(r.highest - highest);
  const float weight = lane < count ? expf(score - highest) : 0;
  r.highest = highest;
  r.total = r.total * correction + sum_of_warp(weight);
#pragma unroll
  for (int i = 0; i < D / 32; ++i) r.out[i] *= correction;
  for (int j = 0; j < count; ++j) {
    const float p = __shfl_sync(~0U, weight, j);
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      if (lane + 32 * i < d) r.out[i] = __fmaf_rn(p, value(j, lane + 32 * i), r.out[i]);
    }
  }
}

template <int D, typename T>
__global__ void __launch_bounds__(32 * kWarps)
    attend_time(const LiveBatch* live, const float* qkv, const float* keys, const float* values,
                T* out, std::int32_t heads, std::int32_t d, std::int32_t pitch, bool last_only) {
  constexpr int kKeyPitch = D + 4;
  __shared__ __align__(16) float key_tile[kTile][kKeyPitch];
  __shared__ __align__(16) float value_tile[kTile][D];
  __shared__ __align__(16) float queries[kQueryGroup][D];
  begin_kernel();
  const std::int32_t* const groups = last_only ? live->last_groups : live->groups;
  const std::int32_t count = live->count;
  const auto group = static_cast<std::int32_t>(blockIdx.x);
  if (group >= groups[count]) return;
  const std::int32_t index = find_block(count, group, [&](std::int32_t i) { return groups[i]; });
  const Block b = live->blocks[index];
  const auto head = static_cast<std::int32_t>(blockIdx.y);
  const std::int32_t tokens = last_only ? 1 : b.tokens;
  const std::int32_t of_variate = b.trajectories * tokens;
  const std::int32_t per_variate = (of_variate + kQueryGroup - 1) / kQueryGroup;
  const std::int32_t variate = (group - groups[index]) / per_variate;
  const std::int32_t first = (group - groups[index]) % per_variate * kQueryGroup;
  const std::int32_t here = min(kQueryGroup, of_variate - first);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const float root = sqrtf(static_cast<float>(d));

  const auto lane_of = [&](std::int32_t q) { return (first + q) / tokens * b.variates + variate; };
  const auto token_of = [&](std::int32_t q) {
    return last_only ? b.tokens - 1 : (first + q) % tokens;
  };
  for (int i = thread; i < kQueryGroup * D; i += 32 * kWarps) {
    const int q = i / D;
    const int e = i % D;
    float v = 0;
    if (q < here && e < d) {
      const std::int64_t row = b.row + std::int64_t{lane_of(q)} * b.tokens + token_of(q);
      v = qkv[(row * 3 * heads + head) * d + e];
    }
    queries[q][e] = v;
  }

  Running<D> running[kQueries];
  // Keys that all queries of this block share, tile by tile through shared memory; each query sees
  // the first visible(q) of them.
  const auto shared_keys = [&](std::int64_t at, std::int32_t most, const auto& visible) {
    for (std::int32_t tile = 0; tile < most; tile += kTile) {
      __syncthreads();
      for (int i = thread; i < kTile * D; i += 32 * kWarps) {
        const int j = i / D;
        const int e = i % D;
        const bool inside = tile + j < most && e < d;
        const std::int64_t from = at + std::int64_t{tile + j} * d + e;
        key_tile[j][e] = inside ? keys[from] : 0;
        value_tile[j][e] = inside ? values[from] : 0;
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        const int q = warp * kQueries + i;
        const std::int32_t count_here = q < here ? min(kTile, visible(q) - tile) : 0;
        if (count_here <= 0) continue;
        const float s = dot(queries[q], key_tile[lane], D) / root;
        take_tile<D>(running[i], lane < count_here ? s : -std::numeric_limits<float>::infinity(),
                     count_here, d, [&](int j, int e) { return value_tile[j][e]; });
      }
    }
  };

  const std::int64_t of_head = std::int64_t{variate} * heads + head;
  shared_keys(b.prefix_at + of_head * b.prefix * d, b.prefix,
              [&](std::int32_t) { return b.prefix; });
  if (b.trajectories == 1) {
    const std::int32_t seen = b.suffix + token_of(here - 1) + 1;
    shared_keys(b.suffix_at + of_head * b.suffix_capacity * d, seen,
                [&](std::int32_t q) { return b.suffix + token_of(q) + 1; });
  } else {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      const int q = warp * kQueries + i;
      if (q >= here) continue;
      const std::int32_t seen = b.suffix + token_of(q) + 1;
      const std::int64_t at =
          b.suffix_at + (std::int64_t{lane_of(q)} * heads + head) * b.suffix_capacity * d;
      for (std::int32_t tile = 0; tile < seen; tile += kTile) {
        const std::int32_t count_here = min(kTile, seen - tile);
        float s = -std::numeric_limits<float>::infinity();
        if (lane < count_here) {
          const float* const key = keys + at + std::int64_t{tile + lane} * d;
          s = (d % 4 == 0 ? dot(queries[q], key, d) : dot_any(queries[q], key, d)) / root;
        }
        const float* const value = values + at + std::int64_t{tile} * d;
        take_tile<D>(running[i], s, count_here, d, [&](int j, int e) { return value[j * d + e]; });
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kQueries; ++i) {
    const int q = warp * kQueries + i;
    if (q >= here) continue;
    const std::int64_t row =
        last_only ? b.lane + lane_of(q) : b.row + std::int64_t{lane_of(q)} * b.tokens + token_of(q);
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
  Running<D> running;
  for (std::int32_t tile = 0; tile < b.variates; tile += kTile) {
    const std::int32_t count = min(kTile, b.variates - tile);
    float s = -std::numeric_limits<float>::infinity();
    if (lane < count && ids[(tile + lane) * b.tokens + token] == id) {
      const float* const key = part(tile + lane, 1);
      s = (d % 4 == 0 ? dot(queries[warp], key, d) : dot_any(queries[warp], key, d)) / root;
    }
    // A tile of strangers only has nothing to say.
    if (highest_of_warp(s) == -std::numeric_limits<float>::infinity()) continue;
    take_tile<D>(running, s, count, d, [&](int j, int e) {
      return ids[(tile + j) * b.tokens + token] == id ? part(tile + j, 2)[e] : 0.0F;
    });
  }
#pragma unroll
  for (int j = 0; j < D / 32; ++j) {
    const int e = lane + 32 * j;
    if (e < d) put(out, std::int64_t{row} * pitch + head * d + e, running.out[j] / running.total);
  }
  if (head == 0 && heads * d + lane < pitch)
    put(out, std::int64_t{row} * pitch + heads * d + lane, 0);
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
