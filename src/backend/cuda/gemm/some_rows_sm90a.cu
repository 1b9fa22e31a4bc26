// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with up to 32 rows on Hopper, whose weights all fit into shared memory. The
// copy engine brings them, asked before a block even knows that its inputs are there. Threads bring
// rows then (RowPieces). A warp multiplies sixteen outputs of a slice with all rows: its code is
// short, for it runs once and instructions that are not near are waited for. Of rows that are to be
// normed it reads the sums of squares of its slice too (row_squares.cuh). One warp more finds what
// sums are multiplied with, and asks for what is added to them. A thread block has 16, 32 or 48
// outputs. Where outputs are few and slices many, two blocks of a cluster share the slices, and
// each finishes half of the rows. Every output is summed as product.h says. A second product of
// other inputs may be added to the first (ProductArgs::also): its slices come after those of the
// first.
#include <algorithm>
#include <type_traits>

#include "backend/cuda/gemm/copy_engine.cuh"
#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/some_rows.cuh"
#include "backend/cuda/gemm/tensor_map.h"

namespace toto::cuda {
namespace {

constexpr int kMostWarps = 20;      // more would leave a thread too few registers
constexpr int kMostWorkers = 18;    // warps that bring rows and multiply
constexpr int kLeastWorkers = 6;    // fewer would be slow in finishing outputs
constexpr int kSlicesToSplit = 9;   // fewer are faster in one block
constexpr int kChunk = kPitchBf16;  // k of a box of weights or rows: 128 bytes
constexpr int kChunks = kSliceBf16 / kChunk;
constexpr int kAlignment = 1024;

/// What a product does, as far as it is known when the kernel is compiled: code that runs once in a
/// kernel is waited for, so the products of layers have no more than they need.
enum class Use : std::uint8_t { store, gated, residual, any, also };

struct Held : RowsProduct {
  Summand also;      // its slices come after those of the product itself
  int first_slices;  // of the product itself
  int slices;
  int split = 1;       // blocks of a cluster, which share the slices: one or two
  int own = 0;         // slices of a block, at most
  int workers = 0;     // warps but the one that helps
  bool early = false;  // lets_next_begin_early(), and calls are known
};

/// A block of `Parts` times sixteen outputs and `Tiles` times eight rows.
template <int Parts, int Tiles>
struct Block {
  static constexpr int kOutputs = Parts * 16;
  static constexpr int kRows = Tiles * kRowsOfTile;
  static constexpr int kPartPitch = kOutputs + 4;     // what a warp stores goes to different banks
  static constexpr int kBox = kOutputs * kChunk * 2;  // bytes
  static constexpr int kRowBox = kRows * kChunk * 2;
};

/// Shared memory of a block. Boxes have rows of 128 bytes, swizzled.
template <int Parts, int Tiles>
struct HeldMemory {
  using B = Block<Parts, Tiles>;
  std::byte* ws;        // [own][kChunks] boxes of kOutputs rows
  std::byte* xs;        // [own][kChunks] boxes of kRows rows
  float* part;          // [slices][kRows / split][kPartPitch] of rows rank, rank + split, ...
  float* before;        // [kRows][kOutputs] what a residual is added to
  float* squares;       // [slices][kRows]
  float* by;            // [kRows]
  float* also_by;       // [kRows]
  float* bias;          // [kOutputs]
  float* also_bias;     // [kOutputs]
  std::uint64_t* full;  // [own] the weights and rows of a slice are there

  __device__ HeldMemory(void* shared, const Held& a) {
    ws = static_cast<std::byte*>(shared);
    ws += (kAlignment - shared_address(ws) % kAlignment) % kAlignment;
    xs = ws + a.own * kChunks * B::kBox;
    part = reinterpret_cast<float*>(xs + a.own * kChunks * B::kRowBox);
    before = part + a.slices * (B::kRows / a.split) * B::kPartPitch;
    squares = before + (a.epilogue == Epilogue::residual ? B::kRows * B::kOutputs : 0);
    by = squares + a.slices * B::kRows;
    also_by = by + B::kRows;
    bias = also_by + B::kRows;
    also_bias = bias + B::kOutputs;
    full = reinterpret_cast<std::uint64_t*>(also_bias + B::kOutputs);
  }
  static std::int64_t bytes(const Held& a) {
    const int floats = a.slices * (B::kRows / a.split) * B::kPartPitch +
                       (a.epilogue == Epilogue::residual ? B::kRows * B::kOutputs : 0) +
                       (a.slices + 2) * B::kRows + 2 * B::kOutputs;
    return kAlignment + std::int64_t{a.own} * (kChunks * (B::kBox + B::kRowBox) + 8) +
           std::int64_t{floats} * 4;
  }
};

/// Where a lane finds what it loads of weights and rows, in the first boxes.
struct Operands16 {
  std::uint32_t w[kChunk / 16];  // of each sixteen k
  std::uint32_t x[kChunk / 32];  // of each 32
};

/// The product of sixteen outputs of a box with all rows of another, `w` and `x` bytes behind the
/// first ones.
template <int Tiles>
__device__ void multiply_boxes(float (&sum)[Tiles][4], const Operands16& at, std::uint32_t w,
                               std::uint32_t x) {
#pragma unroll
  for (int k = 0; k < kChunk; k += 32) {
    std::uint32_t in[Tiles][4];
#pragma unroll
    for (int t = 0; t < Tiles; ++t) {
      load_matrices(in[t], at.x[k / 32] + x + t * kRowsOfTile * kChunk * 2);
    }
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      std::uint32_t weights[4];
      load_matrices(weights, at.w[k / 16 + step] + w);
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        multiply_add(sum[t], weights, in[t][2 * step], in[t][2 * step + 1]);
      }
    }
  }
}

/// The sums of a warp to where its slice's are in part[][Pitch], `to` for its first row and the
/// lane's output; or to the block of a cluster that finishes a row.
template <int Pitch, int Tiles>
__device__ void put_sums(const float (&sum)[Tiles][4], float* to, int split) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
    const int row = t * kRowsOfTile + lane % 4 * 2;
    if (split == 1) {
      float* const at = to + row * Pitch;
      at[0] = sum[t][0];
      at[Pitch] = sum[t][1];
      at[8] = sum[t][2];
      at[Pitch + 8] = sum[t][3];
    } else {
      const std::uint32_t at = shared_address(to + row / 2 * Pitch);
      store_at(at, 0, sum[t][0]);
      store_at(at, 1, sum[t][1]);
      store_at(at + 32, 0, sum[t][2]);
      store_at(at + 32, 1, sum[t][3]);
    }
  }
}

/// For a norm that follows: two neighbours of a row, whose sixteen eight lanes have.
__device__ void leave_pair(const Ahead& to, std::int64_t at, const float (&v)[2], bool there) {
  const float sum = sum_across<1, kSixteen / 2>(__fadd_rn(square(v[0]), square(v[1])));
  if (!there) return;
  *reinterpret_cast<__nv_bfloat162*>(to.rows + at) = __floats2bfloat162_rn(v[0], v[1]);
  if (at % kSixteen == 0) to.squares[at / kSixteen] = sum;
}

template <int Parts, int Tiles, Use U>
__global__ void __launch_bounds__(32 * kMostWarps)
    held_bf16(const __grid_constant__ CUtensorMap w_map,
              const __grid_constant__ CUtensorMap also_w_map, const Held a) {
  using B = Block<Parts, Tiles>;
  constexpr bool kAlso = U == Use::also;
  constexpr bool kAny = kAlso || U == Use::any;  // the arguments say what is done
  constexpr int kOutputs = B::kOutputs;
  constexpr int kRows = B::kRows;
  extern __shared__ float4 shared[];
  const HeldMemory<Parts, Tiles> m(shared, a);
  const bool gated = kAny ? a.epilogue == Epilogue::gated : U == Use::gated;
  const bool residual = kAny ? a.epilogue == Epilogue::residual : U == Use::residual;
  constexpr bool kMayNorm = U != Use::residual;
  const bool smooth = kAny && a.silu;
  const bool narrow = kAny && (a.silu || a.rounded);  // is what is stored
  const bool adds = residual && a.out % 4 == 0;       // what is copied beforehand
  const bool leaves = (kAlso || U == Use::residual) && a.ahead.rows != nullptr;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const bool helps = warp == a.workers;
  const int split = U == Use::residual ? a.split : 1;
  const int rank = split == 1 ? 0 : static_cast<int>(blockIdx.x) % 2;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x) / split * kOutputs;
  const int first_slice = rank * a.slices / split;
  const int own_slices = (rank + 1) * a.slices / split - first_slice;
  const int own_rows = kRows / split;
  const auto is_second = [&](int s) { return kAlso && s >= a.first_slices; };
  const auto begin_of = [&](int s) { return (is_second(s) ? s - a.first_slices : s) * kSliceBf16; };
  const auto chunks_of = [&](int s) {
    return min(kChunks, ((is_second(s) ? a.also.pitch : a.pitch) - begin_of(s)) / kChunk);
  };
  // Warps ask for slices by turns: a thread takes a hundred cycles for a box.
  if (lane == 0 && !helps) {
    for (int i = warp; i < own_slices; i += a.workers) make_barrier(m.full + i, 1 + 32 * Tiles);
    publish_barriers();
#pragma unroll 1
    for (int i = warp; i < own_slices; i += a.workers) {
      const int s = first_slice + i;
      const int chunks = chunks_of(s);
      expect_bytes(m.full + i, chunks * B::kBox);
#pragma unroll 1
      for (int c = 0; c < chunks; ++c) {
        copy_tile(m.ws + (i * kChunks + c) * B::kBox, is_second(s) ? also_w_map : w_map,
                  begin_of(s) + c * kChunk, out0, m.full + i);
      }
    }
  }
  __syncwarp();
  // Addresses are worked out before the inputs are there.
  Operands16 at{};
#pragma unroll
  for (int i = 0; i < kChunk / 16; ++i) {
    at.w[i] = shared_address(m.ws) + lane % 16 * 128 + ((2 * i + lane / 16) ^ (lane & 7)) * 16;
  }
#pragma unroll
  for (int i = 0; i < kChunk / 32; ++i) {
    at.x[i] = shared_address(m.xs) + lane % 8 * 128 + ((4 * i + lane / 8) ^ (lane & 7)) * 16;
  }
  const RowPieces pieces(B::kRowBox);
  if (split > 1) begin_in_cluster();
  __syncthreads();  // barriers are there
  if (helps) {
    for (int o = lane; o < kOutputs; o += 32) {
      const bool inside = out0 + o < a.stored;
      m.bias[o] = a.bias != nullptr && inside ? a.bias[out0 + o] : 0.0F;
      if (kAlso) m.also_bias[o] = a.also.bias != nullptr && inside ? a.also.bias[out0 + o] : 0.0F;
    }
  }

  if (a.early) let_next_begin();
  const std::int32_t rows = begin_with_rows(a.count, a.known);
  if (!helps) {
#pragma unroll 1
    for (int task = warp; task < own_slices * Tiles; task += a.workers) {
      const int i = task / Tiles;
      const int row = (task - i * Tiles) * kRowsOfTile;
      const int s = first_slice + i;
      const bool second = is_second(s);
      const std::int32_t width = padded_bf16(second ? a.also.in : a.in);
      const std::int32_t k = begin_of(s);
      pieces.copy(shared_address(m.xs) + i * kChunks * B::kRowBox + row * 128,
                  static_cast<const __nv_bfloat16*>(second ? a.also.x : a.x) + row * width + k,
                  width, rows - row, width - k);
      arrive_when_copied(m.full + i);
    }
  } else {
    if (lane < kRows) {
      m.by[lane] = a.scale != nullptr && lane < rows ? a.scale[lane] : 1;
      if (kAlso) m.also_by[lane] = a.also.scale != nullptr && lane < rows ? a.also.scale[lane] : 1;
    }
    for (int i = lane; adds && i < kRows * (kOutputs / 4); i += 32) {
      const int r = i / (kOutputs / 4);
      const int o = i % (kOutputs / 4) * 4;
      const bool inside = r < rows && out0 + o < a.out;
      const float* const y = static_cast<const float*>(a.y);
      copy_16(m.before + r * kOutputs + o, inside ? y + std::int64_t{r} * a.out + out0 + o : y,
              inside ? 16 : 0);
    }
    commit_copies();
    wait_copies<0>();
  }
  if (split > 1) await_cluster();

  if (!helps) {
#pragma unroll 1
    for (int task = warp; task < own_slices * Parts; task += a.workers) {
      const int i = task / Parts;
      const int p = task - i * Parts;
      const int s = first_slice + i;
      const int chunks = chunks_of(s);
      const std::uint32_t w = i * kChunks * B::kBox + p * 16 * kChunk * 2;
      const std::uint32_t x = i * kChunks * B::kRowBox;
      const bool second = is_second(s);
      const float* const squares = second ? a.also.squares : a.squares;
      const bool norms = kMayNorm && p == 0 && squares != nullptr && lane < rows;
      SliceSixteens sixteens;
      if (norms) {
        const std::int32_t in = second ? a.also.in : a.in;
        sixteens.load(squares + std::int64_t{lane} * (in / kSixteen),
                      second ? s - a.first_slices : s, in);
      }
      float sum[Tiles][4] = {};
      wait_barrier(m.full + i, 0);
      if (chunks == kChunks) {
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
          multiply_boxes(sum, at, w + c * B::kBox, x + c * B::kRowBox);
        }
      } else {
#pragma unroll 1
        for (int c = 0; c < chunks; ++c) {
          multiply_boxes(sum, at, w + c * B::kBox, x + c * B::kRowBox);
        }
      }
      put_sums<B::kPartPitch>(sum, m.part + s * own_rows * B::kPartPitch + p * 16 + lane / 4,
                              split);
      if (norms) m.squares[s * kRows + lane] = sixteens.sum();
    }
  }
  const int width = gated ? kOutputs / 2 : kOutputs;
  const std::int32_t columns = gated ? padded_bf16(a.out / 2) : a.out;
  const std::int32_t column0 = gated ? out0 / 2 : out0;
  if (split > 1) {
    arrive_in_cluster();
    await_cluster();
  } else {
    __syncthreads();
  }

  // Two neighbours at a time.
#pragma unroll 1
  for (int i = thread; i < own_rows * width / 2; i += static_cast<int>(blockDim.x)) {
    const int own_row = gated ? i / (kOutputs / 4) : i / (kOutputs / 2);
    const int o = (i - own_row * (width / 2)) * 2;
    const int r = own_row * split + rank;
    const std::int32_t column = column0 + o;
    const bool there = r < rows && column < columns;
    if (!there && !leaves) continue;  // those who leave something do so side by side
    const int first = gated ? o / 8 * 16 + o % 8 : o;  // gates and values lie in groups of eight
    const float* const part = m.part + own_row * B::kPartPitch + first;
    const int apart = own_rows * B::kPartPitch;
    float v[2] = {};
    float u[2] = {};
#pragma unroll 4
    for (int s = 0; s < (kAlso ? a.first_slices : a.slices); ++s) {
      const float2 of = *reinterpret_cast<const float2*>(part + s * apart);
      v[0] += of.x, v[1] += of.y;
      if (gated) {
        const float2 values = *reinterpret_cast<const float2*>(part + s * apart + 8);
        u[0] += values.x, u[1] += values.y;
      }
    }
    float also[2] = {};
    if (kAlso) {
      for (int s = a.first_slices; s < a.slices; ++s) {
        also[0] += part[s * apart], also[1] += part[s * apart + 1];
      }
    }
    const auto root = [&](int from, int to, std::int32_t in) {
      float all = 0;
#pragma unroll 4
      for (int s = from; s < to; ++s) all += m.squares[s * kRows + r];
      return inverse_root(all, in, a.epsilon);
    };
    const bool normed = kMayNorm && a.squares != nullptr;
    const float by = normed ? root(0, kAlso ? a.first_slices : a.slices, a.in) : m.by[r];
    const float also_by = !kAlso                      ? 0.0F
                          : a.also.squares == nullptr ? m.also_by[r]
                                                      : root(a.first_slices, a.slices, a.also.in);
    const std::int64_t to = std::int64_t{r} * columns + column;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      v[n] = __fmaf_rn(v[n], by, m.bias[first + n]);
      if (kAlso) {
        v[n] = add_residual(v[n], __fmaf_rn(also[n], also_by, m.also_bias[first + n]));
      }
      if (gated || smooth) v[n] = silu(v[n]);
      if (gated) v[n] *= __fmaf_rn(u[n], by, m.bias[first + 8 + n]);
      if (residual && column + n < columns) {
        const float* const y = static_cast<const float*>(a.y);
        v[n] = add_residual(adds || !there ? m.before[r * kOutputs + o + n] : y[to + n], v[n]);
      }
    }
    if (leaves) leave_pair(a.ahead, to, v, there);
    if (!there) continue;
    const bool both = columns % 2 == 0;
    if (gated || narrow) {
      auto* const y = static_cast<__nv_bfloat16*>(a.y) + to;
      if (both) {
        *reinterpret_cast<__nv_bfloat162*>(y) = __floats2bfloat162_rn(v[0], v[1]);
      } else {
        y[0] = __float2bfloat16_rn(v[0]);
        if (column + 1 < columns) y[1] = __float2bfloat16_rn(v[1]);
      }
    } else {
      float* const y = static_cast<float*>(a.y) + to;
      if (both) {
        *reinterpret_cast<float2*>(y) = {v[0], v[1]};
      } else {
        y[0] = v[0];
        if (column + 1 < columns) y[1] = v[1];
      }
    }
  }
}

Use use_of(const ProductArgs& a) {
  if (a.also.w != nullptr) return Use::also;
  if (a.silu || a.rounded) return Use::any;
  switch (a.epilogue) {
    case Epilogue::store:
      return Use::store;
    case Epilogue::gated:
      return Use::gated;
    case Epilogue::residual:
      return a.squares == nullptr ? Use::residual : Use::any;
  }
  return Use::any;
}

/// Calls run(integral constant of what the product does).
template <typename Run>
void with_use(Use use, const Run& run) {
  switch (use) {
    case Use::store:
      return run(std::integral_constant<Use, Use::store>{});
    case Use::gated:
      return run(std::integral_constant<Use, Use::gated>{});
    case Use::residual:
      return run(std::integral_constant<Use, Use::residual>{});
    case Use::any:
      return run(std::integral_constant<Use, Use::any>{});
    case Use::also:
      return run(std::integral_constant<Use, Use::also>{});
  }
}

/// false where a block has not as much shared memory.
template <int Parts, int Tiles>
bool run(Held a, const ProductArgs& args, const Stream& s) {
  using B = Block<Parts, Tiles>;
  const Use use = use_of(args);
  const unsigned blocks = ceil_div(a.stored, B::kOutputs);
  const bool few = 2 * blocks <= static_cast<unsigned>(s.processors);
  if (use == Use::residual && few && a.slices >= kSlicesToSplit) a.split = 2;
  a.own = (a.slices + a.split - 1) / a.split;
  const int tasks = std::max(a.own * std::max(Parts, Tiles), kLeastWorkers);
  const int rounds = (tasks + kMostWorkers - 1) / kMostWorkers;
  a.workers = (tasks + rounds - 1) / rounds;
  const std::int64_t bytes = HeldMemory<Parts, Tiles>::bytes(a);
  if (bytes > s.shared_bytes) return false;
  const CUtensorMap w = boxes_of(args.w, true, a.stored, a.pitch, B::kOutputs);
  const CUtensorMap also_w =
      use == Use::also ? boxes_of(args.also.w, true, a.stored, args.also.pitch, B::kOutputs) : w;
  with_use(use, [&](auto of) {
    constexpr auto kernel = held_bf16<Parts, Tiles, of()>;
    allow_shared_memory<kernel>(static_cast<std::size_t>(bytes));
    launch_clusters(kernel, static_cast<unsigned>(a.split),
                    dim3(blocks * static_cast<unsigned>(a.split)),
                    dim3(32 * static_cast<unsigned>(a.workers + 1)),
                    static_cast<std::size_t>(bytes), s, w, also_w, a);
  });
  return true;
}

/// Wide blocks where narrow ones would come in more than one wave: rows are read less often.
template <int Tiles>
bool choose(const Held& a, const ProductArgs& args, const Stream& s) {
  const auto waves = [&](int outputs) {
    return ceil_div(a.stored, outputs) > static_cast<unsigned>(s.processors);
  };
  if (waves(32) && !waves(48) && run<3, Tiles>(a, args, s)) return true;
  return (waves(16) && run<2, Tiles>(a, args, s)) || run<1, Tiles>(a, args, s);
}

}  // namespace

bool held_rows_bf16(const ProductArgs& a, const Stream& s) {
  if (!s.hopper || a.gain != nullptr) return false;
  Held held{rows_product(a, s), a.also, slices_of(a.in), slices_of(a.in) + slices_of(a.also.in)};
  held.early = held.known && lets_next_begin_early(a.rows, std::min(a.in, a.stored));
  switch ((a.rows.count + kRowsOfTile - 1) / kRowsOfTile) {
    case 1:
      return choose<1>(held, a, s);
    case 2:
      return choose<2>(held, a, s);
    case 3:
      return choose<3>(held, a, s);
    default:
      return choose<4>(held, a, s);
  }
}

}  // namespace toto::cuda
