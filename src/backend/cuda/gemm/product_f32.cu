// SPDX-License-Identifier: Apache-2.0
// Products in float32 with many rows that are multiplied whole: tiles are copied to shared memory a
// step ahead, fused multiply-adds on the cores, true float32 throughout. Every
// output is summed as product.h says, so the tile's shape changes no bit.
#include <algorithm>

#include "backend/cuda/gemm/product.h"

namespace toto::cuda {
namespace {

constexpr int kDepth = 32;          // k of one step: 128 bytes of a row
constexpr int kFours = kDepth / 4;  // what is copied and read at once
static_assert(kSlice % kDepth == 0 && kPitchF32 % 4 == 0);

/// A tile of BR rows by BO outputs; each thread has TR rows, eight apart, by TO outputs, in twos
/// that are eight apart: a warp has 8 TR by 4 TO.
template <int BR, int BO, int TR, int TO>
struct Tile {
  static constexpr int kWarpsOut = BO / (4 * TO);
  static constexpr int kThreads = 32 * kWarpsOut * (BR / (8 * TR));
  static constexpr int kStages = BR * BO > 64 * 64 ? 2 : 3;
  static constexpr int kAtOnce = kThreads / 8;  // rows that are copied at once
  static_assert(BR % kAtOnce == 0 && BO % kAtOnce == 0 && TR * TO % 4 == 0);
  float4 x[kStages][BR][kFours];
  float w[kStages][kDepth][BO + 4];
  float4 sum[TR * TO / 4][kThreads];  // over the slices so far: each thread has its own
};

/// Fours of a row of x are exchanged, so that eight consecutive rows lie in different banks. (W is
/// turned: were both operands of a multiply-add to come from fours along k, their registers and the
/// sum's would be of one bank half of the time.)
__device__ int place(int row, int four) { return four ^ (row & 7); }

/// Four consecutive k of a row that need not begin at sixteen bytes, zero beyond its end.
__device__ void copy_singly(float4* to, const float* row, std::int32_t k, std::int32_t in) {
  auto* const one = reinterpret_cast<float*>(to);
  for (int i = 0; i < 4; ++i) copy_4(one + i, k + i < in ? row + i : row, k + i < in ? 4 : 0);
}

template <int BR, int BO, int TR, int TO, Epilogue E>
__global__ void __launch_bounds__(Tile<BR, BO, TR, TO>::kThreads,
                                  512 / Tile<BR, BO, TR, TO>::kThreads)
    tile_f32(const float* __restrict__ w, const float* __restrict__ bias, const float* scale,
             const float* __restrict__ x, float* y, Rows count, bool known, std::int32_t out,
             std::int32_t in, std::int32_t pitch) {
  using Memory = Tile<BR, BO, TR, TO>;
  constexpr int kStages = Memory::kStages;
  constexpr int kAtOnce = Memory::kAtOnce;
  extern __shared__ float4 shared[];
  Memory& tile = *reinterpret_cast<Memory*>(shared);

  const std::int32_t rows = begin_with_rows(count, known);
  const std::int32_t row0 = static_cast<std::int32_t>(blockIdx.y) * BR;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x) * BO;
  if (row0 >= rows) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  // Of the thread's first: row, and output. Neighbouring lanes share the one or the other, so that
  // shared memory is read in fewer passes.
  const int tr = warp / Memory::kWarpsOut * (8 * TR) + lane / 2 % 2 + lane / 8 * 2;
  const int to = warp % Memory::kWarpsOut * (4 * TO) + (lane % 2 + lane / 4 % 2 * 2) * 2;
  const bool wide = in % 4 == 0;

  // What this thread copies next: of every kAtOnce-th row a four of x, and every eighth of W.
  const int copied = thread / 8;
  const int part = thread % 8;
  std::int32_t k0 = 0;
  const float* x_next = x + std::int64_t{row0 + copied} * in + part * 4;
  const float* w_next = w + std::int64_t{out0 + copied} * pitch + part;
  const auto fetch = [&](int stage) {
#pragma unroll
    for (int i = 0; i < BR / kAtOnce; ++i) {
      const int r = copied + i * kAtOnce;
      float4* const at = &tile.x[stage][r][place(r, part)];
      const float* const from = x_next + std::int64_t{i * kAtOnce} * in;
      const std::int32_t k = k0 + part * 4;
      const bool inside = row0 + r < rows;
      if (wide) {
        copy_16(at, from, inside && k < in ? 16 : 0);
      } else {
        copy_singly(at, inside ? from : x, k, inside ? in : 0);
      }
    }
#pragma unroll
    for (int i = 0; i < BO / kAtOnce; ++i) {
      const int o = copied + i * kAtOnce;
#pragma unroll
      for (int k = 0; k < kDepth; k += 8) {
        copy_4(&tile.w[stage][k + part][o], w_next + std::int64_t{i * kAtOnce} * pitch + k,
               out0 + o < out && k0 + k < pitch ? 4 : 0);
      }
    }
    k0 += kDepth;
    x_next += kDepth;
    w_next += kDepth;
  };

  float slice[TR][TO] = {};
#pragma unroll
  for (int i = 0; i < TR * TO / 4; ++i) tile.sum[i][thread] = {0, 0, 0, 0};
  const std::int32_t steps = (in + kDepth - 1) / kDepth;
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) fetch(s);
    commit_copies();
  }
  for (std::int32_t step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    __syncthreads();
    if (step + kStages - 1 < steps) fetch((step + kStages - 1) % kStages);
    commit_copies();
    const int stage = step % kStages;
#pragma unroll
    for (int f = 0; f < kFours; ++f) {
      float4 xr[TR];
#pragma unroll
      for (int r = 0; r < TR; ++r) xr[r] = tile.x[stage][tr + 8 * r][place(tr, f)];
      const auto multiply_add = [&](int k, float float4::*of) {
        float2 wr[TO / 2];
#pragma unroll
        for (int q = 0; q < TO / 2; ++q) {
          wr[q] = *reinterpret_cast<const float2*>(&tile.w[stage][4 * f + k][to + 8 * q]);
        }
#pragma unroll
        for (int r = 0; r < TR; ++r) {
#pragma unroll
          for (int q = 0; q < TO / 2; ++q) {
            slice[r][2 * q] = __fmaf_rn(wr[q].x, xr[r].*of, slice[r][2 * q]);
            slice[r][2 * q + 1] = __fmaf_rn(wr[q].y, xr[r].*of, slice[r][2 * q + 1]);
          }
        }
      };
      multiply_add(0, &float4::x);
      multiply_add(1, &float4::y);
      multiply_add(2, &float4::z);
      multiply_add(3, &float4::w);
    }
    if ((step + 1) % (kSlice / kDepth) == 0 || step + 1 == steps) {
      float* const s = &slice[0][0];
#pragma unroll
      for (int i = 0; i < TR * TO / 4; ++i) {
        float4& sum = tile.sum[i][thread];
        const float4 v = sum;
        sum = {v.x + s[4 * i], v.y + s[4 * i + 1], v.z + s[4 * i + 2], v.w + s[4 * i + 3]};
      }
#pragma unroll
      for (int i = 0; i < TR * TO; ++i) s[i] = 0;
    }
  }

  float total[TR][TO];
#pragma unroll
  for (int i = 0; i < TR * TO / 4; ++i) {
    const float4 v = tile.sum[i][thread];
    float* const t = &total[0][0] + 4 * i;
    t[0] = v.x;
    t[1] = v.y;
    t[2] = v.z;
    t[3] = v.w;
  }
#pragma unroll
  for (int q = 0; q < TO / 2; ++q) {
    const std::int32_t o = out0 + to + q * 8;
    const float low = bias != nullptr && o < out ? bias[o] : 0;
    const float high = bias != nullptr && o + 1 < out ? bias[o + 1] : 0;
#pragma unroll
    for (int r = 0; r < TR; ++r) {
      const std::int32_t row = row0 + tr + 8 * r;
      if (row >= rows || o >= out) continue;
      const float by = scale != nullptr ? scale[row] : 1.0F;
      const float v = __fmaf_rn(total[r][2 * q], by, low);
      const float u = __fmaf_rn(total[r][2 * q + 1], by, high);
      if constexpr (E == Epilogue::gated) {
        if (o + 1 < out) y[std::int64_t{row} * (out / 2) + o / 2] = silu(v) * u;
      } else {
        float* const at = y + std::int64_t{row} * out + o;
        if (out % 2 == 0) {
          auto* const both = reinterpret_cast<float2*>(at);
          float2 before{0, 0};
          if constexpr (E == Epilogue::residual) before = *both;
          *both = E == Epilogue::residual ? float2{before.x + v, before.y + u} : float2{v, u};
        } else {
          at[0] = E == Epilogue::residual ? at[0] + v : v;
          if (o + 1 < out) at[1] = E == Epilogue::residual ? at[1] + u : u;
        }
      }
    }
  }
}

template <int BR, int BO, int TR, int TO, Epilogue E>
void run(const ProductArgs& a, const Stream& s) {
  using Memory = Tile<BR, BO, TR, TO>;
  allow_shared_memory<tile_f32<BR, BO, TR, TO, E>>(sizeof(Memory));
  const dim3 grid(ceil_div(a.out, BO), ceil_div(a.rows.count, BR));
  launch(tile_f32<BR, BO, TR, TO, E>, grid, dim3(Memory::kThreads), sizeof(Memory), s,
         static_cast<const float*>(a.w), a.bias, a.scale, static_cast<const float*>(a.x),
         static_cast<float*>(a.y), a.rows, s.calls_known(), a.out, a.in, a.pitch);
}

template <Epilogue E>
void choose(const ProductArgs& a, const Stream& s) {
  const auto tiles = [&](std::int64_t rows, std::int64_t outs) {
    return std::int64_t{ceil_div(a.out, outs)} * ceil_div(a.rows.count, rows);
  };
  // Small tiles until large ones would keep every processor busy; and where those have no place.
  const bool fits = sizeof(Tile<128, 96, 8, 6>) <= static_cast<std::size_t>(s.shared_bytes);
  if (fits && tiles(128, 96) >= s.processors) {
    run<128, 96, 8, 6, E>(a, s);
  } else if (tiles(64, 48) >= s.processors) {
    run<64, 48, 4, 6, E>(a, s);
  } else {
    run<32, 48, 4, 6, E>(a, s);
  }
}

}  // namespace

void product_f32(const ProductArgs& a, const Stream& s) {
  if (few_rows_f32(a, s)) return;
  if (many_rows_f32(a, s)) return;
  with_epilogue(a.epilogue, [&](auto epilogue) { choose<epilogue()>(a, s); });
}

}  // namespace toto::cuda
