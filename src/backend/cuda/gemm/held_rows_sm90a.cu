// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 with up to 32 rows on Hopper, whose weights all fit into shared memory. The
// copy engine brings them, asked before a block even knows that its inputs are there. Threads bring
// rows then (RowPieces). Of a slice a warp multiplies all outputs of the block, so that rows are
// read once, or sixteen where that would be too many sums. One warp more helps: it brings biases
// and what sums are multiplied with. Of rows that are to be normed, it and the warps that multiply
// nothing add up the squares (row_squares.cuh). A thread block has 16, 32 or 48 outputs. Where
// outputs are few and slices many, two blocks of a cluster share the slices, and each finishes half
// of the rows. Every output is summed as product.h says. A second product of other inputs may be
// added to the first (ProductArgs::also): its slices come after those of the first.
//
// All code here runs once in a kernel, so instructions and constants that are not near are waited
// for: what is asked for first has little code and few arguments before it, and so has what comes
// after the last sum.
#include <algorithm>
#include <type_traits>

#include "backend/cuda/gemm/copy_engine.cuh"
#include "backend/cuda/gemm/held_rows.cuh"
#include "backend/cuda/gemm/tensor_map.h"

namespace toto::cuda {
namespace {

using namespace held;

template <int Parts, int Tiles, Use U>
__global__ void __launch_bounds__(32 * kMostWarps)
    held_bf16(const Asking ask, const __grid_constant__ CUtensorMap w_map,
              const __grid_constant__ CUtensorMap also_w_map, const Held a) {
  using B = Block<Parts, Tiles>;
  constexpr bool kAlso = U == Use::also;
  constexpr bool kAny = kAlso || U == Use::any;  // the arguments say what is done
  constexpr int kOutputs = B::kOutputs;
  constexpr int kRows = B::kRows;
  constexpr int kTogether = B::kTogether;
  constexpr int kTasks = Parts / kTogether;
  constexpr bool kPaired = adds_to_residual(U);
  constexpr bool kLeaves = U == Use::ahead || U == Use::shared;  // whole sixty-fours of outputs
  extern __shared__ float4 shared[];
  __shared__ HeldSmall<Parts, Tiles> m;
  const int warp = static_cast<int>(threadIdx.x / 32U);
  const int lane = lane_of_warp();
  const bool helps = warp == ask.workers;
  const bool shares = U == Use::shared || (U == Use::residual && ask.split == 2);
  const int rank = shares ? static_cast<int>(blockIdx.x % 2U) : 0;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x >> (shares ? 1 : 0)) * kOutputs;
  const int half = ask.slices >> 1;
  const int first_slice = rank * half;
  const int own_slices = (shares && rank == 0 ? half : ask.slices) - first_slice;
  const int own_rows = shares ? kRows / 2 : kRows;
  const bool gated = kAny ? a.epilogue == Epilogue::gated : U == Use::gated;
  const bool residual = kAny ? a.epilogue == Epilogue::residual : kPaired;
  const bool normed = !kPaired && a.squares != nullptr;
  const bool also_normed = kAlso && a.also.squares != nullptr;
  const HeldMemory<Parts, Tiles> large(shared, ask, own_rows);
  const auto is_second = [&](int s) { return kAlso && s >= ask.first_slices; };
  const auto first_chunk = [&](int s) {
    return (is_second(s) ? s - ask.first_slices : s) * kChunks;
  };
  const auto chunks_of = [&](int s) {
    return min(kChunks, (is_second(s) ? ask.also_chunks : ask.chunks) - first_chunk(s));
  };
  // Until blocks have asked for their weights nothing else matters. Warps ask for slices by turns:
  // a thread takes a hundred cycles for a box.
  LiveRows live(ask.count, ask.known);
  if (lane == 0 && !helps) {
#pragma unroll 1
    for (int i = warp; i < own_slices; i += ask.workers) {
      const int s = first_slice + i;
      const int chunks = chunks_of(s);
      make_barrier(m.full + i, 1 + 32 * Tiles);
      publish_barriers();
      expect_bytes(m.full + i, chunks * B::kBox);
#pragma unroll 1
      for (int c = 0; c < chunks; ++c) {
        copy_once(large.ws + (i * kChunks + c) * B::kBox, is_second(s) ? also_w_map : w_map,
                  (first_chunk(s) + c) * kChunk, out0, m.full + i);
      }
    }
  }
  if (lane == 0 && helps && shares) {
    make_barrier(&m.sent, 1);
    publish_barriers();
    expect_bytes(&m.sent, (ask.slices - own_slices) * own_rows * kOutputs * 4);
  }
  __syncwarp();
  if (shares) begin_in_cluster();
  __syncthreads();  // barriers are there

  if (ask.early) let_next_begin();
  if (helps) {
    const auto bring = [&](float* to, const float* bias) {
#pragma unroll 1
      for (int o = lane; o < kOutputs; o += 32) {
        const bool inside = bias != nullptr && out0 + o < a.stored;
        copy_4(to + o, inside ? bias + out0 + o : bias, inside ? 4 : 0);
      }
    };
    bring(m.bias, a.bias);
    if (kAlso) bring(m.also_bias, a.also.bias);
  }
  // What rows are asked for with is worked out before they are there, and kept from being put off.
  struct Eight {  // rows of a slice
    int slice, row;
    RowPieces pieces;
  };
  const auto eight_of = [&](int task) {
    const int i = static_cast<int>(static_cast<unsigned>(task) / Tiles);
    const int row = (task - i * Tiles) * kRowsOfTile;
    const bool second = is_second(first_slice + i);
    const std::int32_t k = first_chunk(first_slice + i) * kChunk;
    const std::int32_t width = second ? ask.also_width : ask.width;
    const auto* const x = static_cast<const __nv_bfloat16*>(second ? a.also.x : a.x);
    const std::uint32_t to = shared_address(large.xs) + i * kChunks * B::kRowBox + row * 128;
    return Eight{i, row, {to, x, row, k, width}};
  };
  Eight eight = eight_of(warp);
  asm volatile(""
               : "+l"(eight.pieces.from), "+r"(eight.pieces.to), "+r"(eight.pieces.width),
                 "+r"(eight.pieces.columns), "+r"(eight.slice), "+r"(eight.row)
               :
               : "memory");
  const std::int32_t rows = live.begin();
  if (!helps) {
#pragma unroll 1
    for (int task = warp; task < own_slices * Tiles;) {
      eight.pieces.template copy<B::kRowBox>(rows - eight.row);
      arrive_when_copied(m.full + eight.slice);
      task += ask.workers;
      if (task < own_slices * Tiles) eight = eight_of(task);
    }
  } else {
    commit_copies();
    const auto scale = [&](float* by, const float* scales) {
      if (lane < kRows) by[lane] = scales != nullptr && lane < rows ? scales[lane] : 1;
    };
    if (!normed) scale(m.by, a.scale);
    if (kAlso && !also_normed) scale(m.also_by, a.also.scale);
    wait_copies<0>();
  }
  // A thread finishes two neighbours of a row at a time. Where they are and go is worked out while
  // others multiply: warps that multiply nothing finish the first.
  const int width = gated ? kOutputs / 2 : kOutputs;
  const std::int32_t columns = gated ? padded_bf16(a.out / 2) : a.out;
  const bool leaves = kLeaves || (kAlso && a.ahead.rows != nullptr);
  const int items = own_rows * width / 2;
  // Where a product adds to a residual the one that helps norms nothing, and so finishes the first.
  const int order = kPaired ? ask.workers - warp : helps ? warp : ask.workers - 1 - warp;
  int item = order * 32 + lane;
  bool there = false;
  bool both = false;  // neighbours are there
  int r = 0;
  int o = 0;  // of the sums, and of biases
  std::int64_t to = 0;
  std::uint32_t sums = 0;
  float2 before{};
  const auto take = [&] {
    const auto own_row = static_cast<int>(gated ? static_cast<unsigned>(item) / (kOutputs / 4)
                                                : static_cast<unsigned>(item) / (kOutputs / 2));
    const int n = (item - own_row * (gated ? kOutputs / 4 : kOutputs / 2)) * 2;
    const std::int32_t column = (gated ? out0 / 2 : out0) + n;
    r = shares ? own_row * 2 + rank : own_row;
    o = gated ? n / 8 * 16 + n % 8 : n;  // gates and values lie in groups of eight
    there = r < rows && column < columns;
    both = there && (kLeaves || columns % 2 == 0);
    to = std::int64_t{r} * columns + column;
    sums = shared_address(large.part + own_row * B::kPartPitch + (kPaired ? place_paired(o) : o));
    if (!residual || !there) return;
    const float* const y = static_cast<const float*>(a.y) + to;
    if (both) {
      before = *reinterpret_cast<const float2*>(y);
    } else {
      before = {y[0], column + 1 < columns ? y[1] : 0.0F};
    }
  };
  if (kPaired && item < items) take();
  if (shares) await_cluster();

  if (!helps) {
    const std::uint32_t lane_w =
        shared_address(large.ws) + lane % 16 * 128 + (lane / 16 ^ lane % 8) * 16;
    const std::uint32_t lane_x =
        shared_address(large.xs) + lane % 8 * 128 + (lane / 8 ^ lane % 8) * 16;
#pragma unroll 1
    for (int task = warp; task < own_slices * kTasks; task += ask.workers) {
      const int i = task / kTasks;
      const int p = (task - i * kTasks) * kTogether;
      const int s = first_slice + i;
      const int chunks = chunks_of(s);
      const std::uint32_t w = lane_w + i * kChunks * B::kBox + p * 16 * kChunk * 2;
      const std::uint32_t x = lane_x + i * kChunks * B::kRowBox;
      float sum[kTogether][Tiles][4] = {};
      wait_barrier(m.full + i, 0);
      if (chunks == kChunks) {
        multiply_boxes<kChunks, B::kBox, B::kRowBox>(sum, w, x);
      } else {
#pragma unroll 1
        for (int c = 0; c < chunks; ++c) {
          multiply_boxes<1, B::kBox, B::kRowBox>(sum, w + c * B::kBox, x + c * B::kRowBox);
        }
      }
#pragma unroll
      for (int q = 0; q < kTogether; ++q) {
        float* const part = large.part + s * own_rows * B::kPartPitch + (p + q) * 16;
        if (shares) {
          share_sums<B::kPartPitch>(sum[q], part, rank, &m.sent);
        } else {
          put_sums<kPaired, B::kPartPitch>(sum[q], part);
        }
      }
    }
  }
  // Warps that multiply nothing and the one that helps sum squares; that makes roots of them.
  if (normed || also_normed) {
    constexpr int kSquares = 1;  // the barrier
    const int idle = max(ask.workers - own_slices * kTasks, 0);
    const int first = ask.workers - idle;
    if (warp >= first) {
#pragma unroll 1
      for (int s = warp - first; s < ask.slices; s += idle + 1) {
        const bool second = is_second(s);
        const float* const squares = second ? a.also.squares : a.squares;
        const std::int32_t in = second ? a.also.in : a.in;
        if (squares == nullptr || lane >= rows) continue;
        SliceSixteens sixteens;
        sixteens.load(squares + std::int64_t{lane} * (in / kSixteen),
                      second ? s - ask.first_slices : s, in);
        large.squares[s * kRows + lane] = sixteens.sum();
      }
      __syncwarp();
    }
    if (warp >= first && !helps) {
      asm volatile("bar.arrive %0, %1;" ::"n"(kSquares), "r"(32 * (idle + 1)) : "memory");
    } else if (helps) {
      asm volatile("bar.sync %0, %1;" ::"n"(kSquares), "r"(32 * (idle + 1)) : "memory");
      const auto root = [&](int from, int to, std::int32_t in) {
        float all = 0;
#pragma unroll 4
        for (int s = from; s < to; ++s) all += large.squares[s * kRows + lane];
        return inverse_root(all, in, a.epsilon);
      };
      if (lane < rows) {
        if (normed) m.by[lane] = root(0, kAlso ? ask.first_slices : ask.slices, a.in);
        if (also_normed) m.also_by[lane] = root(ask.first_slices, ask.slices, a.also.in);
      }
    }
  }
  if (!kPaired && item < items) take();
  std::uint32_t apart = own_rows * B::kPartPitch * 4;  // bytes between slices
  asm volatile("" : "+r"(sums), "+r"(apart), "+r"(r), "+r"(o), "+l"(to));
  __syncthreads();
  static_assert(kRows * kOutputs / 4 % 32 == 0);  // whole warps finish, and leave rows together
  if (item >= items) return;
  if (shares) wait_barrier(&m.sent, 0);
  const bool smooth = kAny && a.silu;
  const bool narrow = kAny && (a.silu || a.rounded);  // is what is stored
  // A sum that begins with zero is never -0, so what is not there changes no bit.
  const auto sum_of = [&](int first, int end, float(&v)[2], float(&u)[2]) {
    constexpr int kAtOnce = 8;
    constexpr int kBeside = kPaired ? 2 : 1;
    int s = first;
#pragma unroll 1
    do {
      float2 gates[kAtOnce];
      float2 values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const std::uint32_t at = sums + (s + k) * apart;
        gates[k] = load_if<kBeside>(s + k < end, at);
        if (gated) values[k] = load_if<1>(s + k < end, at + 8 * 4);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        v[0] += gates[k].x, v[1] += gates[k].y;
        if (gated) u[0] += values[k].x, u[1] += values[k].y;
      }
      s += kAtOnce;
    } while (s < end);
  };
#pragma unroll 1
  for (;;) {
    const float by = m.by[r];
    const float2 bias = *reinterpret_cast<const float2*>(m.bias + o);
    float v[2] = {};
    float u[2] = {};
    sum_of(0, kAlso ? ask.first_slices : ask.slices, v, u);
    v[0] = __fmaf_rn(v[0], by, bias.x);
    v[1] = __fmaf_rn(v[1], by, bias.y);
    if (kAlso) {
      float also[2] = {};
      sum_of(ask.first_slices, ask.slices, also, u);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        v[k] = add_residual(v[k], __fmaf_rn(also[k], m.also_by[r], m.also_bias[o + k]));
      }
    }
    if (gated || smooth) v[0] = silu(v[0]), v[1] = silu(v[1]);
    if (gated) {
      v[0] *= __fmaf_rn(u[0], by, m.bias[o + 8]);
      v[1] *= __fmaf_rn(u[1], by, m.bias[o + 9]);
    }
    if (residual) v[0] = add_residual(before.x, v[0]), v[1] = add_residual(before.y, v[1]);
    if (leaves) leave_pair(a.ahead, to, v, there);
    if (gated || narrow) {
      auto* const y = static_cast<__nv_bfloat16*>(a.y) + to;
      if (both) {
        *reinterpret_cast<__nv_bfloat162*>(y) = __floats2bfloat162_rn(v[0], v[1]);
      } else if (there) {
        y[0] = __float2bfloat16_rn(v[0]);
        if ((to + 1) % columns != 0) y[1] = __float2bfloat16_rn(v[1]);
      }
    } else {
      float* const y = static_cast<float*>(a.y) + to;
      if (both) {
        *reinterpret_cast<float2*>(y) = {v[0], v[1]};
      } else if (there) {
        y[0] = v[0];
        if ((to + 1) % columns != 0) y[1] = v[1];
      }
    }
    item += static_cast<int>(blockDim.x);
    if (item >= items) return;
    take();
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
      if (a.squares != nullptr) return Use::any;
      return a.ahead.rows == nullptr ? Use::residual : Use::ahead;
  }
  return Use::any;
}

/// Calls run(integral constant of what the product does). Blocks of more than sixteen outputs are
/// too many to share slices.
template <int Parts, typename Run>
void with_use(Use use, const Run& run) {
  switch (use) {
    case Use::store:
      return run(std::integral_constant<Use, Use::store>{});
    case Use::gated:
      return run(std::integral_constant<Use, Use::gated>{});
    case Use::residual:
      return run(std::integral_constant<Use, Use::residual>{});
    case Use::ahead:
      return run(std::integral_constant<Use, Use::ahead>{});
    case Use::shared:
      if constexpr (Parts == 1) run(std::integral_constant<Use, Use::shared>{});
      return;
    case Use::any:
      return run(std::integral_constant<Use, Use::any>{});
    case Use::also:
      return run(std::integral_constant<Use, Use::also>{});
  }
}

/// false where a block has not as much shared memory.
template <int Parts, int Tiles>
bool run(const Held& a, const ProductArgs& args, const Stream& s) {
  using B = Block<Parts, Tiles>;
  Use use = use_of(args);
  const unsigned blocks = ceil_div(a.stored, B::kOutputs);
  const bool few = 2 * blocks <= static_cast<unsigned>(s.processors);
  Asking ask{a.pitch / kChunk, slices_of(a.in), slices_of(a.in), a.also.pitch / kChunk};
  ask.slices += slices_of(a.also.in);
  ask.known = a.known, ask.count = a.count;
  ask.width = padded_bf16(a.in), ask.also_width = padded_bf16(a.also.in);
  ask.early = a.known && lets_next_begin_early(a.count, std::min(a.in, a.stored));
  if (Parts == 1 && adds_to_residual(use) && few && ask.slices >= kSlicesToSplit) {
    ask.split = 2;
    if (use == Use::ahead) use = Use::shared;
  }
  ask.own = (ask.slices + ask.split - 1) / ask.split;
  if (ask.own > kMostSlices) return false;
  const int multiply = ask.own * Parts / B::kTogether;
  const int squares = (args.squares == nullptr ? 0 : ask.first_slices) +
                      (args.also.squares == nullptr ? 0 : ask.slices - ask.first_slices);
  const int sum = std::clamp(kMostWorkers - multiply, 0, std::min(squares, kSumming));
  const int tasks = std::max({ask.own * Tiles, multiply + sum, kLeastWorkers});
  const int rounds = (tasks + kMostWorkers - 1) / kMostWorkers;
  ask.workers = (tasks + rounds - 1) / rounds;
  const std::int64_t bytes = HeldMemory<Parts, Tiles>::bytes(ask);
  constexpr int kSmall = sizeof(HeldSmall<Parts, Tiles>);
  if (bytes + kSmall > s.shared_bytes) return false;
  const CUtensorMap w = boxes_of(args.w, true, a.stored, a.pitch, B::kOutputs);
  const CUtensorMap also_w =
      use == Use::also ? boxes_of(args.also.w, true, a.stored, args.also.pitch, B::kOutputs) : w;
  with_use<Parts>(use, [&](auto of) {
    constexpr auto kernel = held_bf16<Parts, Tiles, of()>;
    allow_shared_memory<kernel>(static_cast<std::size_t>(bytes));
    launch_clusters(kernel, static_cast<unsigned>(ask.split),
                    dim3(blocks * static_cast<unsigned>(ask.split)),
                    dim3(32 * static_cast<unsigned>(ask.workers + 1)),
                    static_cast<std::size_t>(bytes), s, ask, w, also_w, a);
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
  const Held held{rows_product(a, s), a.also};
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
