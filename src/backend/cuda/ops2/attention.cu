// SPDX-License-Identifier: Apache-2.0
// Attention of Toto 2.0 over time and over variates (spec B7.2, B7.3): a warp has one query head of
// one token, and takes 32 keys at a time. A lane forms the logit of one key, then sums some
// channels of all 32 values. Heads of any width up to kMaxHead2, shared keys, masks.
//
// Over time there are two ways with the same bits. Where the keys and values of a lane fit into
// shared memory, a thread block prepares them there for all its queries. Otherwise one kernel
// prepares queries in place, and keys and values in the cache, and another attends.
#include <algorithm>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/heads.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/runtime/typed.h"
#include "backend/cuda/runtime/warp.cuh"
#include "toto/error.hpp"

namespace toto::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kMostWarps = 24;             // of few thread blocks
constexpr int kChannels = kMaxHead2 / 32;  // of values, of a lane

/// softmax(q.k) v over n keys; keys(j), values(j) are rows, seen(j) masks. At least one is seen.
/// `query`: in shared memory, for all lanes. `fours`: every key begins at sixteen bytes and has
/// whole fours. kOwn: channels of a lane, at least v / 32.
template <int kOwn, typename Keys, typename Values, typename Seen>
__device__ void attend(const float* query, std::int32_t n, const HeadShape& shape, const Keys& keys,
                       const Values& values, const Seen& seen, bool fours, float (&out)[kOwn]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float highest = -INFINITY;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) out[i] = 0;
  for (std::int32_t first = 0; first < n; first += 32) {
    const std::int32_t j = first + lane;
    float logit = -INFINITY;
    if (j < n && seen(j)) {
      const float* const key = keys(j);
      float sum = 0;
      if (fours) {
        for (std::int32_t e = 0; e < shape.qk; e += 4) {
          const float4 k = *reinterpret_cast<const float4*>(key + e);
          const float4 q = *reinterpret_cast<const float4*>(query + e);
          sum = __fmaf_rn(q.x, k.x, sum);
          sum = __fmaf_rn(q.y, k.y, sum);
          sum = __fmaf_rn(q.z, k.z, sum);
          sum = __fmaf_rn(q.w, k.w, sum);
        }
      } else {
        for (std::int32_t e = 0; e < shape.qk; ++e) sum = __fmaf_rn(query[e], key[e], sum);
      }
      logit = sum;
    }
    const float now = fmaxf(highest, highest_of_lanes(logit));
    if (now == -INFINITY) continue;  // none of these is seen
    const float correction = expf(highest - now);
    const float weight = expf(logit - now);
    highest = now;
    total = total * correction + sum_of_lanes(weight);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) out[i] *= correction;
    const std::int32_t count = min(32, n - first);
    for (std::int32_t k = 0; k < count; ++k) {
      const float w = __shfl_sync(~0U, weight, k);
      if (w == 0) continue;
      const float* const value = values(first + k);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const std::int32_t e = i * 32 + lane;
        if (e < shape.v) out[i] = __fmaf_rn(w, value[e], out[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kOwn; ++i) out[i] /= total;
}

/// Copies a query to shared memory, for the warp.
__device__ const float* share_query(const float* query, std::int32_t qk) {
  extern __shared__ float4 shared[];
  const std::int32_t pitch = (qk + 3) / 4 * 4;
  float* const own =
      reinterpret_cast<float*>(shared) + static_cast<std::int32_t>(threadIdx.x) / 32 * pitch;
  for (std::int32_t e = threadIdx.x % 32; e < qk; e += 32) own[e] = query[e];
  __syncwarp();
  return own;
}

template <int kOwn, typename T>
__device__ void write(const float (&out)[kOwn], T* to, const HeadShape& shape, std::int64_t row,
                      std::int32_t head, std::int32_t pitch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const std::int32_t e = i * 32 + lane;
    if (e < shape.v) put(to, row * pitch + std::int64_t{head} * shape.v + e, out[i]);
  }
  const std::int32_t end = shape.attended() + lane;  // of the padding
  if (head == 0 && end < pitch) put(to, row * pitch + end, 0.0F);
}

/// Which token and head a warp has.
struct Work {
  std::int32_t row, head;
  __device__ explicit Work(const HeadShape& shape) {
    const std::int64_t at =
        std::int64_t{blockIdx.x} * kWarps + static_cast<std::int32_t>(threadIdx.x) / 32;
    row = static_cast<std::int32_t>(at / shape.heads);
    head = static_cast<std::int32_t>(at % shape.heads);
  }
};

/// The first key of a lane in the cache of a head group.
__device__ std::int64_t slot_of(const CallSlice& s, const HeadShape& shape, std::int32_t variate,
                                std::int32_t group) {
  return (s.slot + std::int64_t{variate} * s.slots) * shape.groups + std::int64_t{group} * s.slots;
}

/// A thread block for each row, a warp for each head: norms queries and keys in place.
__global__ void norm_heads(const LiveCall* call, bool known, HeadShape shape, HeadGains gains,
                           float* qkv) {
  begin_lookups(known);
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  if (row >= call->rows) return end_lookups(known);
  end_lookups(known);
  for (std::int32_t h = static_cast<std::int32_t>(threadIdx.x) / 32; h < shape.heads + shape.groups;
       h += static_cast<std::int32_t>(blockDim.x) / 32) {
    norm_head(qkv + std::int64_t{row} * shape.row() + std::int64_t{h} * shape.qk,
              h < shape.heads ? gains.query : gains.key, shape.qk, gains.epsilon);
  }
}

/// The same, and rotates queries in place, and keys on their way to the cache, with their values.
__global__ void prepare_heads(const LiveCall* call, bool known, HeadShape shape, HeadGains gains,
                              RotaryTables rotary, float* qkv, float* keys, float* values) {
  begin_lookups(known);
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  if (row >= call->rows) return end_lookups(known);
  const Token t = token_of(*call, row);
  const TokenRotation rotation(rotary, t.s, t.patch(), shape.qk);
  float* const from = qkv + std::int64_t{row} * shape.row();
  const std::int32_t heads = shape.heads + shape.groups;
  end_lookups(known);
  for (std::int32_t h = static_cast<std::int32_t>(threadIdx.x) / 32; h < heads;
       h += static_cast<std::int32_t>(blockDim.x) / 32) {
    float* const head = from + std::int64_t{h} * shape.qk;
    const bool key = h >= shape.heads;
    if (gains.query != nullptr) {
      norm_head(head, key ? gains.key : gains.query, shape.qk, gains.epsilon);
    }
    if (!key) {
      rotation.rotate(head, head, shape.qk, false);
      continue;
    }
    const std::int32_t group = h - shape.heads;
    const std::int64_t at = slot_of(t.s, shape, t.variate, group) + t.patch() - t.s.first_slot;
    rotation.rotate(head, keys + at * shape.qk, shape.qk, true);
    const float* const value =
        from + std::int64_t{heads} * shape.qk + std::int64_t{group} * shape.v;
    for (std::int32_t i = threadIdx.x % 32; i < shape.v; i += 32) {
      values[at * shape.v + i] = value[i];
    }
  }
}

/// Whether a token of the lane sees the one before it.
struct Seen {
  const std::uint8_t* hidden;  // of the first key; patches of the forecast are not
  std::uint8_t own;
  bool masked;
  __device__ Seen(const CallSlice& s, const DeviceArrays& a, std::int32_t variate, std::int32_t key)
      : hidden(a.hidden + first_patch_of(s, variate) + s.first_slot),
        own(hidden[key]),
        masked(s.time_mask) {}
  __device__ bool operator()(std::int32_t j) const { return !masked || hidden[j] == own; }
};

/// Over the cache: queries have been prepared in place.
template <int kOwn, typename T>
__global__ void attend_time(const LiveCall* all, const LiveCall* wanted, bool known, DeviceArrays a,
                            HeadShape shape, const float* qkv, const float* keys,
                            const float* values, T* out, std::int32_t pitch) {
  begin_lookups(known);
  const Work work(shape);
  if (work.row >= wanted->rows) return end_lookups(known);
  const Token t = token_of(*wanted, work.row);
  const CallSlice& s = t.s;
  const CallSlice& source = all->slices[t.slice];
  const std::int64_t from =
      source.row + std::int64_t{t.variate} * source.tokens + t.patch() - source.patch;
  end_lookups(known);
  const float* const query =
      share_query(qkv + from * shape.row() + std::int64_t{work.head} * shape.qk, shape.qk);
  const std::int64_t at = slot_of(s, shape, t.variate, work.head / (shape.heads / shape.groups));
  const float* const first_key = keys + at * shape.qk;
  const float* const first_value = values + at * shape.v;
  const std::int32_t own = t.patch() - s.first_slot;
  float sums[kOwn];
  attend<kOwn>(
      query, own + 1, shape, [&](std::int32_t j) { return first_key + std::int64_t{j} * shape.qk; },
      [&](std::int32_t j) { return first_value + std::int64_t{j} * shape.v; },
      Seen(s, a, t.variate, own), shape.qk % 4 == 0, sums);
  write(sums, out, shape, work.row, work.head, pitch);
}

/// Floats of a key in shared memory: lanes that read different keys find them in different banks.
__host__ __device__ constexpr std::int32_t key_pitch(std::int32_t qk) {
  return (qk + 3) / 4 * 4 + 4;
}
constexpr std::int64_t lane_floats(const HeadShape& shape, std::int32_t keys, std::int32_t warps) {
  return std::int64_t{keys} * (key_pitch(shape.qk) + shape.v) +
         std::int64_t{warps} * key_pitch(shape.qk);
}

/// A thread block for a lane and a group of heads: prepares the keys and values of the lane in
/// shared memory, those of calls before from the cache, then a query at a time for each warp. Few
/// thread blocks have many warps (kMostWarps at most), so that each has little to do.
template <int kOwn, typename T>
__global__ void __launch_bounds__(32 * kMostWarps)
    attend_lane(const LiveCall* all, const LiveCall* wanted, bool known, DeviceArrays a,
                HeadShape shape, HeadGains gains, RotaryTables rotary, const float* qkv,
                float* keys, float* values, bool keep, T* out, std::int32_t pitch) {
  extern __shared__ float4 shared[];
  begin_lookups(known);
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= wanted->lanes) return end_lookups(known);
  const LaneOfCall lane = lane_of_call(*wanted, index);
  const CallSlice& s = lane.s;
  const CallSlice& source = all->slices[lane.slice];
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int own = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t stride = key_pitch(shape.qk);
  const std::int32_t n = s.patch + s.tokens - s.first_slot;
  float* const query = reinterpret_cast<float*>(shared) + warp * stride;
  float* const own_keys = reinterpret_cast<float*>(shared) + warps * stride;  // [n][stride]
  float* const own_values = own_keys + n * stride;                            // [n][v]
  const std::int64_t at = slot_of(s, shape, lane.variate, group);
  const std::int64_t first_row = source.row + std::int64_t{lane.variate} * source.tokens;
  end_lookups(known);

  for (std::int32_t j = warp; j < n; j += warps) {
    const std::int32_t patch = s.first_slot + j;
    float* const key = own_keys + j * stride;
    float* const value = own_values + j * shape.v;
    float* const kept_key = keys + (at + j) * shape.qk;
    float* const kept_value = values + (at + j) * shape.v;
    if (patch < source.patch) {
      for (std::int32_t e = own; e < shape.qk; e += 32) key[e] = kept_key[e];
      for (std::int32_t e = own; e < shape.v; e += 32) value[e] = kept_value[e];
      continue;
    }
    const float* const row = qkv + (first_row + patch - source.patch) * shape.row();
    const float* const key_from = row + std::int64_t{shape.heads + group} * shape.qk;
    const float* const value_from =
        row + std::int64_t{shape.heads + shape.groups} * shape.qk + std::int64_t{group} * shape.v;
    for (std::int32_t e = own; e < shape.qk; e += 32) key[e] = key_from[e];
    for (std::int32_t e = own; e < shape.v; e += 32) value[e] = value_from[e];
    __syncwarp();
    if (gains.query != nullptr) norm_head(key, gains.key, shape.qk, gains.epsilon);
    TokenRotation(rotary, source, patch, shape.qk).rotate(key, key, shape.qk, true);
    if (!keep) continue;
    for (std::int32_t e = own; e < shape.qk; e += 32) kept_key[e] = key[e];
    for (std::int32_t e = own; e < shape.v; e += 32) kept_value[e] = value[e];
  }
  __syncthreads();

  const std::int32_t heads = shape.heads / shape.groups;  // of the group
  for (std::int32_t i = warp; i < s.tokens * heads; i += warps) {
    const std::int32_t token = i / heads;
    const std::int32_t head = group * heads + i % heads;
    const std::int32_t patch = s.patch + token;
    const float* const from =
        qkv + (first_row + patch - source.patch) * shape.row() + std::int64_t{head} * shape.qk;
    for (std::int32_t e = own; e < shape.qk; e += 32) query[e] = from[e];
    __syncwarp();
    if (gains.query != nullptr) norm_head(query, gains.query, shape.qk, gains.epsilon);
    TokenRotation(rotary, source, patch, shape.qk).rotate(query, query, shape.qk, false);
    const std::int32_t key = patch - s.first_slot;
    float sums[kOwn];
    attend<kOwn>(
        query, key + 1, shape, [&](std::int32_t j) { return own_keys + j * stride; },
        [&](std::int32_t j) { return own_values + j * shape.v; }, Seen(s, a, lane.variate, key),
        shape.qk % 4 == 0, sums);
    write(sums, out, shape, s.row + std::int64_t{lane.variate} * s.tokens + token, head, pitch);
    __syncwarp();  // before the next query is written over this one
  }
}

template <int kOwn, typename T>
__global__ void attend_variates(const LiveCall* call, bool known, DeviceArrays a, HeadShape shape,
                                const float* qkv, T* out, std::int32_t pitch) {
  begin_lookups(known);
  const Work work(shape);
  if (work.row >= call->rows) return end_lookups(known);
  const Token t = token_of(*call, work.row);
  const CallSlice& s = t.s;
  end_lookups(known);
  const auto row_of = [&](std::int32_t variate) {
    return qkv + (s.row + std::int64_t{variate} * s.tokens + t.token) * shape.row();
  };
  const std::int32_t group = work.head / (shape.heads / shape.groups);
  const std::int32_t key = (shape.heads + group) * shape.qk;
  const std::int32_t value = (shape.heads + shape.groups) * shape.qk + group * shape.v;
  if (s.variates == 1) {  // the one key has all the weight
    float own[kOwn];
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const std::int32_t e = i * 32 + static_cast<std::int32_t>(threadIdx.x) % 32;
      own[i] = e < shape.v ? row_of(0)[value + e] : 0.0F;
    }
    write(own, out, shape, work.row, work.head, pitch);
    return;
  }
  const float* const query =
      share_query(row_of(t.variate) + std::int64_t{work.head} * shape.qk, shape.qk);
  const std::int64_t own = id_of(s, a, t.variate, t.token);
  float sums[kOwn];
  attend<kOwn>(
      query, s.variates, shape, [&](std::int32_t j) { return row_of(j) + key; },
      [&](std::int32_t j) { return row_of(j) + value; },
      [&](std::int32_t j) { return id_of(s, a, j, t.token) == own; },
      shape.qk % 4 == 0 && shape.row() % 4 == 0, sums);
  write(sums, out, shape, work.row, work.head, pitch);
}

/// Calls run(channels of a lane, pointer to outputs).
template <typename Run>
void with_shape(const HeadShape& shape, const View& out, const Run& run) {
  const auto with_channels = [&](auto own) { with_type(out, [&](auto* to) { run(own, to); }); };
  if (shape.v <= 64) {
    with_channels(std::integral_constant<int, 2>{});
  } else if (shape.v <= kMaxHead2 && shape.qk <= kMaxHead2) {
    with_channels(std::integral_constant<int, kChannels>{});
  } else {
    throw Error(ExitStatus::usage, "unsupported_model",
                "the cuda backend has no heads of more than 512 channels", {}, "use --device cpu");
  }
}

unsigned blocks(const Call& call, const HeadShape& shape) {
  return ceil_div(std::int64_t{call.rows} * shape.heads, kWarps);
}
std::size_t query_bytes(const HeadShape& shape) {
  return static_cast<std::size_t>((shape.qk + 3) / 4 * 4) * kWarps * sizeof(float);
}
unsigned head_threads(const HeadShape& shape) {
  return 32U * static_cast<unsigned>(std::min(shape.heads + shape.groups, 16));
}

}  // namespace

void time_attention2(const Call& all, const Call& wanted, const SeriesArrays& a,
                     const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary, float* qkv,
                     const KvCache& kv, bool keep, const View& out, const Stream& s) {
  const auto pitch = static_cast<std::int32_t>(out.stride());
  float* const keys = typed<float>(kv.keys);
  float* const values = typed<float>(kv.values);
  const HeadGains gains(norm);
  const bool few = std::int64_t{wanted.lanes} * shape.groups <= s.processors;
  const int warps = few ? std::clamp(wanted.keys, kWarps, kMostWarps) : kWarps;
  const auto bytes =
      static_cast<std::size_t>(lane_floats(shape, wanted.keys, warps)) * sizeof(float);
  with_shape(shape, out, [&](auto own, auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    if (bytes <= static_cast<std::size_t>(s.shared_bytes)) {
      allow_shared_memory<attend_lane<own(), T>>(bytes);
      const dim3 grid(static_cast<unsigned>(wanted.lanes), static_cast<unsigned>(shape.groups));
      launch(attend_lane<own(), T>, grid, dim3(32U * static_cast<unsigned>(warps)), bytes, s,
             all.live, wanted.live, s.calls_known(), DeviceArrays(a), shape, gains,
             tables_of(rotary), qkv, keys, values, keep, to, pitch);
      return;
    }
    launch(prepare_heads, dim3(static_cast<unsigned>(all.rows)), dim3(head_threads(shape)), 0, s,
           all.live, s.calls_known(), shape, gains, tables_of(rotary), qkv, keys, values);
    launch(attend_time<own(), T>, dim3(blocks(wanted, shape)), dim3(32 * kWarps),
           query_bytes(shape), s, all.live, wanted.live, s.calls_known(), DeviceArrays(a), shape,
           qkv, keys, values, to, pitch);
  });
}

void variate_attention2(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                        const HeadNorm& norm, float* qkv, const View& out, const Stream& s) {
  const auto pitch = static_cast<std::int32_t>(out.stride());
  if (norm.query) {
    launch(norm_heads, dim3(static_cast<unsigned>(call.rows)), dim3(head_threads(shape)), 0, s,
           call.live, s.calls_known(), shape, HeadGains(norm), qkv);
  }
  with_shape(shape, out, [&](auto own, auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    launch(attend_variates<own(), T>, dim3(blocks(call, shape)), dim3(32 * kWarps),
           query_bytes(shape), s, call.live, s.calls_known(), DeviceArrays(a), shape, qkv, to,
           pitch);
  });
}

}  // namespace toto::cuda
