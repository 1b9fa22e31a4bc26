// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/tensor_map.h"
#include "layers.h"
#include "layers_after.cuh"
#include "layers_attend.cuh"
#include "layers_bf16.cuh"
#include "layers_embed.cuh"
#include "layers_f32.cuh"
#include "layers_work.cuh"

namespace toto::cuda {
namespace layers {
namespace {

constexpr int kThreads = kWorkers + 64;  // then a warp that streams, and one that helps

/// By one thread: weights of all units of this block, in the order in which they are worked on.
template <typename T>
__device__ void stream_weights(Shared<T>& s, const Arguments& a) {
  Cursor<kRingStages> at;
  Cursor<kRingStages> before;
  Turn turn;
  int number = 0;  // of stages
  const auto send = [&](const auto& copy) {
    // One stage at a time, but for the first two: more of them would be in the way of what blocks
    // say to each other.
    if (number > 1) s.ring.wait_full(before);
    before = at;
    if constexpr (T::kReleasesLate) {
      s.ring.claim(at, number);
    } else {
      s.ring.claim(at);
    }
    ++number;
    copy(s.stages + at.stage * kStageBytes, &s.ring.full[at.stage]);
    at.advance();
  };
  int unit = 0;
#pragma unroll 1
  for (int layer = 0; layer < a.count; ++layer) {
    const LayerOnDevice& l = a.layers[layer];
#pragma unroll 1
    for (int p = 0; p < kProducts; ++p) {
      const int count = turn.take(s.deals[p], unit);
#pragma unroll 1
      for (int i = 0; i < count; ++i) {
#pragma unroll 1
        for (int stage = 0; stage < stages_of(p); ++stage) {
          send([&](void* to, std::uint64_t* full) { T::stream(to, l.maps[p], unit, stage, full); });
        }
        unit += static_cast<int>(gridDim.x);
      }
    }
  }
  const int count = turn.take(s.deals[kAfter], unit);
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    send([&](void* to, std::uint64_t* full) {
      Float32::stream(to, a.layers[a.count].maps[0], unit, 0, full);
    });
    unit += static_cast<int>(gridDim.x);
  }
}

template <typename T>
__device__ void attend(Shared<T>& s, const Arguments& a, int layer, Progress<T>& progress) {
  const bool trims = layer == a.last_time;
  if (own_row() < progress.rows) {
    const SightKind kind = s.vectors[layer].space == 0 ? kInTime
                           : layer > a.last_time       ? kOfLastVariates
                                                       : kOfVariates;
    const Sight sight = s.sights[kind];  // in registers: there it would be read for every poll
    const int out = trims ? sight.last_out : sight.out;
    float* const to = wire_of(s.wires, layer, kAttendedWire) +
                      T::word_at(out, own_head() * kHead + thread_now() % 32 * 2);
    attend_row(s.attention, wire_of(s.wires, layer, kQkvWire), sight, a.keys[layer],
               a.values[layer], out >= 0, [&](float v, float w) { T::put_inputs(to, v, w); });
  }
  if (trims) progress.rows = s.last_rows;
}

/// What this block attends with in the layers of each kind, and what goes on after the last time
/// layer: by a warp.
template <typename T>
__device__ void look_around(Shared<T>& s, const Arguments& a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < kSights) {
    const LiveBatch& live = lane == kOfLastVariates ? *a.last : *a.all;
    if (own_row() < live.rows) {
      s.sights[lane] = lane == kInTime ? sight_in_time(live, own_row(), own_head())
                                       : sight_of_variates(live, own_row());
    }
  }
  static_assert(kSights + kFewRows <= 32);
  const int row = lane - kSights;
  if (row >= 0 && a.last_time < a.count && row < a.last->rows) s.before[row] = row_before(a, row);
  __syncwarp();
  if (own_row() < a.all->rows) prepare_turns(s.attention, a.rotary, s.sights[kInTime]);
}

/// What a warp does beside those that compute: this block's share of biases and gains, as far as
/// the cache, and of the next launch's wires; and what attention has to know. Then the next kernel
/// may begin, which can count on all that ran before this one and on knowing this one's wires.
template <typename T>
__device__ void help(Shared<T>& s, const Arguments& a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int layer = 0; layer < a.count; ++layer) prefetch(s.vectors[layer], lane, 32);
  await_previous();
  const float* const wires = own_wires(a);
  look_around(s, a);
  __syncwarp();
  asm volatile("bar.arrive 2, %0;" ::"n"(kWorkers + 32) : "memory");
  if (blockIdx.x == 0) {
    if (lane == 0) a.set[1] = wires == a.wires ? 0 : 1;
    __threadfence();
    __syncwarp();
  }
  let_next_begin();
  const int words = set_words(a.count);
  clear(wires == a.wires ? a.wires + words : a.wires, words, lane, 32);
}
/// Until the workers have ended, by a warp that has nothing else to do: a tensor core step now and
/// then. Where steps come in bursts only, the clock of each part of the device goes up and down by
/// itself, 1.70 to 1.87 GHz, and all wait for the slowest; so it is 1.80 everywhere.
__device__ void keep_clock_steady(const Ring& ring) {
  constexpr int kPause = 300;  // cycles
  float sum[4] = {};
  const std::uint32_t zeros[4] = {};
  while (__any_sync(~0U, ring.ended()) == 0) {  // all of the warp take the step, or none
    multiply_add(sum, zeros, 0, 0);
    for (const std::int64_t from = clock64(); clock64() - from < kPause;) {
    }
  }
  if (sum[0] != 0) __trap();  // never; but a step whose sums nobody reads would not be taken
}
__device__ void await_help() { asm volatile("bar.sync 2, %0;" ::"n"(kWorkers + 32) : "memory"); }

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) all_layers(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) std::byte memory[];
  auto& s = *reinterpret_cast<Shared<T>*>(memory);
  if (threadIdx.x == 0) {
    s.ring.initialise(kWorkers / 32);
  }
  if (threadIdx.x < static_cast<unsigned>(a.count)) {
    s.vectors[threadIdx.x] = a.layers[threadIdx.x].vectors;
  }
  if (threadIdx.x <= kAfter) {
    const int p = static_cast<int>(threadIdx.x);
    const int units = p == kAfter ? (a.after.outs + Float32::kOutputs - 1) / Float32::kOutputs
                                  : outs(p) / T::kOutputs;
    const int blocks = static_cast<int>(gridDim.x);
    s.deals[p] = {units / blocks, units % blocks};
  }
  __syncthreads();
  if (threadIdx.x >= kWorkers + 32) {
    help(s, a);
    if constexpr (T::kSteadiesClock) keep_clock_steady(s.ring);
  } else if (threadIdx.x >= kWorkers) {
    if (threadIdx.x == kWorkers) stream_weights(s, a);  // does not wait for what ran before
  } else {
    Progress<T> progress;
    progress.places = typename T::Places(s.stages);
    progress.rows = begin_and_embed<T>(a, s.vectors[0].norm[0]);
    if (threadIdx.x == 0) {
      s.wires = own_wires(a);
      s.last_rows = a.last->rows;
    }
    sync_workers();
#pragma unroll 1
    for (int layer = 0; layer < a.count; ++layer) {
      multiply<T, kQkv>(s, a, layer, progress);
      if (layer == 0) await_help();
      int first = 0;
      const int count = progress.turn.take(s.deals[kOut], first);
      Work<T, kOut> out(s, a, layer, progress, layer == a.last_time ? s.last_rows : progress.rows,
                        first, count);
      attend<T>(s, a, layer, progress);
      if (count > 0) out.carry_out(s, a, layer, progress);
      multiply<T, kMlpIn>(s, a, layer, progress);
      multiply<T, kMlpOut>(s, a, layer, progress);
    }
    multiply_after<T>(s, a, progress);
    if constexpr (T::kSteadiesClock) {
      if (threadIdx.x == 0) s.ring.end();
    }
    // Every block has begun: what this one has taken needed them all.
    if (blockIdx.x == 0 && threadIdx.x == 0) *a.set = s.wires == a.wires ? 1 : 0;
  }
}

/// A stage as a box of the matrix.
CUtensorMap describe(const DeviceMatrix& w) {
  return wide_boxes_of(w.weights, w.bf16, w.stored, w.in,
                       w.bf16 ? Bfloat16::kOutputs : Float32::kOutputs, kDim);
}

bool fits(const Matrix& m, Product p, CudaWeights type) {
  const auto& w = *static_cast<const DeviceMatrix*>(m.weights);
  return w.bf16 == (type == CudaWeights::bf16) && w.operands == operands_of(type) &&
         w.bias != nullptr && w.stored == outs(p) && w.in == ins(p) && w.pitch == w.in;
}

/// On how many processors: on fewer than there are, but not on so few that a block would have more
/// units of the widest product. On the others the kernel before this one runs while the blocks of
/// this one begin, which take up all of theirs, and the next one makes itself ready.
template <typename T>
int blocks_of(const Stream& s) {
  constexpr int kUnits = outs(kMlpIn) / T::kOutputs;
  const int most = s.processors - 1;
  const int rounds = (kUnits + most - 1) / most;
  return std::max((kUnits + rounds - 1) / rounds, kMinProcessors);
}

template <typename T>
void run(const Arguments& arguments, const Stream& s) {
  static_assert(sizeof(Shared<T>) <= Shared<T>::kMaxBytes);
  allow_shared_memory<all_layers<T>>(sizeof(Shared<T>));
  const int blocks = blocks_of<T>(s);
  launch_together(all_layers<T>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                  sizeof(Shared<T>), s, arguments);
}

}  // namespace
}  // namespace layers

bool LayerStack::possible(const StackWeights& weights, CudaWeights type, const Stream& s) {
  using namespace layers;
  constexpr std::size_t kShared = std::max(sizeof(Shared<Float32>), sizeof(Shared<Bfloat16>));
  if (!s.hopper || s.processors < kMinProcessors || s.processors > kMaxProcessors ||
      static_cast<std::size_t>(s.shared_bytes) < kShared) {
    return false;
  }
  const std::span<const LayerWeights> stack = weights.layers;
  if (stack.size() > kMaxLayers || weights.heads != kHeads || weights.head_dim != kHead) {
    return false;
  }
  const bool sizes = std::all_of(stack.begin(), stack.end(), [&](const LayerWeights& l) {
    return fits(l.qkv, kQkv, type) && fits(l.out, kOut, type) && fits(l.mlp_in, kMlpIn, type) &&
           fits(l.mlp_out, kMlpOut, type);
  });
  const bool any_time =
      std::any_of(stack.begin(), stack.end(), [](const LayerWeights& l) { return !l.space; });
  return sizes && any_time && tensor_map_encoder() != nullptr;
}

LayerStack::LayerStack(const StackWeights& weights, CudaWeights type)
    : type_(type), embed_(weights.embed), labels_(weights.labels), after_(weights.after) {
  using namespace layers;
  const std::span<const LayerWeights> stack = weights.layers;
  const auto wire_bytes =
      static_cast<std::size_t>(set_words(static_cast<int>(stack.size()))) * sizeof(float);
  std::vector<LayerOnDevice> all(stack.size() + 1);
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const Matrix* const matrices[kProducts] = {&stack[i].qkv, &stack[i].out, &stack[i].mlp_in,
                                               &stack[i].mlp_out};
    for (int p = 0; p < kProducts; ++p) {
      const auto& w = *static_cast<const DeviceMatrix*>(matrices[p]->weights);
      all[i].maps[p] = describe(w);
      all[i].vectors.bias[p] = w.bias;
    }
    all[i].vectors.norm[0] = typed<float>(stack[i].norm1);
    all[i].vectors.norm[1] = typed<float>(stack[i].norm2);
    all[i].vectors.space = stack[i].space ? 1 : 0;
    space_.push_back(stack[i].space);
  }
  if (multiplies_after()) {
    all.back().maps[0] = describe(*static_cast<const DeviceMatrix*>(after_.weights));
  }
  layers_ = DeviceMemory(all.size() * sizeof(LayerOnDevice), "weights");
  wires_ = DeviceMemory(2 * wire_bytes, "memory");
  set_ = DeviceMemory(2 * sizeof(std::int32_t), "memory");
  check(cudaMemcpy(layers_.get(), all.data(), layers_.bytes(), cudaMemcpyHostToDevice), "weights");
  check(cudaMemset(wires_.get(), 0xFF, wires_.bytes()), "memory");  // kEmptyWord
  check(cudaMemset(set_.get(), 0, set_.bytes()), "memory");
  check(cudaStreamSynchronize(nullptr), "memory");
}

std::unique_ptr<FusedForward> make_fused_forward(const StackWeights& weights, CudaWeights type,
                                                 const Stream& s) {
  if (!LayerStack::possible(weights, type, s)) return nullptr;
  return std::make_unique<LayerStack>(weights, type);
}

std::int32_t LayerStack::max_rows() const { return kFewRows; }

bool LayerStack::embeds() const {
  const auto& w = *static_cast<const DeviceMatrix*>(embed_.weights);
  return !labels_ && w.operands == Operands::split && w.in <= layers::kMaxEmbedded;
}

bool LayerStack::multiplies_after() const {
  const auto& w = *static_cast<const DeviceMatrix*>(after_.weights);
  return w.operands == Operands::split && w.bias != nullptr && w.in == layers::kDim &&
         w.pitch == w.in && after_.out <= layers::kMaxAfter;
}

EarlyWords LayerStack::words_after() const {
  if (!multiplies_after()) return {};
  const auto count = static_cast<int>(space_.size());
  return {static_cast<const float*>(wires_.get()) + layers::after_at(count),
          layers::set_words(count), static_cast<const std::int32_t*>(set_.get()) + 1};
}

void LayerStack::run(const Call& call, const Stream& s) const {
  layers::Arguments a{static_cast<const layers::LayerOnDevice*>(layers_.get()),
                      static_cast<std::int32_t>(space_.size()),
                      0,
                      call.most_rows,
                      call.all,
                      call.last != nullptr ? call.last : call.all,
                      call.rotary,
                      {},
                      call.x,
                      call.tokens,
                      {},
                      static_cast<float*>(wires_.get()),
                      static_cast<std::int32_t*>(set_.get()),
                      0,
                      {},
                      {}};
  if (embeds()) a.embed = *static_cast<const DeviceMatrix*>(embed_.weights);
  if (multiplies_after()) {
    a.after = {call.outs, static_cast<const DeviceMatrix*>(after_.weights)->bias, call.y};
  }
  auto kv = call.kv.begin();
  for (std::size_t i = 0; i < space_.size(); ++i) {
    if (space_[i]) continue;
    a.last_time = static_cast<std::int32_t>(i);
    a.keys[i] = typed<float>(kv->keys);
    a.values[i] = typed<float>(kv->values);
    ++kv;
  }
  if (call.last == nullptr) a.last_time = a.count;
  switch (type_) {
    case CudaWeights::f32:
      layers::run<layers::Float32>(a, s);
      break;
    case CudaWeights::tf32:
      layers::run<layers::Tf32>(a, s);
      break;
    case CudaWeights::bf16:
      layers::run<layers::Bfloat16>(a, s);
      break;
  }
}

}  // namespace toto::cuda
