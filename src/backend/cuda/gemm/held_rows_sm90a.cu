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
  constexpr bool kAdds = adds_to_residual(U);
  constexpr bool kNormed = U == Use::store || U == Use::gated;
  constexpr bool kLeaves = U == Use::ahead || U == Use::shared;  // whole sixty-fours of outputs
  extern __shared__ float4 shared[];
  __shared__ HeldSmall<Parts, Tiles> m;
  // As all lanes have it: the compiler keeps it, and what follows from it, in uniform registers,
  // where instructions for barriers and the copy engine want their operands.
  const int warp = __shfl_sync(~0U, static_cast<int>(threadIdx.x / 32U), 0);
  const int lane = lane_of_warp();
  const bool helps = warp == ask.workers;
  const bool shares = U == Use::shared || (U == Use::residual && ask.split == 2);
  const int rank = shares ? static_cast<int>(blockIdx.x % 2U) : 0;
  const std::int32_t out0 = static_cast<std::int32_t>(blockIdx.x >> (shares ? 1 : 0)) * kOutputs;
  const int half = ask.slices >> 1;
  const int first_slice = rank * half;
  const int own_slices = (shares && rank == 0 ? half : ask.slices) - first_slice;
  const int own_rows = shares ? kRows / 2 : kRows;
  const bool gated = kAny && !kAlso ? a.epilogue == Epilogue::gated : U == Use::gated;
  const bool residual = kAny ? a.epilogue == Epilogue::residual : kAdds;
  const bool normed = kNormed || (kAny && a.squares != nullptr);
  const bool also_normed = kAlso && a.also.squares != nullptr;
  const HeldMemory<Parts, Tiles> large(shared, ask, own_rows);
  const auto is_second = [&](int s) { return kAlso && s >= ask.first_slices; };
  const auto first_chunk = [&](int s) {
    return (is_second(s) ? s - ask.first_slices : s) * kChunks;
  };
  // Until blocks have asked for their weights nothing else matters. Warps ask for slices by turns,
  // and for whole ones: beyond the edge there are zeros.
  LiveRows live(ask.count, ask.known);
  if (lane == 0 && !helps) {
#pragma unroll 1
    for (int i = warp; i < own_slices; i += ask.workers) {
      const int s = first_slice + i;
      make_barrier(m.full + i, 1 + 32 * Tiles);
      publish_barriers();
      expect_bytes(m.full + i, kChunks * B::kBox);
      copy_once(large.ws + i * kChunks * B::kBox, is_second(s) ? also_w_map : w_map, 0, out0,
                first_chunk(s), m.full + i);
    }
  }
  if (lane == 0 && helps && shares) {
    make_barrier(&m.sent, 1);
    publish_barriers();
    expect_bytes(&m.sent, (ask.slices - own_slices) * own_rows * kOutputs * 4);
  }
  __syncwarp();
  if (shares) begin_in_cluster();
  // What rows are asked for with is worked out before the block meets and before they are there,
  // and kept from being put off.
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
               : "+l"(eight.pieces.from), "+r"(eight.pieces.to), "+l"(eight.pieces.from_half),
                 "+r"(eight.pieces.columns), "+r"(eight.slice), "+r"(eight.row)
               :
               : "memory");
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
  const bool brings = !helps && warp < own_slices * Tiles;
  std::int32_t rows = live.settle();
  asm volatile("" : "+r"(rows));
  begin_kernel();
  if (brings) {
    eight.pieces.template copy<B::kRowBox>(rows - eight.row);
    arrive_when_copied(m.full + eight.slice);
#pragma unroll 1
    for (int task = warp + ask.workers; task < own_slices * Tiles; task += ask.workers) {
      eight = eight_of(task);
      eight.pieces.template copy<B::kRowBox>(rows - eight.row);
      arrive_when_copied(m.full + eight.slice);
    }
  } else if (helps) {
    commit_copies();
    const auto scale = [&](float* by, const float* scales) {
      if (lane < kRows) by[lane] = scales != nullptr && lane < rows ? scales[lane] : 1;
    };
    if (!normed) scale(m.by, a.scale);
    if (kAlso && !also_normed) scale(m.also_by, a.also.scale);
    wait_copies<0>();
  }
  // A warp finishes sixteen outputs of eight rows, and there are as many warps. Two of the rows
  // that it reads at a time are four apart, so that their sums lie in different banks. Where they
  // are and go is worked out while others multiply, by warps that multiply nothing if there are
  // any. Where a product adds to a residual the one that helps norms nothing, and so is the first.
  const int end = kAdds ? ask.workers - warp : helps ? warp : ask.workers - 1 - warp;
  const bool ends = end < Parts * ((own_rows + kRowsOfTile - 1) / kRowsOfTile);
  const std::int32_t columns = gated ? padded_bf16(a.out / 2) : a.out;
  const bool aligned = kLeaves || columns % 2 == 0;
  const bool leaves = kLeaves || (kAlso && a.ahead.rows != nullptr);
  const bool smooth = kAny && a.silu;
  const bool narrow = gated || (kAny && (a.silu || a.rounded));  // what is stored
  Four four;
  int r = 0;
  int o = 0;
  const auto take = [&] {
    const auto eight = static_cast<int>(static_cast<unsigned>(end) / Parts);
    const int part = end - eight * Parts;
    const int own_row = eight * kRowsOfTile + lane / 4 % 2 * 4 + lane / 8;
    const int sums_row = shares ? min(own_row, own_rows - 1) : own_row;
    r = shares ? own_row * 2 + rank : own_row;
    o = part * 16 + lane % 4 * 2;
    const std::int32_t column = gated ? out0 / 2 + part * 8 + lane % 4 * 2 : out0 + o;
    four.sums = shared_address(large.part + sums_row * B::kPartPitch + part * 16 + lane % 4 * 4);
    four.by = shared_address(m.by + sums_row * (shares ? 2 : 1) + rank);
    four.bias = shared_address(m.bias + o);
    four.left = r < rows ? columns - column : 0;
    four.slices = r >= rows ? 0 : kAlso ? ask.first_slices : ask.slices;
    const std::int64_t to = std::int64_t{r} * columns + column;
    four.y = static_cast<std::byte*>(a.y) + to * (narrow ? 2 : 4);
    if (leaves) {
      four.rows = a.ahead.rows + to;
      four.squares = a.ahead.squares + to / kSixteen;
    }
    if (!residual) return;
    const auto* const y = reinterpret_cast<const float*>(four.y);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (aligned) {
        if (four.left > h * 8) four.before[h] = *reinterpret_cast<const float2*>(y + h * 8);
      } else {
        if (four.left > h * 8) four.before[h].x = y[h * 8];
        if (four.left > h * 8 + 1) four.before[h].y = y[h * 8 + 1];
      }
    }
  };
  if (kAdds && ends) take();
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
      const std::uint32_t w = lane_w + i * kChunks * B::kBox + p * 16 * kChunk * 2;
      const std::uint32_t x = lane_x + i * kChunks * B::kRowBox;
      float sum[kTogether][Tiles][4] = {};
      wait_barrier(m.full + i, 0);
      multiply_boxes<B::kBox, B::kRowBox>(sum, w, x);
#pragma unroll
      for (int q = 0; q < kTogether; ++q) {
        float* const part = large.part + s * own_rows * B::kPartPitch + (p + q) * 16;
        if (shares) {
          share_sums<B::kPartPitch>(sum[q], part, rank, &m.sent);
        } else {
          put_sums<B::kPartPitch>(sum[q], part);
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
  if (!kAdds && ends) take();
  std::uint32_t apart = own_rows * B::kPartPitch * 4;  // bytes between slices
  std::uint32_t sent = shared_address(&m.sent);
  asm volatile("" : "+r"(four.sums), "+r"(four.by), "+r"(four.bias), "+r"(four.left), "+l"(four.y));
  asm volatile("" : "+r"(apart), "+r"(four.slices));
  if (kLeaves) asm volatile("" : "+l"(four.rows), "+l"(four.squares));
  if (shares) asm volatile("" : "+r"(sent));
  __syncthreads();
  if (!ends) return;
  if (shares) wait_barrier_at(sent, 0);
  const float by = load_one(four.by);
  const float2 low_bias = load_pair(four.bias);
  const float2 high_bias = load_pair(four.bias + 8 * 4);
  const float4 sum = sum_slices(four.sums, four.slices, apart);
  float2 low = scaled(sum.x, sum.z, by, low_bias);
  float2 high = scaled(sum.y, sum.w, by, high_bias);
  if (kAlso) {
    const float4 also =
        sum_slices(four.sums + ask.first_slices * apart, ask.slices - ask.first_slices, apart);
    const float also_by = m.also_by[r];
    const float* const also_bias = m.also_bias + o;
    low = add(low, scaled(also.x, also.z, also_by, {also_bias[0], also_bias[1]}));
    high = add(high, scaled(also.y, also.w, also_by, {also_bias[8], also_bias[9]}));
  }
  if (gated || smooth) low = {silu(low.x), silu(low.y)};
  if (smooth) high = {silu(high.x), silu(high.y)};
  if (residual) low = add(four.before[0], low), high = add(four.before[1], high);
  if (leaves) leave_four(four, low, high);
  if (narrow) {
    auto* const y = reinterpret_cast<__nv_bfloat16*>(four.y);
    if (gated) return put_pair(y, {low.x * high.x, low.y * high.y}, four.left, true);
    put_pair(y, low, four.left, aligned);
    put_pair(y + 8, high, four.left - 8, aligned);
  } else {
    auto* const y = reinterpret_cast<float*>(four.y);
    put_pair(y, low, four.left, aligned);
    put_pair(y + 8, high, four.left - 8, aligned);
  }
}

Use use_of(const ProductArgs& a) {
  if (a.also.w != nullptr) return Use::also;
  if (a.silu || a.rounded) return Use::any;
  switch (a.epilogue) {
    case Epilogue::store:
      return a.squares == nullptr ? Use::any : Use::store;
    case Epilogue::gated:
      return a.squares == nullptr ? Use::any : Use::gated;
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
  Asking ask{slices_of(a.in) + slices_of(a.also.in), slices_of(a.in)};
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
  const int tasks = std::max(ask.own * Tiles, multiply + sum);
  const int rounds = (tasks + kMostWorkers - 1) / kMostWorkers;
  const int ends = Parts * ((Tiles + ask.split - 1) / ask.split);  // a warp each
  ask.workers = std::max((tasks + rounds - 1) / rounds, ends - 1);
  const std::int64_t bytes = HeldMemory<Parts, Tiles>::bytes(ask);
  constexpr int kSmall = sizeof(HeldSmall<Parts, Tiles>);
  if (bytes + kSmall > s.shared_bytes) return false;
  const CUtensorMap w = wide_boxes_of(args.w, true, a.stored, a.pitch, B::kOutputs, kSliceBf16);
  const CUtensorMap also_w =
      use == Use::also
          ? wide_boxes_of(args.also.w, true, a.stored, args.also.pitch, B::kOutputs, kSliceBf16)
          : w;
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
  // What nobody asks for has no code here.
  if (a.also.w != nullptr && a.epilogue == Epilogue::gated) return false;
  if (a.ahead.rows != nullptr && use_of(a) == Use::any) return false;
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
