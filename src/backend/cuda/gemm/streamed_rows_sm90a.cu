// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with up to 32 rows whose weights are many: those of wide layers, which
// some_rows_bf16.cu would take in rounds, or with more blocks than run at once. Here a block has as
// many outputs as it takes for all blocks to run side by side. The copy engine brings its weights a
// slice of k at a time, as many slices ahead as fit, and begins before the block knows that its
// inputs are there. Then all its warps bring rows, once for all outputs. A warp multiplies sixteen
// outputs; groups of warps take slices by turns. Where slices are many, two blocks share them: the
// first hands its sums to the second, which goes on from there. Every output is summed as product.h
// says. Inputs are bfloat16, or float32 rows that are normed on the way (row_squares.cuh).
#include <algorithm>

#include "backend/cuda/gemm/copy_engine.cuh"
#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/some_rows.cuh"
#include "backend/cuda/ops/group_tiles.cuh"
#include "backend/cuda/ops2/row_squares.cuh"

namespace toto::cuda {
namespace {

/// Warps that bring rows, of which some multiply; one more brings weights.
constexpr int most_warps_of(int tiles) { return tiles <= 2 ? 22 : 16; }
constexpr int kUnitOutputs = 16;    // of a warp
constexpr int kChunk = kPitchBf16;  // k of a box of weights: 128 bytes
constexpr int kChunks = kSliceBf16 / kChunk;
constexpr int kStageBytes = kUnitOutputs * kSliceBf16 * 2;  // for each sixteen outputs of a block
constexpr int kAlignment = 1024;
constexpr int kMostParts = 16;      // sixteens of outputs of a block: a box has 256 rows at most
constexpr int kLeastStages = 3;     // worth more than several groups of warps
constexpr int kSlicesToSplit = 16;  // fewer are faster in one block

struct Streamed : RowsProduct {
  int slices;
  int split = 1;   // one block, or two of a cluster, which share the slices
  int own = 0;     // slices of a block, at most
  int parts = 1;   // sixteens of outputs of a block
  int groups = 1;  // of warps, which take slices by turns
  int stages = 1;  // of a slice of the block's weights
};

/// Shared memory of a block.
template <int Tiles>
struct StreamedMemory {
  static constexpr int kRows = Tiles * kRowsOfTile;
  std::byte* ws;         // [stages][kChunks][parts * kUnitOutputs] rows of 128 bytes, swizzled
  std::uint64_t* full;   // [stages]
  std::uint64_t* empty;  // [stages]
  __nv_bfloat16* xs;     // [own][kRows][kPitch]
  float4* part;          // [own][parts][Tiles][32] sums of slices, as lanes have them
  float4* before;        // [parts][Tiles][32] of the slices of the first block
  float* squares;        // [own][kRows]

  __device__ StreamedMemory(void* shared, const Streamed& a) {
    ws = static_cast<std::byte*>(shared);
    ws += (kAlignment - shared_address(ws) % kAlignment) % kAlignment;
    full = reinterpret_cast<std::uint64_t*>(ws + a.stages * a.parts * kStageBytes);
    empty = full + a.stages;
    xs = reinterpret_cast<__nv_bfloat16*>(empty + a.stages);
    part = reinterpret_cast<float4*>(xs + a.own * kRows * kPitch);
    before = part + (keeps(a) ? a.own * a.parts * Tiles * 32 : 0);
    squares = reinterpret_cast<float*>(before + (a.split > 1 ? a.parts * Tiles * 32 : 0));
  }
  static __host__ __device__ bool keeps(const Streamed& a) { return a.groups > 1 || a.split > 1; }
  static std::int64_t bytes(const Streamed& a) {
    const std::int64_t sums = std::int64_t{a.parts} * Tiles * 32 * 16;
    return kAlignment + std::int64_t{a.stages} * (a.parts * kStageBytes + 16) +
           std::int64_t{a.own} * kRows * (kPitch * 2 + 4) + (keeps(a) ? a.own * sums : 0) +
           (a.split > 1 ? sums : 0);
  }
};

__device__ void add(float (&to)[4], const float (&v)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] += v[i];
}

/// Where a lane finds what it loads of a warp's weights in a stage, and of the rows of a slice.
struct Operands16 {
  std::uint32_t w[kChunk / 16];  // of each sixteen k of a chunk
  std::uint32_t x;
};

/// `Count` slices side by side; w, x: offsets of their stages and rows.
template <int Tiles, int Count>
__device__ void multiply(float (&sum)[Count][Tiles][4], const Operands16& at, std::uint32_t chunk,
                         const std::uint32_t (&w)[Count], const std::uint32_t (&x)[Count],
                         int chunks) {
#pragma unroll
  for (int n = 0; n < Count; ++n) {
#pragma unroll
    for (int t = 0; t < Tiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[n][t][i] = 0;
    }
  }
#pragma unroll 1
  for (int c = 0; c < chunks; ++c) {
#pragma unroll
    for (int k = 0; k < kChunk; k += 32) {
#pragma unroll
      for (int n = 0; n < Count; ++n) {
        std::uint32_t in[Tiles][4];
#pragma unroll
        for (int t = 0; t < Tiles; ++t) {
          load_matrices(in[t], at.x + x[n] + (t * kRowsOfTile * kPitch + c * kChunk + k) * 2);
        }
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          std::uint32_t weights[4];
          load_matrices(weights, at.w[k / 16 + step] + w[n] + c * chunk);
#pragma unroll
          for (int t = 0; t < Tiles; ++t) {
            multiply_add(sum[n][t], weights, in[t][2 * step], in[t][2 * step + 1]);
          }
        }
      }
    }
  }
}

/// Eight rows from `first_row` on of a slice that begins at `k0`, as operands; and the sums of
/// their squares.
__device__ void bring_normed(const Streamed& a, __nv_bfloat16* xs, float* squares, int first_row,
                             std::int32_t k0, std::int32_t rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int place = lane % kSliceLanes;
  const int first = first_row + lane / kSliceLanes;
  const std::int32_t left = a.in - k0 - place * 4;
  const float* x = static_cast<const float*>(a.x) + std::int64_t{first} * a.in + k0 + place * 4;
  float4 v[kRowsOfTile / 2][kSliceFours];
#pragma unroll
  for (int i = 0; i < kRowsOfTile / 2; ++i) {
    load_slice(v[i], x, first + i * 2 < rows, left);
    x += 2 * a.in;
  }
#pragma unroll
  for (int i = 0; i < kRowsOfTile / 2; ++i) {
    const int r = i * 2 + lane / kSliceLanes;
    const float sum = slice_squares(v[i]);
    if (place == 0) squares[r] = sum;
#pragma unroll
    for (int j = 0; j < kSliceFours; ++j) {
      *reinterpret_cast<uint2*>(xs + r * kPitch + (place + j * kSliceLanes) * 4) =
          four_bf16(v[i][j]);
    }
  }
}

/// The same of rows in bfloat16.
__device__ void bring_narrow(const Streamed& a, __nv_bfloat16* xs, int first_row, std::int32_t k0,
                             std::int32_t rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t width = padded_bf16(a.in);
  const int column = lane % 8 * 8;
  const std::int32_t left = width - k0 - column;
  const int first = first_row + lane / 8;
  const auto* const x =
      static_cast<const __nv_bfloat16*>(a.x) + std::int64_t{first} * width + k0 + column;
  uint4 v[kRowsOfTile / 4][kSliceBf16 / kColumns];
#pragma unroll
  for (int i = 0; i < kRowsOfTile / 4; ++i) {
#pragma unroll
    for (int k = 0; k < kSliceBf16 / kColumns; ++k) {
      const bool there = first + i * 4 < rows && k * kColumns < left;
      v[i][k] =
          there ? *reinterpret_cast<const uint4*>(x + std::int64_t{i * 4} * width + k * kColumns)
                : uint4{};
    }
  }
#pragma unroll
  for (int i = 0; i < kRowsOfTile / 4; ++i) {
#pragma unroll
    for (int k = 0; k < kSliceBf16 / kColumns; ++k) {
      *reinterpret_cast<uint4*>(xs + (lane / 8 + i * 4) * kPitch + column + k * kColumns) = v[i][k];
    }
  }
}

/// What a block has of the slices, and a warp of its warps.
struct OwnSlices {
  int first, slices;
  std::int32_t rows;  // that there are
  int warp, warps;
};

/// All rows of the block's slices.
template <int Tiles>
__device__ void bring_rows(const Streamed& a, const StreamedMemory<Tiles>& m,
                           const OwnSlices& own) {
  constexpr int kMost = Tiles * kRowsOfTile;
  for (int task = own.warp; task < own.slices * Tiles; task += own.warps) {
    const int s = task / Tiles;
    const int first_row = (task - s * Tiles) * kRowsOfTile;
    const int at = s * kMost + first_row;
    const std::int32_t k0 = (own.first + s) * kSliceBf16;
    if (a.norm) {
      bring_normed(a, m.xs + at * kPitch, m.squares + at, first_row, k0, own.rows);
    } else {
      bring_narrow(a, m.xs + at * kPitch, first_row, k0, own.rows);
    }
  }
}

/// The sums of a warp's outputs, from `first_out` on, on their way out. `by`: of row `lane`.
template <int Tiles>
__device__ void finish_outputs(const Streamed& a, const float (&sum)[Tiles][4],
                               const float (&residual)[Tiles][4], const float (&bias)[2], float by,
                               std::int32_t first_out, std::int32_t rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool gated = a.epilogue == Epilogue::gated;
  const std::int32_t columns = gated ? padded_bf16(a.out / 2) : a.out;
  const std::int32_t column = (gated ? first_out / 2 : first_out) + lane / 4;
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = t * kRowsOfTile + lane % 4 * 2 + i;
      const float row_by = __shfl_sync(~0U, by, r);
      float v = __fmaf_rn(sum[t][i], row_by, bias[0]);
      float u = __fmaf_rn(sum[t][2 + i], row_by, bias[1]);
      if (r >= rows) continue;
      const std::int64_t at = std::int64_t{r} * columns + column;
      if (gated) {
        if (column < columns) {
          static_cast<__nv_bfloat16*>(a.y)[at] = __float2bfloat16_rn(silu(v) * u);
        }
        continue;
      }
      if (a.epilogue == Epilogue::residual) {
        v = add_residual(residual[t][i], v);
        u = add_residual(residual[t][2 + i], u);
      }
      if (a.silu) v = silu(v), u = silu(u);
      if (a.silu || a.rounded) {
        auto* const y = static_cast<__nv_bfloat16*>(a.y) + at;
        if (column < columns) y[0] = __float2bfloat16_rn(v);
        if (column + 8 < columns) y[8] = __float2bfloat16_rn(u);
      } else {
        float* const y = static_cast<float*>(a.y) + at;
        if (column < columns) y[0] = v;
        if (column + 8 < columns) y[8] = u;
      }
    }
  }
}

template <int Tiles>
__global__ void __launch_bounds__(32 * (most_warps_of(Tiles) + 1), 1)
    streamed_bf16(const __grid_constant__ CUtensorMap w_map, const Streamed a) {
  constexpr int kMost = Tiles * kRowsOfTile;  // rows
  extern __shared__ float4 shared[];
  const StreamedMemory<Tiles> m(shared, a);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(blockDim.x) / 32 - 1;
  const int rank = static_cast<int>(blockIdx.x) % a.split;
  const std::int32_t out0 =
      static_cast<std::int32_t>(blockIdx.x) / a.split * a.parts * kUnitOutputs;
  const int first_slice = rank * a.slices / a.split;
  const int own_slices = (rank + 1) * a.slices / a.split - first_slice;
  const int parts = min(a.parts, (a.stored - out0 + kUnitOutputs - 1) / kUnitOutputs);
  const int group = warp / a.parts;
  const int p = warp - group * a.parts;
  const bool works = group < a.groups && p < parts;
  const std::int32_t first_out = out0 + p * kUnitOutputs;
  const auto chunks_of = [&](int slice) {
    return min(kChunks, (a.pitch - (first_slice + slice) * kSliceBf16) / kChunk);
  };
  const auto bring = [&](int slice, int stage) {
    const int chunks = chunks_of(slice);
    const int bytes = a.parts * kUnitOutputs * kChunk * 2;
    std::byte* to = m.ws + stage * a.parts * kStageBytes;
    expect_bytes(m.full + stage, chunks * bytes);
    for (int c = 0; c < chunks; ++c, to += bytes) {
      copy_tile(to, w_map, (first_slice + slice) * kSliceBf16 + c * kChunk, out0, m.full + stage);
    }
  };
  const bool brings = warp == warps;
  if (brings && lane == 0) {
    for (int i = 0; i < a.stages; ++i) {
      make_barrier(m.full + i, 1);
      make_barrier(m.empty + i, parts);
    }
    publish_barriers();
    for (int i = 0; i < min(a.stages, own_slices); ++i) bring(i, i);
  }
  __syncwarp();

  // Of this lane's outputs and rows.
  const bool finishes = works && group == 0 && rank + 1 == a.split;
  const std::int32_t own_out = first_out + lane / 4;
  float bias[2] = {};
  if (finishes && a.bias != nullptr) {
    if (own_out < a.stored) bias[0] = a.bias[own_out];
    if (own_out + 8 < a.stored) bias[1] = a.bias[own_out + 8];
  }
  if (a.split > 1) begin_in_cluster();
  const std::int32_t rows = begin_with_rows(a.count, a.known);

  if (!brings) {
    bring_rows<Tiles>(a, m, {first_slice, own_slices, rows, warp, warps});
  }
  float residual[Tiles][4] = {};
  if (finishes && a.epilogue == Epilogue::residual) {
#pragma unroll
    for (int t = 0; t < Tiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = t * kRowsOfTile + lane % 4 * 2 + i % 2;
        const std::int32_t o = own_out + i / 2 * 8;
        if (r < rows && o < a.out) {
          residual[t][i] = static_cast<const float*>(a.y)[std::int64_t{r} * a.out + o];
        }
      }
    }
  }
  float by = 1;  // of row `lane`
  if (finishes && !a.norm && a.scale != nullptr && lane < rows) by = a.scale[lane];
  __syncthreads();

  const auto stage_of = [&](int slice) { return slice % a.stages; };
  if (brings && lane == 0) {
    for (int slice = a.stages; slice < own_slices; ++slice) {
      wait_barrier(m.empty + stage_of(slice), (slice / a.stages + 1) & 1);
      bring(slice, stage_of(slice));
    }
  }
  __syncwarp();
  float sum[Tiles][4] = {};
  if (works) {
    Operands16 at{};
    const std::uint32_t row = shared_address(m.ws) + (p * kUnitOutputs + lane % 16) * 128;
#pragma unroll
    for (int i = 0; i < kChunk / 16; ++i) at.w[i] = row + ((2 * i + lane / 16) ^ (lane & 7)) * 16;
    at.x = shared_address(m.xs + lane % 8 * kPitch + lane / 8 * 8);
    const std::uint32_t chunk = a.parts * kUnitOutputs * kChunk * 2;
    const auto w_of = [&](int slice) {
      return static_cast<std::uint32_t>(stage_of(slice) * a.parts * kStageBytes);
    };
    const auto x_of = [&](int slice) {
      return static_cast<std::uint32_t>(slice * kMost * kPitch * 2);
    };
    const auto await = [&](int slice) {
      wait_barrier(m.full + stage_of(slice), slice / a.stages & 1);
    };
    const auto take = [&](const float(&of)[Tiles][4], int slice) {
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        if (!StreamedMemory<Tiles>::keeps(a)) {
          add(sum[t], of[t]);
        } else {
          m.part[((slice * a.parts + p) * Tiles + t) * 32 + lane] = {of[t][0], of[t][1], of[t][2],
                                                                     of[t][3]};
        }
      }
      if (lane == 0 && slice + a.stages < own_slices) arrive(m.empty + stage_of(slice));
    };
#pragma unroll 1
    for (int slice = group; slice < own_slices;) {
      const int next = slice + a.groups;
      await(slice);
      if (next < own_slices && chunks_of(next) == kChunks && next < slice + a.stages &&
          __all_sync(~0U, try_barrier(m.full + stage_of(next), next / a.stages & 1))) {
        float of[2][Tiles][4];
        multiply<Tiles, 2>(of, at, chunk, {w_of(slice), w_of(next)}, {x_of(slice), x_of(next)},
                           kChunks);
        __syncwarp();
        take(of[0], slice);
        take(of[1], next);
        slice = next + a.groups;
      } else {
        float of[1][Tiles][4];
        multiply<Tiles, 1>(of, at, chunk, {w_of(slice)}, {x_of(slice)}, chunks_of(slice));
        __syncwarp();
        take(of[0], slice);
        slice = next;
      }
    }
  }
  if (StreamedMemory<Tiles>::keeps(a)) __syncthreads();
  const auto add_parts = [&] {
#pragma unroll 4
    for (int s = 0; s < own_slices; ++s) {
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const float4 v = m.part[((s * a.parts + p) * Tiles + t) * 32 + lane];
        add(sum[t], {v.x, v.y, v.z, v.w});
      }
    }
  };
  if (a.split == 1) {
    if (finishes && a.groups > 1) add_parts();
  } else {
    const bool adds = works && group == 0;
    await_cluster();
    if (rank == 0 && adds) {
      add_parts();
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const std::uint32_t there = shared_address(m.before + (p * Tiles + t) * 32 + lane);
#pragma unroll
        for (int i = 0; i < 4; ++i) store_at(there + i * 4, 1, sum[t][i]);
      }
    }
    arrive_in_cluster();
    await_cluster();
    if (rank == 1 && adds) {
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const float4 v = m.before[(p * Tiles + t) * 32 + lane];
        sum[t][0] = v.x, sum[t][1] = v.y, sum[t][2] = v.z, sum[t][3] = v.w;
      }
      add_parts();
    }
  }
  if (!finishes) return;

  if (a.norm && lane < kMost) {
    float all = 0;
#pragma unroll 4
    for (int i = 0; i < a.slices; ++i) all += m.squares[i * kMost + lane];
    by = inverse_root(all, a.in, a.epsilon);
  }
  finish_outputs<Tiles>(a, sum, residual, bias, by, first_out, rows);
}

/// false where even one stage does not fit.
template <int Tiles>
bool run(Streamed a, const ProductArgs& args, const Stream& s) {
  using Memory = StreamedMemory<Tiles>;
  constexpr int kWarps = most_warps_of(Tiles);
  const int units = (a.stored + kUnitOutputs - 1) / kUnitOutputs;
  // The squares of a norm would have to meet as well.
  a.split = !a.norm && a.slices >= kSlicesToSplit ? 2 : 1;
  a.own = (a.slices + a.split - 1) / a.split;
  const int side_by_side = s.processors / a.split;
  a.parts = (units + side_by_side - 1) / side_by_side;
  if (a.parts > kMostParts) return false;
  // Where stages are used again, each belongs to one group, which then sees all its phases.
  const auto fits = [&](int groups) {
    a.groups = std::min({groups, a.own, kWarps / a.parts});
    for (a.stages = a.own; a.stages > 0 && Memory::bytes(a) > s.shared_bytes;) --a.stages;
    if (a.stages < a.own) a.stages = a.stages / a.groups * a.groups;
    return a.stages >= std::min(a.own, kLeastStages);
  };
  // Where none has so many stages, one group takes what there are.
  for (int groups = kMostParts / a.parts; groups > 0 && !fits(groups);) groups /= 2;
  if (a.stages < 1) return false;
  const int tasks = a.own * Tiles;
  const int rounds = (tasks + kWarps - 1) / kWarps;
  const int warps = std::max(a.parts * a.groups, (tasks + rounds - 1) / rounds);
  const auto bytes = static_cast<std::size_t>(Memory::bytes(a));
  constexpr auto kernel = streamed_bf16<Tiles>;
  allow_shared_memory<kernel>(bytes);
  const CUtensorMap map = boxes_of(args.w, true, a.stored, a.pitch, a.parts * kUnitOutputs);
  const auto blocks = static_cast<unsigned>((units + a.parts - 1) / a.parts * a.split);
  launch_clusters(kernel, static_cast<unsigned>(a.split), dim3(blocks),
                  dim3(32 * static_cast<unsigned>(warps + 1)), bytes, s, map, a);
  return true;
}

}  // namespace

bool streamed_rows_bf16(const ProductArgs& a, const Stream& s) {
  if (!s.hopper || a.gain != nullptr || a.also.w != nullptr) return false;
  const Streamed streamed{rows_product(a, s), slices_of(a.in)};
  switch ((a.rows.count + kRowsOfTile - 1) / kRowsOfTile) {
    case 1:
      return run<1>(streamed, a, s);
    case 2:
      return run<2>(streamed, a, s);
    case 3:
      return run<3>(streamed, a, s);
    default:
      return run<4>(streamed, a, s);
  }
}

}  // namespace toto::cuda
