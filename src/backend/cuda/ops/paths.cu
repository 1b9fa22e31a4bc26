// SPDX-License-Identifier: Apache-2.0
// Coherent paths of Toto 1.0: how the steps of a patch go together, and draws that do
// (backend/path_ops.h).
#include <algorithm>
#include <type_traits>

#include "backend/cuda/ops/correlations.cuh"
#include "backend/cuda/ops/paths.h"
#include "backend/cuda/runtime/live.h"
#include "backend/cuda/runtime/warp.cuh"
#include "backend/cuda/statistics/drawn_mixture.h"
#include "backend/path_scores.h"
#include "statistics/normal.h"

namespace toto::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kSide = 8;  // threads of a mixture
constexpr int kMixtures = kThreads / kSide;
/// Threads of a block whose trajectories have a mixture in common: half of its groups find no
/// anchor, so that fewer blocks find them.
constexpr int kSharedThreads = 256;
constexpr int kSharedMixtures = kSharedThreads / kSide;
constexpr std::int64_t kManyThreads = 2048 * kThreads;  // that keep the device busy

/// The terms of `kCount` threads of a block, and what they are made with: in shared memory, so that
/// more threads have room in registers.
template <int kOwn, int kCount>
struct Memory {
  float terms[kOwn > 0 ? kOwn : 1][drawn::kTerms][kCount];
  float weights[drawn::kWeights];

  __device__ void begin() {
    const auto i = static_cast<int>(threadIdx.x);
    if (i < drawn::kWeights) weights[i] = drawn::alternating_weight(i);
    __syncthreads();
  }
};

/// So many thread blocks of a processor have room for their terms, and are to have registers.
template <int kOwn, int kCount = kThreads>
constexpr int kBlocks = (kOwn > 3 ? 4 : 6) * kThreads / kCount;

/// Neighbouring lanes of a warp; all groups of a warp do everything at the same time. Of a block
/// of `kBlock` threads; with `kAlike` all its groups have the same mixture, and those of a warp
/// keep its terms once, unless each makes them again and again.
template <int kOwn, int kBlock = kThreads, bool kAlike = false>
struct Side {
  static constexpr int kThreads = kSide;
  static constexpr bool kOnce = kAlike && kOwn > 0;
  using Terms = Memory<kOwn, kOnce ? kBlock / 32 * kSide : kBlock>;
  Terms* memory;

  __device__ float& term(int i, int k) const {
    const auto at = static_cast<int>(threadIdx.x);
    return memory->terms[i][k][kOnce ? at / 32 * kSide + thread() : at];
  }
  [[nodiscard]] __device__ const float* weights() const { return memory->weights; }
  static __device__ int thread() { return static_cast<int>(threadIdx.x) % kSide; }
  static __device__ float sum(float v) { return sum_of_lanes<kSide>(v); }
  static __device__ float highest(float v) { return highest_of_lanes<kSide>(v); }
  static __device__ bool all(bool v) { return __all_sync(~0U, v) != 0; }
};

/// Calls run() with the components of a thread, as drawn::Mixture takes them.
template <typename Run>
void with_own(std::int32_t components, const Run& run) {
  if (components <= kSide) return run(std::integral_constant<int, 1>{});
  if (components <= 2 * kSide) return run(std::integral_constant<int, 2>{});
  if (components <= 3 * kSide) return run(std::integral_constant<int, 3>{});
  if (components <= 4 * kSide) return run(std::integral_constant<int, 4>{});
  run(std::integral_constant<int, 0>{});
}

/// The normal score of what came after each forecast that is looked at: [rows][P], NaN where it is
/// missing.
template <int kOwn>
__global__ void __launch_bounds__(kThreads)
    score_steps(const LiveBatch* live, PatchShape shape, Forecasts f, double* scores) {
  __shared__ typename Side<kOwn>::Terms memory;
  memory.begin();
  begin_kernel();
  const std::int32_t patch = shape.patch;
  const std::int64_t cell =
      std::int64_t{blockIdx.x} * kMixtures + static_cast<std::int32_t>(threadIdx.x) / kSide;
  bool there = cell < std::int64_t{live->rows} * patch;
  if (there) {
    const auto row = static_cast<std::int32_t>(cell / patch);
    const Block& b = live->blocks[block_of_row(*live, row)];
    const paths::Looked looked = paths::looked_at(b);
    const std::int32_t token = (row - b.row) % b.tokens;
    there = token >= looked.first && token < looked.first + looked.used;
  }
  if (__any_sync(~0U, there) == 0) return;
  const std::int64_t at = there ? cell : 0;
  const drawn::Mixture<Side<kOwn>, kOwn> mixture({&memory}, f.params + at * 4 * shape.components,
                                                 shape.components);
  const float x = there ? (f.x[at + patch] - f.loc[at]) / f.scale[at] : 0;
  const drawn::Tails tails = mixture.tails(x);
  if (!there || Side<kOwn>::thread() != 0) return;
  const double z = normal_score(static_cast<double>(tails.lower), static_cast<double>(tails.upper));
  const bool seen = f.mask[at + patch] != 0;
  scores[at] = !seen                   ? NAN
               : z < -paths::kMaxScore ? -paths::kMaxScore
               : z > paths::kMaxScore  ? paths::kMaxScore
                                       : z;
}

/// A thread block for each lane. It is short, and what comes next has something to do before it
/// waits.
__global__ void __launch_bounds__(kThreads)
    correlations(const LiveBatch* live, std::int32_t patch, const double* scores, float* rho) {
  let_next_begin();
  await_previous();
  const auto lane = static_cast<std::int32_t>(blockIdx.x);
  if (lane >= live->lanes) return;
  const Block& b = live->blocks[block_of_lane(*live, lane)];
  const paths::Looked looked = paths::looked_at(b);
  const std::int64_t row = b.row + std::int64_t{lane - b.lane} * b.tokens + looked.first;
  float* const own = rho + std::int64_t{lane} * patch;
  correlate<paths::Neighbours, kThreads>(scores + row * patch, looked.used, patch, own,
                                         [] { __syncthreads(); });
  if (threadIdx.x == 0) own[patch - 1] = 0;
}

/// A warp for each lane: the normal scores of its steps, to y [lanes][P]. Short as well. The first
/// normals are drawn before it waits, if the batch is `known` (Stream::calls_known).
__global__ void __launch_bounds__(kThreads)
    chains(const LiveBatch* live, const LiveBatch* source, bool known, PatchShape shape,
           const float* rho, float* y) {
  let_next_begin();
  if (!known) await_previous();
  const std::int32_t patch = shape.patch;
  const std::int32_t lane =
      static_cast<std::int32_t>(blockIdx.x) * kWarps + static_cast<std::int32_t>(threadIdx.x) / 32;
  if (lane >= live->lanes) return await_previous();
  const std::int32_t k = static_cast<std::int32_t>(threadIdx.x) % 32;
  const std::int32_t i = block_of_lane(*live, lane);
  const Block& b = live->blocks[i];
  const std::int32_t own = lane - b.lane;
  const std::int32_t variate = own % b.variates;
  const float* const from = rho + (std::int64_t{source->blocks[i].lane} + variate) * patch;
  double before = 0;
  for (std::int32_t first = 0; first < patch; first += 32) {
    const std::int32_t s = first + k;
    const bool drawn = s < shape.steps;
    const double normal =
        drawn ? paths::normal_at(b, variate, b.first_sample + own / b.variates, b.first_step + s)
              : 0;
    if (first == 0) await_previous();
    // z = a z' + c, and what several of these in a row make.
    double a = drawn && s > 0 ? static_cast<double>(from[s - 1]) : 0;
    double c = sqrt(1 - a * a) * normal;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const double a_before = __shfl_up_sync(~0U, a, offset);
      const double c_before = __shfl_up_sync(~0U, c, offset);
      if (k < offset) continue;
      c = a * c_before + c;
      a *= a_before;
    }
    const double z = a * before + c;
    before = __shfl_sync(~0U, z, 31);
    if (s < patch) y[std::int64_t{lane} * patch + s] = drawn ? static_cast<float>(z) : 0;
  }
}

/// Scores become values, in place: a group of threads for each step of each lane.
template <int kOwn>
__global__ void __launch_bounds__(kThreads, kBlocks<kOwn>)
    draws(const LiveBatch* live, PatchShape shape, Mixtures m, float* y) {
  __shared__ typename Side<kOwn>::Terms memory;
  memory.begin();
  begin_kernel();
  const std::int64_t cells = std::int64_t{live->lanes} * shape.steps;
  std::int64_t cell =
      std::int64_t{blockIdx.x} * kMixtures + static_cast<std::int32_t>(threadIdx.x) / kSide;
  const bool there = cell < cells;
  if (__any_sync(~0U, there) == 0) return;
  if (!there) cell = cells - 1;
  const std::int64_t at = cell / shape.steps * shape.patch + cell % shape.steps;
  const drawn::Mixture<Side<kOwn>, kOwn> mixture({&memory}, m.params + cell * 4 * shape.components,
                                                 shape.components);
  const float value = mixture.at_score(y[at]);
  if (there && Side<kOwn>::thread() == 0) y[at] = paths::tame(value * m.scale[at] + m.loc[at]);
}

/// Quantiles of a mixture at kAnchors scores. Those of other scores are about cubic between them,
/// so that a search which begins there mostly ends at once.
class Anchors {
 public:
  /// By all threads of a block, of whose groups the first find one each.
  template <typename Of>
  __device__ void find(const Of& mixture) {
    const int group = static_cast<int>(threadIdx.x) / kSide;
    if (group < kAnchors) {
      values_[group] = mixture.at_score(kFirst + kApart * static_cast<float>(group));
    }
    __syncthreads();
  }
  /// About where the quantile of Phi(z) is.
  template <typename Of>
  [[nodiscard]] __device__ float guess(const Of& mixture, float z) const {
    const float place = (z - kFirst) * (1 / kApart);
    if (!(place >= 0 && place <= kAnchors - 1)) return mixture.guess(z);
    const int i = min(max(static_cast<int>(place), 1), kAnchors - 3);
    const float t = place - static_cast<float>(i);
    // Lagrange's polynomial through the neighbours at -1, 0, 1 and 2.
    const float outer = t * (t - 1) * (1.0F / 6), inner = (t + 1) * (t - 2) * 0.5F;
    return outer * ((t + 1) * values_[i + 2] - (t - 2) * values_[i - 1]) +
           inner * ((t - 1) * values_[i] - t * values_[i + 1]);
  }

 private:
  static constexpr int kAnchors = 16;
  static constexpr float kFirst = -3, kApart = 0.4F;
  float values_[kAnchors];
};

/// The same where trajectories have a context in common: a thread block for a step of a lane of
/// `shared` and some of its trajectories.
template <int kOwn>
__global__ void __launch_bounds__(kSharedThreads, kBlocks<kOwn, kSharedThreads>)
    shared_draws(const LiveBatch* live, const LiveBatch* shared, PatchShape shape, Mixtures m,
                 float* y) {
  using Own = Side<kOwn, kSharedThreads, true>;
  __shared__ typename Own::Terms memory;
  __shared__ Anchors anchors;
  memory.begin();
  begin_kernel();
  const std::int64_t cell = blockIdx.x;
  if (cell >= std::int64_t{shared->lanes} * shape.steps) return;
  const auto from = static_cast<std::int32_t>(cell / shape.steps);
  const auto step = static_cast<std::int32_t>(cell % shape.steps);
  const std::int64_t at = std::int64_t{from} * shape.patch + step;
  const float loc = m.loc[at];
  const float scale = m.scale[at];
  const std::int32_t i = block_of_lane(*shared, from);
  const Block& b = live->blocks[i];
  const auto first = static_cast<std::int32_t>(blockIdx.y) * kSharedMixtures;
  if (first >= b.trajectories) return;
  const drawn::Mixture<Own, kOwn> mixture({&memory}, m.params + cell * 4 * shape.components,
                                          shape.components);
  anchors.find(mixture);
  float* const own =
      y + (std::int64_t{b.lane} + from - shared->blocks[i].lane) * shape.patch + step;
  const std::int64_t each = std::int64_t{b.variates} * shape.patch;  // to the next trajectory
  const auto group = static_cast<std::int32_t>(threadIdx.x) / kSide;
  const auto stride = static_cast<std::int32_t>(gridDim.y) * kSharedMixtures;
  for (std::int32_t n = first; n < b.trajectories; n += stride) {
    const bool wanted = n + group < b.trajectories;
    float* const to = own + (wanted ? n + group : 0) * each;
    const float z = wanted ? *to : 0;
    const float value = mixture.at_score(z, anchors.guess(mixture, z));
    if (wanted && Own::thread() == 0) *to = paths::tame(value * scale + loc);
  }
}

}  // namespace

void neighbours(const Batch& context, const PatchShape& shape, const Forecasts& f, double* scores,
                float* rho, const Stream& s) {
  const std::int64_t cells = std::int64_t{context.rows} * shape.patch;
  with_own(shape.components, [&](auto own) {
    launch(score_steps<decltype(own)::value>, dim3(ceil_div(cells, kMixtures)), dim3(kThreads), 0,
           s, context.live, shape, f, scores);
  });
  launch(correlations, dim3(static_cast<unsigned>(context.lanes)), dim3(kThreads), 0, s,
         context.live, shape.patch, scores, rho);
  s.know_calls();  // score_steps waits for batches before it lets the next begin
}

void draw_paths(const Batch& batch, const Batch* shared, const Batch& source,
                const PatchShape& shape, const Mixtures& m, const float* rho, float* y,
                const Stream& s) {
  launch(chains, dim3(ceil_div(batch.lanes, kWarps)), dim3(kThreads), 0, s, batch.live, source.live,
         s.calls_known(), shape, rho, y);
  if (shared == nullptr) {
    const dim3 grid(ceil_div(std::int64_t{batch.lanes} * shape.steps, kMixtures));
    with_own(shape.components, [&](auto own) {
      launch(draws<decltype(own)::value>, grid, dim3(kThreads), 0, s, batch.live, shape, m, y);
    });
    return;
  }
  // Parts of the trajectories where steps alone are too few.
  const std::int64_t cells = std::max<std::int64_t>(std::int64_t{shared->lanes} * shape.steps, 1);
  const std::int64_t most = ceil_div(batch.lanes, std::int64_t{shared->lanes} * kSharedMixtures);
  const std::int64_t parts =
      std::clamp<std::int64_t>(kManyThreads / kSharedThreads / cells, 1, most);
  const dim3 grid(static_cast<unsigned>(cells), static_cast<unsigned>(parts));
  with_own(shape.components, [&](auto own) {
    launch(shared_draws<decltype(own)::value>, grid, dim3(kSharedThreads), 0, s, batch.live,
           shared->live, shape, m, y);
  });
}

}  // namespace toto::cuda
