// SPDX-License-Identifier: Apache-2.0
// The scalers of spec A4 in float64. Counts, sums and means have the bits of the sequential scaler
// (backend/reference/scaler.h): their running sums are chains, each formed by one thread unless
// they are exact (exact_sums.cuh). Where only the end of a patch is asked for, squares are summed
// in groups of 32 steps first, since a chain over a whole context takes microseconds; m2 then
// agrees to about n 2^-53, loc to the bit and scale to one ulp of float32. All threads form what
// lies between the sums (means, increments, divisions, roots).
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cuda/ops/scaler.h"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/statistics/exact_sums.cuh"
#include "toto/error.hpp"

namespace toto::cuda {
namespace {

constexpr int kThreads = 512;
static_assert(kThreads <= 32 * kMaxScanWarps);
constexpr int kFewThreads = 64;  // for a patch at a time
constexpr int kUsual = 1024;     // steps in shared memory at a time, if more are not needed
constexpr double kMinimumScale = 0.1;
constexpr double kMinimumScaleGlobal = 0.001;

struct Spec {
  ScalerSpec::Kind kind;
  std::int32_t patch;
  bool stabilize;
  double up, down;  // 10^exponent and its inverse, as the host forms them
};

/// Room for `most` steps in shared memory.
struct Chunk {
  /// Of so many steps: whole sixteens.
  static constexpr std::size_t bytes(std::int64_t room) {
    return (static_cast<std::size_t>(room) * kBytes + 15) / 16 * 16;
  }
  static constexpr int kBytes = 4 * sizeof(double) + sizeof(float) + sizeof(std::int32_t) + 1;

  double* sum;
  double* m2;
  double* square;
  double* mean;
  float* x;
  std::int32_t* count;
  std::uint8_t* valid;

  __device__ Chunk(double* shared, std::int32_t most)
      : sum(shared),
        m2(sum + most),
        square(m2 + most),
        mean(square + most),
        x(reinterpret_cast<float*>(mean + most)),
        count(reinterpret_cast<std::int32_t*>(x + most)),
        valid(reinterpret_cast<std::uint8_t*>(count + most)) {}
};

/// Running sums of v in place, in order; returns the last. A chain of additions: what comes next is
/// read while it goes on. `v` is aligned to sixteen bytes.
template <typename T>
__device__ T run_up(T* v, std::int32_t n, T sum) {
  struct alignas(16) Words {
    T term[16 / sizeof(T)];
  };
  constexpr int kWide = 16 / sizeof(T);
  constexpr int kWords = 4;
  constexpr int kAhead = kWords * kWide;
  auto* const words = reinterpret_cast<Words*>(v);
  const std::int32_t whole = n / kAhead;
  Words next[kWords];
#pragma unroll
  for (int j = 0; j < kWords; ++j) {
    if (whole > 0) next[j] = words[j];
  }
#pragma unroll 1
  for (std::int32_t i = 0; i < whole; ++i) {
    Words own[kWords];
#pragma unroll
    for (int j = 0; j < kWords; ++j) own[j] = next[j];
    const std::int32_t following = min(i + 1, whole - 1) * kWords;
#pragma unroll
    for (int j = 0; j < kWords; ++j) next[j] = words[following + j];
#pragma unroll
    for (int j = 0; j < kWords; ++j) {
#pragma unroll
      for (int e = 0; e < kWide; ++e) own[j].term[e] = sum += own[j].term[e];
      words[i * kWords + j] = own[j];
    }
  }
  for (std::int32_t i = whole * kAhead; i < n; ++i) v[i] = sum += v[i];
  return sum;
}

/// Squares are summed in groups: the first 32 steps of a patch, the next 32, ... Terms that a group
/// lacks are 0. A group is summed by halves (term i and the one 16 after it, ...), then the groups
/// in order.
constexpr std::int32_t kGroup = 32;
struct Groups {
  std::int32_t patch, of_patch;
  __device__ explicit Groups(std::int32_t steps)
      : patch(steps), of_patch((steps + kGroup - 1) / kGroup) {}
  /// Of n steps.
  [[nodiscard]] __device__ std::int32_t count(std::int32_t n) const { return n / patch * of_patch; }
};
static_assert(kGroup == 32);  // each lane of a warp has a term

/// Sums of the groups of n steps, by all warps: of the two values of term(i) to a and b.
template <typename Term>
__device__ void sum_groups(const Groups& groups, std::int32_t n, double* a, double* b,
                           const Term& term) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int32_t g = static_cast<std::int32_t>(threadIdx.x) / 32; g < groups.count(n);
       g += static_cast<std::int32_t>(blockDim.x) / 32) {
    const std::int32_t in_patch = g % groups.of_patch * 32 + lane;
    const bool there = in_patch < groups.patch;
    double2 v = there ? term(g / groups.of_patch * groups.patch + in_patch) : double2{0, 0};
    v = {sum_of_lanes(v.x), sum_of_lanes(v.y)};
    if (lane == 0) {
      a[g] = v.x;
      b[g] = v.y;
    }
  }
}

/// `sum` and the first `count` sums of groups, in order.
__device__ double add_groups(double sum, const double* of_groups, std::int32_t count) {
#pragma unroll 8
  for (std::int32_t i = 0; i < count; ++i) sum += of_groups[i];
  return sum;
}

__device__ double larger(double a, double b) { return a < b ? b : a; }
__device__ double smaller(double a, double b) { return b < a ? b : a; }

__device__ double nan_to_zero(double v) {
  if (isnan(v)) return 0;
  constexpr double kMax = std::numeric_limits<double>::max();
  return v < -kMax ? -kMax : kMax < v ? kMax : v;
}

__device__ std::int32_t first_thread() { return static_cast<std::int32_t>(threadIdx.x); }
__device__ std::int32_t all_threads() { return static_cast<std::int32_t>(blockDim.x); }

/// Values, and the terms of their sum and count. Returns the powers that those lie between which
/// this thread took.
__device__ Powers load(const Chunk& c, const float* x, const std::uint8_t* mask, std::int32_t n) {
  Powers powers;
  for (std::int32_t i = first_thread(); i < n; i += all_threads()) {
    const float v = x[i];
    const std::uint8_t valid = mask[i];
    c.x[i] = v;
    c.valid[i] = valid;
    c.sum[i] = valid != 0 ? static_cast<double>(v) : 0;
    c.count[i] = valid != 0 ? 1 : 0;
    if (valid != 0) powers.take(v);
  }
  __syncthreads();
  return powers;
}

/// The clamp or the statistics of the whole context, once its mean square is known.
__device__ void take_global(ScalerState& state, const Spec& spec, double mean, double variance) {
  if (spec.kind == ScalerSpec::Kind::causal_patch) {
    const double global = sqrt(variance + kMinimumScale);
    state.lower =
        larger(static_cast<double>(static_cast<float>(kMinimumScale)), global * spec.down);
    state.upper = global * spec.up;
  } else {
    state.loc = mean;
    state.scale = sqrt(variance + kMinimumScaleGlobal);
  }
}

/// Over a context that does not fit into one chunk.
__device__ void context_in_chunks(const Chunk& c, std::int32_t most, ScalerState& state,
                                  const Spec& spec, const float* x, const std::uint8_t* mask,
                                  std::int32_t steps) {
  __shared__ double carried;
  __shared__ std::int32_t valid;
  const Groups groups(spec.patch);
  if (threadIdx.x == 0) carried = 0;
  if (threadIdx.x == 32) valid = 0;
  __syncthreads();
  for (std::int32_t base = 0; base < steps; base += most) {
    const std::int32_t n = min(most, steps - base);
    load(c, x + base, mask + base, n);
    if (threadIdx.x == 0) carried = run_up(c.sum, n, carried);
    if (threadIdx.x == 32) valid = run_up(c.count, n, valid);
    __syncthreads();
  }
  const double count = larger(valid, 1.0);
  const double mean = nan_to_zero(carried / count);
  __syncthreads();  // all have read it, also where there is no step
  double squares = 0;
  for (std::int32_t base = 0; base < steps; base += most) {
    const std::int32_t n = min(most, steps - base);
    sum_groups(groups, n, c.square, c.m2, [&](std::int32_t i) {
      const double d = static_cast<double>(x[base + i]) - mean;
      return double2{mask[base + i] != 0 ? d * d : 0, 0};
    });
    __syncthreads();
    squares = add_groups(squares, c.square, groups.count(n));
    __syncthreads();
  }
  take_global(state, spec, mean, squares / count);
}

/// Sums of a chunk: of values up to each step; of squares up to each step, or of each group;
/// `global`: also what the squares about the mean of the first `context` steps give, all of which
/// are in this chunk.
__device__ void sums(const Chunk& c, ScalerState& state, const Spec& spec, const Powers& powers,
                     std::int32_t n, bool global, std::int32_t context) {
  __shared__ ScanShared scan;
  const auto count = static_cast<std::int32_t>(state.count);
  if (state.sum != 0 || !run_up_if_exact(powers, c.sum, c.count, n, count, scan)) {
    if (threadIdx.x == 0) run_up(c.sum, n, state.sum);
    if (threadIdx.x == 32) run_up(c.count, n, count);
    __syncthreads();
  }
  for (std::int32_t i = first_thread(); i < n; i += all_threads()) {
    c.mean[i] = c.sum[i] / larger(c.count[i], 1.0);
  }
  __syncthreads();
  const auto increment = [&](std::int32_t i) {
    const auto x = static_cast<double>(c.x[i]);
    const double before = i == 0 ? state.mean : c.mean[i - 1];
    return c.valid[i] != 0 ? (x - before) * (x - c.mean[i]) : 0;
  };
  if (spec.kind == ScalerSpec::Kind::causal_step) {
    for (std::int32_t i = first_thread(); i < n; i += all_threads()) c.m2[i] = increment(i);
    __syncthreads();
    if (threadIdx.x == 0) run_up(c.m2, n, state.m2);
    __syncthreads();
    return;
  }
  const double context_mean = global && context > 0 ? nan_to_zero(c.mean[context - 1]) : 0;
  const Groups groups(spec.patch);
  sum_groups(groups, n, c.m2, c.square, [&](std::int32_t i) {
    const double d = static_cast<double>(c.x[i]) - context_mean;
    return double2{increment(i), c.valid[i] != 0 && i < context ? d * d : 0};
  });
  __syncthreads();
  if (!global) return;
  const double squares = add_groups(0, c.square, groups.count(context));
  const double context_count = context > 0 ? larger(c.count[context - 1], 1.0) : 1.0;
  take_global(state, spec, context_mean, squares / context_count);
}

/// ScalerOutputs as the kernel takes them.
struct Scaled {
  float *values, *loc, *scale, *last_loc, *last_scale;
};

/// A block of threads for each lane. If anything has arrived, live, x and mask lie in it.
__global__ void __launch_bounds__(kThreads)
    scale_lanes(const LiveBatch* live, Spec spec, const float* x, const std::uint8_t* mask,
                ScalerState* states, Scaled to, std::int32_t room, Arrival arrival) {
  extern __shared__ double shared[];
  const Chunk c(shared, room);
  begin_kernel();
  std::byte* const image = reinterpret_cast<std::byte*>(shared) + Chunk::bytes(room);
  if (arrival.bytes > 0) take_arrival(arrival, image);
  live = arrived(live, arrival, image);
  x = arrived(x, arrival, image);
  mask = arrived(mask, arrival, image);
  const auto lane = static_cast<std::int32_t>(blockIdx.x);
  if (lane >= live->lanes) return;
  const Block* const blocks = arrived(live->blocks, arrival, image);
  const Block b = blocks[block_of_lane(live->count, live->lanes, blocks, lane)];
  const std::int32_t patch = spec.patch;
  const std::int64_t start =
      (b.row + std::int64_t{lane - b.lane} * b.tokens) * patch;  // of this lane's rows
  const std::int32_t labels = b.labels * patch;
  const std::int32_t last = (b.tokens - 1) * patch;  // the first step of the last token
  const auto put = [&](std::int32_t i, float value, float loc, float scale) {
    to.values[start + i] = value;
    to.loc[start + i] = loc;
    to.scale[start + i] = scale;
    if (i < last) return;
    to.last_loc[std::int64_t{lane} * patch + (i - last)] = loc;
    to.last_scale[std::int64_t{lane} * patch + (i - last)] = scale;
  };
  for (std::int32_t i = first_thread(); i < labels; i += all_threads()) put(i, 0, 0, 1);
  const std::int64_t at = start + labels;
  const std::int32_t steps = (b.tokens - b.labels) * patch;
  const std::int32_t context = min(b.context * patch, steps);
  const std::int32_t most = room / patch * patch;
  const bool causal = spec.kind != ScalerSpec::Kind::global;
  const bool global = b.position == 0 && (!causal || spec.stabilize);

  ScalerState state;  // every thread carries its copy
  if (b.position > 0) {
    state = states[lane];
  } else {
    state.upper = std::numeric_limits<double>::infinity();
    if (global && (steps > most || !causal)) {
      context_in_chunks(c, most, state, spec, x + at, mask + at, context);
    }
  }
  for (std::int32_t base = 0; base < steps; base += most) {
    const std::int32_t n = min(most, steps - base);
    if (causal) {
      const Powers powers = load(c, x + at + base, mask + at + base, n);
      sums(c, state, spec, powers, n, global && steps <= most, context);
    }
    const Groups groups(patch);
    std::int32_t added = 0;  // groups that are in state.m2
    // The statistics that step i is scaled with, and what they are formed of; i never falls.
    const auto take = [&](std::int32_t i) {
      if (!causal) return;
      std::int32_t from = i;
      if (spec.kind == ScalerSpec::Kind::causal_patch) {  // A4.7: the patch's last step for all
        const std::int32_t patches = i / patch + 1;
        from = patches * patch - 1;
        state.m2 = add_groups(state.m2, c.m2 + added, patches * groups.of_patch - added);
        added = patches * groups.of_patch;
      } else {
        state.m2 = c.m2[i];
      }
      state.count = c.count[from];
      state.sum = c.sum[from];
      state.mean = c.mean[from];
      const double root = sqrt(state.m2 / larger(state.count - 1, 1.0) + kMinimumScale);
      state.loc = state.mean;
      state.scale = smaller(larger(root, state.lower), state.upper);
    };
    for (std::int32_t i = first_thread(); i < n; i += all_threads()) {
      take(i);
      const auto loc = static_cast<float>(state.loc);
      const auto scale = static_cast<float>(state.scale);
      put(labels + base + i, (x[at + base + i] - loc) / scale, loc, scale);
    }
    if (base + n >= steps) {  // who has the last step has what is carried on
      if (first_thread() == (n - 1) % all_threads()) states[lane] = state;
      return;
    }
    take(n - 1);
    __syncthreads();
  }
  if (first_thread() == 0) states[lane] = state;  // a lane without a step
}

__global__ void repeat_states(const LiveBatch* source, const LiveBatch* live,
                              const ScalerState* from, ScalerState* to) {
  begin_kernel();
  const auto lane = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (lane >= live->lanes) return;
  const std::int32_t i = block_of_lane(*live, lane);
  const Block& b = live->blocks[i];
  to[lane] = from[source->blocks[i].lane + (lane - b.lane) % b.variates];
}

}  // namespace

void scale(const Extent& batch, const ScalerSpec& spec, const float* x, const std::uint8_t* mask,
           ScalerState* state, const ScalerOutputs& to, const Arrival& arrival, const Stream& s) {
  if (spec.patch > kUsual) {
    throw Error(ExitStatus::usage, "unsupported_model",
                "the cuda backend has no patches of more than 1024 steps", {}, "use --device cpu");
  }
  const Spec device{spec.kind, spec.patch, spec.stabilize_with_global,
                    std::pow(10.0, spec.exponent), std::pow(10.0, -spec.exponent)};
  // A lane's steps in one piece if they fit: then its sums are formed once. One token each is the
  // case of every patch but the first.
  const bool one_token = batch.rows <= batch.lanes;
  const std::int64_t tokens = ceil_div(batch.rows, std::max(batch.lanes, 1));
  const std::int64_t wanted =
      one_token ? spec.patch : std::max<std::int64_t>(kUsual, tokens * spec.patch);
  const auto room = static_cast<std::int32_t>(std::min<std::int64_t>(
      (wanted + 7) / 8 * 8,
      (s.shared_bytes - 1024 - static_cast<int>(arrival.bytes)) / Chunk::kBytes / 8 * 8));
  const std::size_t bytes = Chunk::bytes(room) + arrival.bytes;
  allow_shared_memory<scale_lanes>(bytes);
  launch(scale_lanes, dim3(static_cast<unsigned>(batch.lanes)),
         dim3(one_token ? kFewThreads : kThreads), bytes, s, batch.live, device, x, mask, state,
         Scaled{typed<float>(to.values), typed<float>(to.loc), typed<float>(to.scale),
                typed<float>(to.last_loc), typed<float>(to.last_scale)},
         room, arrival);
}

void repeat_state(const Extent& source, const Extent& batch, const ScalerState* from,
                  ScalerState* to, const Stream& s) {
  launch(repeat_states, dim3(ceil_div(batch.lanes, 128)), dim3(128), 0, s, source.live, batch.live,
         from, to);
}

}  // namespace toto::cuda
