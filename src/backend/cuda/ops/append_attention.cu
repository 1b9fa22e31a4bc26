// SPDX-License-Identifier: Apache-2.0
// Attention over time that also does what rotary_append() does, where every lane sees few keys, all
// of this call: a warp takes queries, keys and values from where their product has left them. That
// saves a launch and a round through memory, and where no call follows the keys and values need not
// go to the cache at all. The bits are those of both operations.
#include <type_traits>

#include "backend/cuda/ops/attention.h"
#include "backend/cuda/ops/few_keys.cuh"
#include "backend/cuda/ops/queries.cuh"
#include "backend/cuda/ops/rotary.cuh"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/runtime/typed.h"

namespace toto::cuda {
namespace {

using namespace attend;

constexpr int kWidth = 64;       // channels of a head, as the published model has them
static_assert(kWidth % 8 == 0);  // rows of the output have no padding
using Head = Room<kWidth, true>;
static_assert(kFewKeys == kMaxFew);

constexpr int kFours = kWidth / 4;    // lanes that have a token between them
constexpr int kTokens = 32 / kFours;  // of a warp at once
constexpr int kPairs = kWidth / 2;    // columns of the rotary tables

struct Few {
  const LiveBatch* live;
  const float* qkv;
  RotaryTables rotary;
  float* keys;  // nullptr: they are not kept, nor are values
  float* values;
  std::int32_t heads, pitch;
  bool last_only;
};

/// What a lane rotates its four channels with, token by token.
struct Turning {
  const float* cosine;
  const float* sine;
  const float* factor;

  __device__ Turning(const RotaryTables& r, const Block& b, std::int32_t token, std::int32_t e)
      : cosine(r.cosine + std::int64_t{b.position + token} * kPairs + e / 2),
        sine(r.sine + (cosine - r.cosine)),
        factor(r.factor + std::int64_t{b.position + token - b.centre + r.positions} * kPairs +
               e % kPairs) {}
  [[nodiscard]] __device__ Rotation now() const {
    Rotation r;
    r.cosine = *reinterpret_cast<const float2*>(cosine);
    r.sine = *reinterpret_cast<const float2*>(sine);
    r.factor = *reinterpret_cast<const float4*>(factor);
    return r;
  }
  __device__ void advance() {
    cosine += kTokens * kPairs;
    sine += kTokens * kPairs;
    factor += kTokens * kPairs;
  }
};

/// A warp for each lane and head.
template <typename T>
__global__ void __launch_bounds__(32 * kFewWarps<kWidth>) append_few_keys(Few f, T* out) {
  __shared__ __align__(16) FewShared<kWidth> all_shared[kFewWarps<kWidth>];
  begin_kernel();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int thread = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t item = std::int64_t{blockIdx.x} * kFewWarps<kWidth> + warp;
  const auto lane = static_cast<std::int32_t>(item / f.heads);
  const auto head = static_cast<std::int32_t>(item % f.heads);
  if (lane >= f.live->lanes) return;
  const Block b = f.live->blocks[block_of_lane(*f.live, lane)];
  const std::int64_t first_row = b.row + std::int64_t{lane - b.lane} * b.tokens;
  const std::int32_t first = f.last_only ? b.tokens - 1 : 0;  // that asks
  const std::int32_t queries = b.tokens - first;
  FewShared<kWidth>& shared = all_shared[warp];

  const std::int32_t part = f.heads * kWidth;  // floats of a row's queries, keys or values
  const int e = thread % kFours * 4;
  const int own = thread / kFours;
  const float* const queries_at = f.qkv + first_row * 3 * part + head * kWidth;
  const float* from = queries_at + std::int64_t{own} * 3 * part + e;
  const std::int64_t kept =
      b.suffix_at + (std::int64_t{lane - b.lane} * f.heads + head) * b.suffix_capacity * kWidth;
  Turning turning(f.rotary, b, own, e);
#pragma unroll 4
  for (std::int32_t j = own; j < b.tokens; j += kTokens) {
    const Rotation rotation = turning.now();
    const float4 key = rotation.of_key()(*reinterpret_cast<const float4*>(from + part));
    *reinterpret_cast<float4*>(&shared.keys[j][e]) = key;
    if (j >= first) {
      *reinterpret_cast<float4*>(&shared.queries[j - first][e]) =
          rotation(*reinterpret_cast<const float4*>(from));
    }
    if (f.keys != nullptr) {
      put_four(f.keys + kept + j * kWidth + e, key);
      put_four(f.values + kept + j * kWidth + e, *reinterpret_cast<const float4*>(from + 2 * part));
    }
    from += kTokens * 3 * part;
    turning.advance();
  }
  __syncwarp();
  const std::int64_t to = f.last_only ? lane : first_row;  // row of the output
  const float* const values = queries_at + 2 * part;
  T* const own_out = out + to * f.pitch + head * kWidth;
  attend_few<Head>(
      shared, queries, b.tokens, kWidth, [&](int q, int key) { return key <= first + q; },
      [&](int key) { return values + key * 3 * part; },
      [&](int q, int at, const float4& v) { put_four(own_out + q * f.pitch + at, v); });
}

}  // namespace

bool appends_at_once(const Extent& batch, std::int32_t d) {
  return d == kWidth && batch.keys > 0 && batch.keys <= kFewKeys;
}

void append_and_attend(const Extent& batch, const RotaryTables& rotary, const float* qkv,
                       const KvLayer& kv, const View& out, std::int32_t heads, bool last_only,
                       bool kept, const Stream& s) {
  const Few few{batch.live,
                qkv,
                rotary,
                kept ? typed<float>(kv.keys) : nullptr,
                kept ? typed<float>(kv.values) : nullptr,
                heads,
                static_cast<std::int32_t>(out.stride()),
                last_only};
  const std::int64_t warps = std::int64_t{batch.lanes} * heads;
  with_type(out, [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    launch(append_few_keys<T>, dim3(ceil_div(warps, kFewWarps<kWidth>)),
           dim3(32 * kFewWarps<kWidth>), 0, s, few, to);
  });
}

}  // namespace toto::cuda
