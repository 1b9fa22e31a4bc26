// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/product_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include "backend/cpu/product_kernels.h"
#include "backend/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

using cpu::ProductKernels;
using cpu::TileOutput;

// Accumulators plus one row of the panel plus the broadcast input fill the register file: 32
// registers hold 9 x 3 + 3 + 1, 16 hold 4 x 3 + 3 + 1.
constexpr int kTileRows = HWY_TARGET == HWY_AVX3 ? 9 : HWY_TARGET == HWY_NEON ? 8 : 4;
constexpr std::size_t kColumns = cpu::kTileVectors * kLanes;

HWY_INLINE Vec load_weights(const float* b) { return hn::Load(Floats(), b); }

HWY_INLINE Vec load_weights(const std::uint16_t* b) {
  const hn::Rebind<hwy::bfloat16_t, Floats> narrow;
  return hn::PromoteTo(Floats(), hn::LoadU(narrow, reinterpret_cast<const hwy::bfloat16_t*>(b)));
}

HWY_INLINE Vec load_weights(const std::int8_t* b) {
  const hn::Rebind<std::int8_t, Floats> narrow;
  const hn::RebindToSigned<Floats> whole;
  return hn::ConvertTo(Floats(), hn::PromoteTo(whole, hn::LoadU(narrow, b)));
}

/// Adds the products of R rows and V vectors of columns to their sums.
template <typename Weight, int R, int V>
HWY_INLINE void multiply(const void* a, std::size_t a_stride, const void* weights,
                         std::size_t steps, const cpu::Ahead& fetch, Vec (&sum)[R][V]) {
  constexpr bool kScaled = sizeof(Weight) == 1;
  const Floats d;
  const auto* b = static_cast<const Weight*>(weights);
  const auto* rows = static_cast<const float*>(a);
  const std::size_t stride = a_stride / sizeof(float);
  const std::byte* ahead = fetch.from;
  for (std::size_t k = 0; k < steps; ++k) {
    Vec w[V];
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) {
      w[c] = load_weights(b + static_cast<std::size_t>(c) * kLanes);
      if (!kScaled || c == 0) __builtin_prefetch(ahead + c * 64, 0, 2);
    }
    b += V * kLanes;
    ahead += fetch.pace;
#pragma GCC unroll 9
    for (int r = 0; r < R; ++r) {
      const Vec x = hn::Set(d, rows[static_cast<std::size_t>(r) * stride + k]);
#pragma GCC unroll 3
      for (int c = 0; c < V; ++c) sum[r][c] = hn::MulAdd(x, w[c], sum[r][c]);
    }
  }
  if constexpr (kScaled) {
    const auto* scales = reinterpret_cast<const float*>(static_cast<const std::byte*>(weights) +
                                                        cpu::scales_at(steps, V * kLanes));
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) {
      const Vec scale = hn::Load(d, scales + static_cast<std::size_t>(c) * kLanes);
#pragma GCC unroll 9
      for (int r = 0; r < R; ++r) sum[r][c] = hn::Mul(sum[r][c], scale);
    }
  }
}

template <int R, int V>
HWY_INLINE void clear(Vec (&sum)[R][V]) {
#pragma GCC unroll 9
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) sum[r][c] = hn::Zero(Floats());
  }
}

/// Of V vectors of columns; with `More` it goes on from the sums that `out` holds.
template <typename Weight, int R, int V, bool More>
void tile(const void* a, std::size_t a_stride, const void* weights, std::size_t steps,
          const cpu::Ahead& fetch, float* out) {
  const Floats d;
  const auto at = [&](int r, int c) {
    return out + static_cast<std::size_t>(r) * kColumns + static_cast<std::size_t>(c) * kLanes;
  };
  Vec sum[R][V];
  if constexpr (More) {
#pragma GCC unroll 9
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
      for (int c = 0; c < V; ++c) sum[r][c] = hn::Load(d, at(r, c));
    }
  } else {
    clear(sum);
  }
  multiply<Weight, R, V>(a, a_stride, weights, steps, fetch, sum);
#pragma GCC unroll 9
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) hn::Store(sum[r][c], d, at(r, c));
  }
}

/// The arithmetic of store() and add() below.
template <typename Weight, int R, int V, bool Add>
void placed_tile(const void* a, std::size_t a_stride, const void* weights, std::size_t steps,
                 const cpu::Ahead& fetch, const cpu::TilePlace& place) {
  const Floats d;
  Vec sum[R][V];
  clear(sum);
  multiply<Weight, R, V>(a, a_stride, weights, steps, fetch, sum);
#pragma GCC unroll 9
  for (int r = 0; r < R; ++r) {
    float* const y = place.y + static_cast<std::size_t>(r) * place.stride;
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) {
      const std::size_t at = static_cast<std::size_t>(c) * kLanes;
      Vec v = hn::Add(sum[r][c], hn::Load(d, place.bias + at));
      if constexpr (Add) v = hn::Add(hn::LoadU(d, y + at), v);
      hn::StoreU(v, d, y + at);
    }
  }
}

/// Calls body(row, column, load, store) for the vectors of a tile.
template <typename Body>
HWY_INLINE void for_each_result(const TileOutput& out, const Body& body) {
  for (int r = 0; r < out.rows; ++r) {
    float* y = out.y + static_cast<std::size_t>(r) * out.stride;
    for_each_vector(static_cast<std::size_t>(out.columns),
                    [&](std::size_t c, const auto& load, const auto& store) {
                      body(static_cast<std::size_t>(r) * kColumns + c, c, y, load, store);
                    });
  }
}

void store(const float* from, const TileOutput& out) {
  const Floats d;
  for_each_result(out, [&](std::size_t at, std::size_t c, float* y, const auto&, const auto& put) {
    put(hn::Add(hn::Load(d, from + at), hn::Load(d, out.bias + c)), y);
  });
}

void add(const float* from, const TileOutput& out) {
  const Floats d;
  for_each_result(out,
                  [&](std::size_t at, std::size_t c, float* y, const auto& get, const auto& put) {
                    const Vec sum = hn::Add(hn::Load(d, from + at), hn::Load(d, out.bias + c));
                    put(hn::Add(get(y), sum), y);
                  });
}

void gated(const float* from, const TileOutput& out) {
  const Floats d;
  for_each_result(out, [&](std::size_t at, std::size_t c, float* y, const auto&, const auto& put) {
    const Vec gate = hn::Add(hn::Load(d, out.gate + at), hn::Load(d, out.gate_bias + c));
    const Vec value = hn::Add(hn::Load(d, from + at), hn::Load(d, out.bias + c));
    put(hn::Mul(silu(gate), value), y);
  });
}

void store_silu(const float* from, const TileOutput& out) {
  const Floats d;
  for_each_result(out, [&](std::size_t at, std::size_t c, float* y, const auto&, const auto& put) {
    put(silu(hn::Add(hn::Load(d, from + at), hn::Load(d, out.bias + c))), y);
  });
}

/// To bfloat16, nearest even, and back.
void round_row(const float* x, std::size_t n, void* to) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  auto* y = static_cast<float*>(to);
  for_each_vector(n, [&](std::size_t, const auto& load, const auto& put) {
    const Vec v = load(x);
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto up = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
    const Vec rounded = hn::BitCast(d, hn::And(up, hn::Set(du, 0xFFFF0000)));
    put(hn::IfThenElse(hn::IsNaN(v), v, rounded), y);
  });
}

template <typename Weight, int V, int R = kTileRows>
constexpr void put_tiles(cpu::TileFormat& f) {
  f.tile[V - 1][R] = tile<Weight, R, V, false>;
  if constexpr (sizeof(Weight) > 1) f.more[V - 1][R] = tile<Weight, R, V, true>;  // scaled once
  f.store[V - 1][R] = placed_tile<Weight, R, V, false>;
  f.add[V - 1][R] = placed_tile<Weight, R, V, true>;
  if constexpr (R > 1) put_tiles<Weight, V, R - 1>(f);
}

template <typename Weight>
constexpr cpu::TileFormat format(std::size_t input_bytes,
                                 void (*prepare)(const float*, std::size_t, void*)) {
  cpu::TileFormat f{};
  f.rows = kTileRows;
  put_tiles<Weight, 1>(f);
  put_tiles<Weight, 2>(f);
  put_tiles<Weight, 3>(f);
  f.weight_bytes = sizeof(Weight);
  f.input_bytes = input_bytes;
  f.step = 1;
  f.steps_at_once = 1;
  f.block_rows = 64;
  f.prepare = prepare;
  f.scaled = sizeof(Weight) == 1;
  return f;
}

}  // namespace

extern const ProductKernels kProductKernels;
const ProductKernels kProductKernels = {static_cast<int>(kColumns),
                                        format<float>(0, nullptr),
                                        format<std::uint16_t>(sizeof(float), round_row),
                                        format<std::int8_t>(0, nullptr),
                                        store,
                                        add,
                                        gated,
                                        store_silu};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

const ProductKernels& product_kernels(Isa isa) {
#if defined(__x86_64__)
  static const auto with_bf16 = [](const TileFormat& format) {
    ProductKernels k = N_AVX3::kProductKernels;
    k.bf16 = format;
    return k;
  };
  static const ProductKernels pairs = with_bf16(kBf16PairFormat);
  static const ProductKernels amx = with_bf16(kAmxFormat);
  if (isa == Isa::avx512_bf16) return pairs;
  if (isa == Isa::amx_bf16) return amx;
#endif
  return TOTO_SELECT(isa, kProductKernels);
}

}  // namespace toto::cpu
#endif
