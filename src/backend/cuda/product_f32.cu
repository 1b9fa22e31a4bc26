// SPDX-License-Identifier: Apache-2.0
// Products in float32 with many rows: tiles in shared memory, fused multiply-adds on the cores,
// true float32 throughout. Every output is summed as product.h says, so the tile's shape changes no
// bit.
#include "backend/cuda/product.h"

namespace toto::cuda {
namespace {

constexpr int kDepth = 8;  // k of one step; kSlice is a multiple
static_assert(kSlice % kDepth == 0 && kPitchF32 % kDepth == 0);

/// Four consecutive k of one row, zero beyond its end.
__device__ float4 load_row(const float* row, std::int32_t k, std::int32_t in, bool wide) {
  if (wide) {
    return k < in ? __ldg(reinterpret_cast<const float4*>(row + k)) : float4{0, 0, 0, 0};
  }
  float4 v{0, 0, 0, 0};
  if (k < in) v.x = row[k];
  if (k + 1 < in) v.y = row[k + 1];
  if (k + 2 < in) v.z = row[k + 2];
  if (k + 3 < in) v.w = row[k + 3];
  return v;
}

__device__ void store_column(float* to, int pitch, const float4& v) {
  to[0] = v.x;
  to[pitch] = v.y;
  to[2 * pitch] = v.z;
  to[3 * pitch] = v.w;
}

/// A tile of BR rows by BO outputs; each thread has TR rows by TO outputs, in fours that are
/// spread.
template <int BR, int BO, int TR, int TO>
struct Tile {
  static constexpr int kThreads = BR / TR * BO / TO;
  static constexpr int kRowQuads = TR / 4;
  static constexpr int kOutQuads = TO / 4;
  static constexpr int kXPitch = BR + 4;
  static constexpr int kWPitch = BO + 4;
  static constexpr int kXLoads = BR * kDepth / 4 / kThreads;
  static constexpr int kWLoads = BO * kDepth / 4 / kThreads;
  static_assert(kXLoads >= 1 && kWLoads >= 1);
  float x[2][kDepth][kXPitch];
  float w[2][kDepth][kWPitch];
  float sum[TR * TO][kThreads];  // over the slices so far: each thread has its own
};

template <int BR, int BO, int TR, int TO, Epilogue E>
__global__ void __launch_bounds__(BR / TR * BO / TO, 65536 / 128 / (BR / TR * BO / TO))
    tile_f32(const float* __restrict__ w, const float* __restrict__ bias,
             const float* __restrict__ x, float* y, Rows count, std::int32_t out, std::int32_t in,
             std::int32_t pitch) {
  using Memory = Tile<BR, BO, TR, TO>;
  constexpr int kThreads = Memory::kThreads;
  constexpr int kRowQuads = Memory::kRowQuads;
  constexpr int kOutQuads = Memory::kOutQuads;
  extern __shared__ float4 shared[];
  Memory& tile = *reinterpret_cast<Memory*>(shared);

  begin_kernel();
  const std::int32_t rows = live_rows(count);
  const std::int32_t row0 = static_cast<std::int32_t>(blockIdx.y) * BR;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x) * BO;
  if (row0 >= rows) return;
  const int thread = static_cast<int>(threadIdx.x);
  // Threads of a warp: 4 along the outputs, 8 along the rows.
  constexpr int kWarpsOut = BO / TO / 4;
  const int to = thread / 32 % kWarpsOut * 4 + thread % 4;
  const int tr = thread / 32 / kWarpsOut * 8 + thread % 32 / 4;
  const bool wide = in % 4 == 0;

  float4 xv[Memory::kXLoads];
  float4 wv[Memory::kWLoads];
  const auto fetch = [&](std::int32_t k0) {
#pragma unroll
    for (int i = 0; i < Memory::kXLoads; ++i) {
      const int at = thread + i * kThreads;
      const std::int32_t row = row0 + at / (kDepth / 4);
      const std::int32_t k = k0 + at % (kDepth / 4) * 4;
      xv[i] = row < rows ? load_row(x + std::int64_t{row} * in, k, in, wide) : float4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < Memory::kWLoads; ++i) {
      const int at = thread + i * kThreads;
      const std::int32_t o = out0 + at / (kDepth / 4);
      const std::int32_t k = k0 + at % (kDepth / 4) * 4;
      wv[i] = o < out ? __ldg(reinterpret_cast<const float4*>(w + std::int64_t{o} * pitch + k))
                      : float4{0, 0, 0, 0};
    }
  };
  const auto stage = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < Memory::kXLoads; ++i) {
      const int at = thread + i * kThreads;
      store_column(&tile.x[buffer][at % (kDepth / 4) * 4][at / (kDepth / 4)], Memory::kXPitch,
                   xv[i]);
    }
#pragma unroll
    for (int i = 0; i < Memory::kWLoads; ++i) {
      const int at = thread + i * kThreads;
      store_column(&tile.w[buffer][at % (kDepth / 4) * 4][at / (kDepth / 4)], Memory::kWPitch,
                   wv[i]);
    }
  };

  float slice[TR][TO] = {};
#pragma unroll
  for (int i = 0; i < TR * TO; ++i) tile.sum[i][thread] = 0;
  const std::int32_t steps = (in + kDepth - 1) / kDepth;
  fetch(0);
  stage(0);
  __syncthreads();
  for (std::int32_t step = 0; step < steps; ++step) {
    const int buffer = step % 2;
    if (step + 1 < steps) fetch((step + 1) * kDepth);
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float xr[TR];
      float wr[TO];
#pragma unroll
      for (int q = 0; q < kRowQuads; ++q) {
        const float4 v =
            *reinterpret_cast<const float4*>(&tile.x[buffer][k][q * (BR / kRowQuads) + tr * 4]);
        xr[4 * q] = v.x;
        xr[4 * q + 1] = v.y;
        xr[4 * q + 2] = v.z;
        xr[4 * q + 3] = v.w;
      }
#pragma unroll
      for (int q = 0; q < kOutQuads; ++q) {
        const float4 v =
            *reinterpret_cast<const float4*>(&tile.w[buffer][k][q * (BO / kOutQuads) + to * 4]);
        wr[4 * q] = v.x;
        wr[4 * q + 1] = v.y;
        wr[4 * q + 2] = v.z;
        wr[4 * q + 3] = v.w;
      }
#pragma unroll
      for (int r = 0; r < TR; ++r) {
#pragma unroll
        for (int o = 0; o < TO; ++o) slice[r][o] = __fmaf_rn(wr[o], xr[r], slice[r][o]);
      }
    }
    if ((step + 1) % (kSlice / kDepth) == 0 || step + 1 == steps) {
#pragma unroll
      for (int i = 0; i < TR * TO; ++i) {
        tile.sum[i][thread] += slice[i / TO][i % TO];
        slice[i / TO][i % TO] = 0;
      }
    }
    if (step + 1 < steps) stage(1 - buffer);
    __syncthreads();
  }

#pragma unroll
  for (int q = 0; q < kOutQuads; ++q) {
    const std::int32_t o = out0 + q * (BO / kOutQuads) + to * 4;
    float b[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (bias != nullptr && o + i < out) b[i] = bias[o + i];
    }
#pragma unroll
    for (int r = 0; r < TR; ++r) {
      const std::int32_t row = row0 + r / 4 * (BR / kRowQuads) + tr * 4 + r % 4;
      if (row >= rows) continue;
      float v[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = tile.sum[r * TO + q * 4 + i][thread] + b[i];
      if constexpr (E == Epilogue::gated) {
        float* const to_row = y + std::int64_t{row} * (out / 2) + o / 2;
        if (o + 1 < out) to_row[0] = silu(v[0]) * v[1];
        if (o + 3 < out) to_row[1] = silu(v[2]) * v[3];
      } else {
        float* const to_row = y + std::int64_t{row} * out + o;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (o + i < out) to_row[i] = E == Epilogue::residual ? to_row[i] + v[i] : v[i];
        }
      }
    }
  }
}

template <int BR, int BO, int TR, int TO, Epilogue E>
void run(const ProductArgs& a, const Stream& s) {
  using Memory = Tile<BR, BO, TR, TO>;
  static const bool ready = [] {
    check(cudaFuncSetAttribute(tile_f32<BR, BO, TR, TO, E>,
                               cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory)),
          "shared memory");
    return true;
  }();
  (void)ready;
  const dim3 grid(ceil_div(a.out, BO), ceil_div(a.rows.count, BR));
  launch(tile_f32<BR, BO, TR, TO, E>, grid, dim3(Memory::kThreads), sizeof(Memory), s,
         static_cast<const float*>(a.w), a.bias, static_cast<const float*>(a.x),
         static_cast<float*>(a.y), a.rows, a.out, a.in, a.pitch);
}

template <Epilogue E>
void choose(const ProductArgs& a, const Stream& s) {
  const auto tiles = [&](std::int64_t rows, std::int64_t outs) {
    return std::int64_t{ceil_div(a.out, outs)} * ceil_div(a.rows.count, rows);
  };
  // Small tiles until large ones would keep every processor busy.
  if (tiles(128, 128) >= 2 * s.processors) {
    run<128, 128, 8, 8, E>(a, s);
  } else if (tiles(128, 64) >= s.processors) {
    run<128, 64, 8, 8, E>(a, s);
  } else if (tiles(64, 32) >= s.processors) {
    run<64, 32, 8, 4, E>(a, s);
  } else {
    run<32, 32, 4, 4, E>(a, s);
  }
}

}  // namespace

void product_f32(const ProductArgs& a, const Stream& s) {
  if (a.rows.count <= kFewRows && few_rows_f32(a, s)) return;
  switch (a.epilogue) {
    case Epilogue::store:
      choose<Epilogue::store>(a, s);
      break;
    case Epilogue::residual:
      choose<Epilogue::residual>(a, s);
      break;
    case Epilogue::gated:
      choose<Epilogue::gated>(a, s);
      break;
  }
}

}  // namespace toto::cuda
