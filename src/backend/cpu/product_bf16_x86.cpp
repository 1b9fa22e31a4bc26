// SPDX-License-Identifier: Apache-2.0
// The tiles of AVX-512 BF16, which this version of Highway does not know: vdpbf16ps adds two
// bfloat16 products to a float32. Panels hold pairs of neighbouring k: [K/2][48][2].
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "backend/cpu/ceiling_kernels.h"
#include "backend/cpu/product_kernels.h"

// Only these functions may use the instructions: the rest of the program runs everywhere.
#define TOTO_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))

namespace toto::cpu {
namespace {

constexpr int kLanes = 16;

/// Adds the products of R rows and V vectors of columns to their sums.
template <int R, int V>
TOTO_AVX512_BF16 inline __attribute__((always_inline)) void multiply(
    const void* a, std::size_t a_stride, const void* weights, std::size_t steps, const Ahead& fetch,
    __m512 (&sum)[R][V]) {
  const auto* panel = static_cast<const std::byte*>(weights);
  const auto* rows = static_cast<const std::byte*>(a);
  const std::byte* ahead = fetch.from;
  for (std::size_t k = 0; k < steps; ++k) {
    __m512bh b[V];
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) {
      b[c] = (__m512bh)_mm512_load_si512(panel + c * 64);
      __builtin_prefetch(ahead + c * 64, 0, 2);
    }
    panel += V * 64;
    ahead += fetch.pace;
#pragma GCC unroll 9
    for (int r = 0; r < R; ++r) {
      int pair;
      std::memcpy(&pair, rows + static_cast<std::size_t>(r) * a_stride + 4 * k, sizeof pair);
      const auto x = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 3
      for (int c = 0; c < V; ++c) sum[r][c] = _mm512_dpbf16_ps(sum[r][c], x, b[c]);
    }
  }
}

template <int R, int V>
TOTO_AVX512_BF16 inline __attribute__((always_inline)) void clear(__m512 (&sum)[R][V]) {
#pragma GCC unroll 9
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) sum[r][c] = _mm512_setzero_ps();
  }
}

/// With `More` it goes on from the sums that `out` holds.
template <int R, int V, bool More>
TOTO_AVX512_BF16 void tile(const void* a, std::size_t a_stride, const void* weights,
                           std::size_t steps, const Ahead& fetch, float* out) {
  __m512 sum[R][V];
  if constexpr (More) {
#pragma GCC unroll 9
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
      for (int c = 0; c < V; ++c) {
        sum[r][c] = _mm512_load_ps(out + r * kMaxTileColumns + c * kLanes);
      }
    }
  } else {
    clear(sum);
  }
  multiply<R, V>(a, a_stride, weights, steps, fetch, sum);
#pragma GCC unroll 9
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) _mm512_store_ps(out + r * kMaxTileColumns + c * kLanes, sum[r][c]);
  }
}

template <int R, int V, bool Add>
TOTO_AVX512_BF16 void placed_tile(const void* a, std::size_t a_stride, const void* weights,
                                  std::size_t steps, const Ahead& fetch, const TilePlace& place) {
  __m512 sum[R][V];
  clear(sum);
  multiply<R, V>(a, a_stride, weights, steps, fetch, sum);
#pragma GCC unroll 9
  for (int r = 0; r < R; ++r) {
    float* const y = place.y + static_cast<std::size_t>(r) * place.stride;
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) {
      __m512 v = _mm512_add_ps(sum[r][c], _mm512_load_ps(place.bias + c * kLanes));
      if constexpr (Add) v = _mm512_add_ps(_mm512_loadu_ps(y + c * kLanes), v);
      _mm512_storeu_ps(y + c * kLanes, v);
    }
  }
}

constexpr int kChains = 12;

TOTO_AVX512_BF16 float multiply_add(std::size_t steps) {
  __m512 sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  const auto pair = (__m512bh)_mm512_set1_epi32(0);
  for (std::size_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], pair, pair);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  alignas(64) float lanes[kLanes];
  _mm512_store_ps(lanes, sum[0]);
  float total = 0;
  for (const float lane : lanes) total += lane;
  return total;
}

constexpr int kTileRows = 9;

template <int V, int R = kTileRows>
constexpr void put_tiles(TileFormat& f) {
  f.tile[V - 1][R] = tile<R, V, false>;
  f.more[V - 1][R] = tile<R, V, true>;
  f.store[V - 1][R] = placed_tile<R, V, false>;
  f.add[V - 1][R] = placed_tile<R, V, true>;
  if constexpr (R > 1) put_tiles<V, R - 1>(f);
}

constexpr TileFormat bf16_pair_format() {
  TileFormat f{};
  f.rows = kTileRows;
  put_tiles<1>(f);
  put_tiles<2>(f);
  put_tiles<3>(f);
  f.weight_bytes = sizeof(std::uint16_t);
  f.input_bytes = sizeof(std::uint16_t);
  f.step = 2;
  f.steps_at_once = 1;
  f.block_rows = 64;
  f.prepare = prepare_pairs;
  return f;
}

}  // namespace

const PeakLoop kBf16PairPeak = {multiply_add, 4.0 * kChains* kLanes};

TOTO_AVX512_BF16 void prepare_pairs(const float* x, std::size_t n, void* to) {
  auto* y = static_cast<std::uint16_t*>(to);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256bh v = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
    std::memcpy(y + i, &v, sizeof v);
  }
  if (i < n) {
    const auto rest = static_cast<__mmask16>((1U << (n - i)) - 1);
    const __m256bh v = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(rest, x + i));
    std::memcpy(y + i, &v, sizeof v);
    i += kLanes;
  }
  if (i % 32 != 0) std::memset(y + i, 0, kLanes * sizeof *y);
}

const TileFormat kBf16PairFormat = bf16_pair_format();

}  // namespace toto::cpu

#endif
