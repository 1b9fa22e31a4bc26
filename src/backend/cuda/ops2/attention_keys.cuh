// SPDX-License-Identifier: Apache-2.0
// Keys and values of a lane, prepared in shared memory for attention over time on tensor cores
// (attention_tensor.cu).
#pragma once

#include "backend/cuda/ops2/attention_tile.cuh"

namespace toto::cuda::tiles {

/// The first key of a lane in the cache of a head group.
__device__ inline std::int64_t slot_of(const CallSlice& s, const HeadShape& shape,
                                       std::int32_t variate, std::int32_t group) {
  return (s.slot + std::int64_t{variate} * s.slots) * shape.groups + std::int64_t{group} * s.slots;
}

/// A lane of the wanted call. Slices are copies: what is read of them stays in registers.
struct LaneAt {
  const LaneOfCall lane;
  const CallSlice s;
  const CallSlice source;
  const std::int64_t first_row;
  const std::int32_t queries;

  __device__ LaneAt(const Attention& a, std::int32_t index)
      : lane(lane_of_call(*a.wanted, index)),
        s(lane.s),
        source(a.all->slices[lane.slice]),
        first_row(source.row + std::int64_t{lane.variate} * source.tokens),
        queries(s.tokens * a.heads_per_group) {}
  [[nodiscard]] __device__ Rotation rotation_of(const Attention& a, const Tile& tile, int r) const {
    return {a, source, source.first_slot + tile.key[r]};
  }
  [[nodiscard]] __device__ QueriesAt queries_at(const Attention& a, const Tile& tile) const {
    return {a, source, first_row, tile};
  }
};

/// Keys, then values of a lane and head group in shared memory, [n][kPitch] each. `warps` warps
/// prepare them; this one is number `warp`.
struct SharedKeys {
  const Attention& a;
  const LaneAt& at;
  std::int32_t group;
  float* keys;
  std::int32_t n;
  int warp, warps;

  /// Of key j, in the cache.
  [[nodiscard]] __device__ std::int64_t kept_at(std::int32_t j) const {
    return (slot_of(at.s, a.shape, at.lane.variate, group) + j) * kWidth;
  }
};

/// Half a warp has a key at a time, a lane four channels. Loops are not unrolled, for code comes
/// slowly where it is not near.
struct LaneKeys : SharedKeys {
  /// Of those that share a key.
  [[nodiscard]] __device__ int lane() const { return own() / 4; }

  /// What a lane asks for its keys with: where the first and its value are, in the cache or not,
  /// and where the next would come from if it is not.
  struct Places {
    const float* key;
    const float* value;
    const float* next;
  };
  [[nodiscard]] __device__ Places places() const {
    const std::int32_t behind = at.s.first_slot + first() - at.source.patch;
    const float* const here = a.qkv + (at.first_row + behind) * a.shape.row() +
                              std::int64_t{a.shape.heads + group} * kWidth + own();
    const float* const next = here + std::int64_t{2} * warps * a.shape.row();
    if (behind >= 0) return {here, here + a.shape.groups * kWidth, next};
    return {a.keys + kept_at(first()) + own(), a.values + kept_at(first()) + own(), next};
  }
  /// Asks for what prepare() takes.
  __device__ void bring(const Places& from) const {
    float* key = keys + first() * kPitch + own();
    if (first() < n) {
      copy_16(key, from.key, 16);
      copy_16(key + n * kPitch, from.value, 16);
    }
    const float* next = from.next;
#pragma unroll 1
    for (std::int32_t j = first() + 2 * warps; j < n; j += 2 * warps) {
      key += 2 * warps * kPitch;
      if (at.s.first_slot + j >= at.source.patch) {
        copy_16(key, next, 16);
        copy_16(key + n * kPitch, next + a.shape.groups * kWidth, 16);
      } else {  // of a call before
        copy_16(key, a.keys + kept_at(j) + own(), 16);
        copy_16(key + n * kPitch, a.values + kept_at(j) + own(), 16);
      }
      next += std::int64_t{2} * warps * a.shape.row();
    }
    commit_copies();
  }

  /// The rotation of the first key that is this lane's.
  [[nodiscard]] __device__ KeyRotation first_rotation() const { return rotation(first()); }

  /// In place; every lane works with what it has brought itself. Where `n` is odd, half a warp has
  /// no key at the end: what it makes of the last one is thrown away. The next key's rotation is on
  /// its way meanwhile.
  __device__ void prepare(const float4& gain, KeyRotation next) const {
#pragma unroll 1
    for (std::int32_t j0 = first() - half(); j0 < n; j0 += 2 * warps) {
      const std::int32_t j = min(j0 + half(), n - 1);
      const std::int32_t patch = at.s.first_slot + j;
      auto* const key = reinterpret_cast<float4*>(keys + j * kPitch + own());
      float4* const value = key + n * kPitch / 4;
      const KeyRotation now = next;
      if (j0 + 2 * warps < n) next = rotation(j0 + 2 * warps + half());
      wait_copies<0>();
      const float4 prepared = prepare_key(*key, a, gain, now, own() / 4);
      if (patch < at.source.patch || j0 + half() >= n) continue;
      const float4 kept = rounded(*value);
      *key = prepared;
      *value = kept;
      if (a.keep) {
        put_four(a.keys + kept_at(j) + own(), prepared);
        put_four(a.values + kept_at(j) + own(), kept);
      }
    }
  }

 private:
  [[nodiscard]] static __device__ int half() {
    return static_cast<int>(threadIdx.x) % 32 / kRowLanes;
  }
  [[nodiscard]] static __device__ int own() {
    return static_cast<int>(threadIdx.x) % kRowLanes * 4;
  }
  [[nodiscard]] __device__ std::int32_t first() const { return 2 * warp + half(); }
  [[nodiscard]] __device__ KeyRotation rotation(std::int32_t j) const {
    const std::int32_t patch = at.s.first_slot + min(j, n - 1);
    return {a, at.source, max(patch, at.source.patch), own() / 4};
  }
};

inline constexpr int kOwnKeys = 8;  // that a warp prepares at a time, four lanes each

/// Where there are many lanes: four lanes of a warp prepare a key, so it has eight at a time, and
/// less to do for each. A warp brings whole rows, so a lane prepares what others of its warp have
/// brought.
struct OwnKeys : SharedKeys {
  /// Asks for what prepare() takes.
  __device__ void bring() const {
    constexpr int kTogether = 32 / kRowLanes;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int channel = lane % kRowLanes * 4;
    const std::int32_t row = a.shape.row();
    const std::int32_t first = kOwnKeys * warp + lane / kRowLanes;
    const float* from = a.qkv + (at.first_row + at.s.first_slot + first - at.source.patch) * row +
                        std::int64_t{a.shape.heads + group} * kWidth + channel;
#pragma unroll 1
    for (std::int32_t j0 = first; j0 < n; j0 += kOwnKeys * warps) {
      float* const to = keys + j0 * kPitch + channel;
#pragma unroll
      for (int i = 0; i < kOwnKeys; i += kTogether) {
        if (j0 + i >= n) break;
        const float* key = from + i * row;
        const float* value = key + a.shape.groups * kWidth;
        if (at.s.first_slot + j0 + i < at.source.patch) {  // of a call before
          key = a.keys + kept_at(j0 + i) + channel;
          value = a.values + kept_at(j0 + i) + channel;
        }
        copy_16(to + i * kPitch, key, 16);
        copy_16(to + (n + i) * kPitch, value, 16);
      }
      from += std::int64_t{kOwnKeys} * warps * row;
    }
    commit_copies();
  }

  /// In place. Beyond the last key a lane works with that one, and what it makes is thrown away.
  /// The next key's rotation is on its way meanwhile.
  __device__ void prepare() const {
    const int own = static_cast<int>(threadIdx.x) % 32 / 4;  // of the warp's keys
    const auto rotation_of = [&](std::int32_t j) {
      const std::int32_t patch = at.s.first_slot + min(j, n - 1);
      return Rotation(a, at.source, max(patch, at.source.patch));
    };
    Rotation next = rotation_of(kOwnKeys * warp + own);
#pragma unroll 1
    for (std::int32_t j0 = kOwnKeys * warp; j0 < n; j0 += kOwnKeys * warps) {
      const std::int32_t j = min(j0 + own, n - 1);
      float* const key = keys + j * kPitch;
      float* const value = key + n * kPitch;
      wait_copies<0>();
      __syncwarp();
      float k[kOwn], v[kOwn];
      load_own(k, key);
      prepare_own_key(
          k, a, [&] { return Gain(a, a.gains.key); }, next);
      if (j0 + kOwnKeys * warps < n) next = rotation_of(j0 + kOwnKeys * warps + own);
      load_own(v, value);
      if (at.s.first_slot + j < at.source.patch || j0 + own >= n) continue;
      put_own(key, k);
      put_own(value, v);
      if (!a.keep) continue;
      put_own(a.keys + kept_at(j), k);
      put_own(a.values + kept_at(j), v);
    }
  }
};

}  // namespace toto::cuda::tiles
