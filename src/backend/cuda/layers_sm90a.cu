// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/layers.h"
#include "backend/cuda/layers_attend.cuh"
#include "backend/cuda/layers_bf16.cuh"
#include "backend/cuda/layers_embed.cuh"
#include "backend/cuda/layers_f32.cuh"
#include "backend/cuda/tensor_map.h"

namespace toto::cuda {
namespace layers {
namespace {

constexpr int kThreads = kWorkers + 32;  // the last warp streams

template <typename T>
struct Shared {
  alignas(1024) std::byte stages[kRingStages * kStageBytes];
  Ring ring;
  typename T::Memory memory;
  AttentionMemory attention;
  Vectors vectors[kMostLayers];
  Deal deals[kProducts];
  Sight sights[kSights];
  std::int32_t before[kFewRows];  // row_before() of each row
  float* wires;                   // of this launch
};

/// The warp that streams: its first lane all units of this block, in the order in which they are
/// worked on; the others this block's share of biases and gains, as far as the cache, and of the
/// next launch's wires.
template <typename T>
__device__ void stream_weights(Shared<T>& s, const Arguments& a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane > 0) {
    for (int layer = 0; layer < a.count; ++layer) prefetch(s.vectors[layer], lane - 1, 31);
    const int words = set_words(a.count);
    clear(s.wires == a.wires ? a.wires + words : a.wires, words, lane - 1, 31);
    return;
  }
  Cursor<kRingStages> at;
  Cursor<kRingStages> before;
  Turn turn;
  int number = 0;  // of stages
#pragma unroll 1
  for (int layer = 0; layer < a.count; ++layer) {
    const LayerOnDevice& l = a.layers[layer];
#pragma unroll 1
    for (int p = 0; p < kProducts; ++p) {
      int unit = 0;
      const int count = turn.take(s.deals[p], unit);
#pragma unroll 1
      for (int i = 0; i < count; ++i) {
#pragma unroll 1
        for (int stage = 0; stage < stages_of(p); ++stage) {
          // One stage at a time: more of them would be in the way of what blocks say to each other.
          if (number > 0) s.ring.wait_full(before);
          before = at;
          if constexpr (T::kReleasesLate) {
            s.ring.claim(at, number);
          } else {
            s.ring.claim(at);
          }
          ++number;
          T::stream(s.stages + at.stage * kStageBytes, l.maps[p], unit, stage,
                    &s.ring.full[at.stage]);
          at.advance();
        }
        unit += static_cast<int>(gridDim.x);
      }
    }
  }
}

/// The state of the workers.
struct Progress {
  Cursor<kRingStages> ring;  // the next stage of this block
  int used = 0;              // stages before that one
  Turn turn;
  int rows = 0;
  bool trimmed = false;
};

/// What a thread ends a product with: two outputs of a row, in mlp_in a gate and its value. Where
/// their sums are, what is added to them and where they go is found out while the product's inputs
/// are waited for.
struct End {
  int part = -1;  // the first of its sums; -1: no thread of this warp has any
  float bias[2] = {};
  float held[2] = {};
  float* to = nullptr;  // nullptr: this thread has none
};

template <typename T>
__device__ End end_of(const Shared<T>& s, const Arguments& a, int layer, int p,
                      const Progress& progress, int first, int count) {
  End end;
  constexpr int kUnits = kWorkers / (T::kItems * kFewRows);  // that there are threads for
  static_assert(outs(kMlpIn) / T::kOutputs <= kLeastProcessors * kUnits);
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / T::kItems % kFewRows;
  const int i = thread / T::kItems / kFewRows;  // of this block's units
  if (i >= count) return end;
  const int item = thread % T::kItems;
  const int output = T::first_output(p, item);
  end.part = (i * (ins(p) / (kDim / T::kSlices)) * kFewRows + row) * T::kOutputs + output;
  if (row >= progress.rows) return end;
  const int unit = first + i * static_cast<int>(gridDim.x);
  const int column = unit * T::kOutputs + output;
  const float* const biases = s.vectors[layer].bias[p] + column;
  end.bias[0] = biases[0];
  end.bias[1] = biases[T::second_output(p)];
  if (p == kMlpIn) {
    end.to = wire_of(s.wires, layer, kGatedWire) + T::gated_word(row, unit, item);
    return end;
  }
  if (p != kQkv) {  // It was taken before.
    const float* const x =
        p == kOut ? input_of(a, s.wires, layer) : wire_of(s.wires, layer, kMiddleWire);
    const int from = p == kOut && layer == a.last_time ? s.before[row] : row;
    end.held[0] = x[from * kDim + column];
    end.held[1] = x[from * kDim + column + 1];
  }
  float* const y = p == kQkv              ? wire_of(s.wires, layer, kQkvWire)
                   : p == kOut            ? wire_of(s.wires, layer, kMiddleWire)
                   : layer + 1 == a.count ? a.y
                                          : wire_of(s.wires, layer, kEndWire);
  end.to = y + row * outs(p) + column;
  return end;
}

/// Adds up the slices of `part` [unit][slice][row][output] and hands on what that gives.
template <typename T>
__device__ void finish(const End& end, int p, const float* part) {
  if (end.part < 0) return;
  const float* first = part + end.part;
  float v[2] = {};
#pragma unroll 1
  for (int stage = 0; stage < stages_of(p); ++stage) {
#pragma unroll
    for (int s = 0; s < T::kSlices; ++s) {
      const float2 more = T::sums(p, first + s * kFewRows * T::kOutputs);
      v[0] += more.x;
      v[1] += more.y;
    }
    first += T::kSlices * kFewRows * T::kOutputs;
  }
  v[0] += end.bias[0];
  v[1] += end.bias[1];
  if (p == kMlpIn) {
    T::put_gated(end.to, silu(v[0]) * v[1]);
  } else if (end.to != nullptr) {
    if (p != kQkv) {
      v[0] = end.held[0] + v[0];
      v[1] = end.held[1] + v[1];
    }
    wire::put_pair(end.to, {v[0], v[1]});
  }
}

/// One product: inputs from the wires before it, outputs to those after it. The same
/// instructions for all four products, so that they are few.
template <typename T>
__device__ void multiply(Shared<T>& s, const Arguments& a, int layer, int p, Progress& progress) {
  int first = 0;
  const int count = progress.turn.take(s.deals[p], first);
  if (count == 0) return;
  const End end = end_of(s, a, layer, p, progress, first, count);
  T product;
  product.take(p, s.memory,
               p == kQkv     ? input_of(a, s.wires, layer)
               : p == kOut   ? wire_of(s.wires, layer, kAttendedWire)
               : p == kMlpIn ? wire_of(s.wires, layer, kMiddleWire)
                             : wire_of(s.wires, layer, kGatedWire),
               s.vectors[layer].norm[p == kMlpIn ? 1 : 0], progress.rows);
  if constexpr (T::kReleasesLate) {
    if (threadIdx.x == 0) s.ring.release(progress.used);
    progress.used += count * stages_of(p);
  }
  product.multiply(p, s.memory, s.ring, s.stages, progress.ring, count, a.nothing);
  sync_workers();
  finish<T>(end, p, s.memory.part);
}

template <typename T>
__device__ void attend(Shared<T>& s, const Arguments& a, int layer, const Rotation& rotation,
                       Progress& progress) {
  const bool trims = layer == a.last_time;
  if (own_row() < progress.rows) {
    float* const out = wire_of(s.wires, layer, kAttendedWire);
    const auto emit = [&](int row, int channel, float v, float w) {
      T::put_attended(out, row, channel, v, w);
    };
    const SightKind kind = s.vectors[layer].space == 0 ? kInTime
                           : progress.trimmed          ? kOfLastVariates
                                                       : kOfVariates;
    attend_row(s.attention, rotation, wire_of(s.wires, layer, kQkvWire), s.sights[kind],
               a.keys[layer], a.values[layer], trims, emit);
  }
  if (trims) {
    progress.trimmed = true;
    progress.rows = a.last->rows;
  }
}

/// What this block attends with in the layers of each kind; returns how this thread turns it.
template <typename T>
__device__ Rotation look_around(Shared<T>& s, const Arguments& a) {
  const int kind = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 == 0 && kind < kSights) {
    const LiveBatch& live = kind == kOfLastVariates ? *a.last : *a.all;
    if (own_row() < live.rows) {
      s.sights[kind] = kind == kInTime ? sight_in_time(live, own_row(), own_head())
                                       : sight_of_variates(live, own_row());
    }
  }
  if (kind == kSights && threadIdx.x % 32 < static_cast<unsigned>(a.last->rows)) {
    s.before[threadIdx.x % 32] = row_before(a, static_cast<int>(threadIdx.x) % 32);
  }
  sync_workers();
  if (own_row() >= a.all->rows) return {};
  return rotation_of_thread(a.rotary, s.sights[kInTime]);
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) all_layers(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) std::byte memory[];
  auto& s = *reinterpret_cast<Shared<T>*>(memory);
  if (threadIdx.x == 0) {
    s.ring.initialise(kWorkers / 32);
    s.wires = a.wires + *a.set * set_words(a.count);
  }
  if (threadIdx.x < static_cast<unsigned>(a.count)) {
    s.vectors[threadIdx.x] = a.layers[threadIdx.x].vectors;
  }
  if (threadIdx.x < kProducts) {
    const int units = outs(static_cast<int>(threadIdx.x)) / T::kOutputs;
    const int blocks = static_cast<int>(gridDim.x);
    s.deals[threadIdx.x] = {units / blocks, units % blocks};
  }
  __syncthreads();
  if (threadIdx.x >= kWorkers) {
    stream_weights<T>(s, a);  // weights do not wait for what ran before
  } else {
    Progress progress;
    progress.rows = begin_and_embed(a, s.wires);
    const Rotation rotation = look_around(s, a);
#pragma unroll 1
    for (int layer = 0; layer < a.count; ++layer) {
#pragma unroll 1
      for (int p = 0; p < kProducts; ++p) {
        if (p == kOut) attend<T>(s, a, layer, rotation, progress);
        multiply<T>(s, a, layer, p, progress);
      }
    }
    // Every block has begun: what this one has taken needed them all.
    if (blockIdx.x == 0 && threadIdx.x == 0) *a.set = s.wires == a.wires ? 1 : 0;
  }
}

/// A stage as a box of the matrix, swizzled: [k / (32, or 64)][output][32, or 64].
CUtensorMap describe(const DeviceMatrix& w) {
  const int bytes = w.bf16 ? 2 : 4;
  const auto outs = static_cast<cuuint64_t>(w.stored);
  const auto width = static_cast<cuuint64_t>(128 / bytes);
  const auto ins = static_cast<cuuint64_t>(w.in);
  const cuuint64_t sizes[] = {width, outs, ins / width};
  const cuuint64_t strides[] = {ins * static_cast<cuuint64_t>(bytes), 128};
  const auto unit = static_cast<cuuint32_t>(w.bf16 ? Bfloat16::kOutputs : Float32::kOutputs);
  const cuuint32_t box[] = {static_cast<cuuint32_t>(width), unit,
                            static_cast<cuuint32_t>(kDim / width)};
  return tensor_map(w.bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                    w.weights, 3, sizes, strides, box);
}

bool fits(const Matrix& m, Product p, CudaWeights type) {
  const auto& w = *static_cast<const DeviceMatrix*>(m.weights);
  return w.bf16 == (type == CudaWeights::bf16) && w.operands == operands_of(type) &&
         w.bias != nullptr && w.stored == outs(p) && w.in == ins(p) && w.pitch == w.in;
}

template <typename T>
void run(const Arguments& arguments, const Stream& s) {
  allow_shared_memory<all_layers<T>>(sizeof(Shared<T>));
  launch_together(all_layers<T>, dim3(static_cast<unsigned>(s.processors)), dim3(kThreads),
                  sizeof(Shared<T>), s, arguments);
}

}  // namespace
}  // namespace layers

bool LayerStack::possible(const StackWeights& weights, CudaWeights type, const Stream& s) {
  using namespace layers;
  constexpr std::size_t kShared = std::max(sizeof(Shared<Float32>), sizeof(Shared<Bfloat16>));
  if (!s.hopper || s.processors < kLeastProcessors || s.processors > kMostProcessors ||
      static_cast<std::size_t>(s.shared_bytes) < kShared) {
    return false;
  }
  const std::span<const LayerWeights> stack = weights.layers;
  if (stack.size() > kMostLayers || weights.heads != kHeads || weights.head_dim != kHead) {
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
    : type_(type), embed_(weights.embed), labels_(weights.labels) {
  using namespace layers;
  const std::span<const LayerWeights> stack = weights.layers;
  const auto wire_bytes =
      static_cast<std::size_t>(set_words(static_cast<int>(stack.size()))) * sizeof(float);
  std::vector<LayerOnDevice> all(stack.size());
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const Matrix* const matrices[kProducts] = {&stack[i].qkv, &stack[i].out, &stack[i].mlp_in,
                                               &stack[i].mlp_out};
    for (int p = 0; p < kProducts; ++p) {
      const auto& w = *static_cast<const DeviceMatrix*>(matrices[p]->weights);
      all[i].maps[p] = describe(w);
      all[i].vectors.bias[p] = w.bias;
    }
    all[i].vectors.norm[0] = static_cast<const float*>(stack[i].norm1);
    all[i].vectors.norm[1] = static_cast<const float*>(stack[i].norm2);
    all[i].vectors.space = stack[i].space ? 1 : 0;
    space_.push_back(stack[i].space);
  }
  check(cudaMalloc(&layers_, all.size() * sizeof(LayerOnDevice)), "weights");
  try {
    check(
        cudaMemcpy(layers_, all.data(), all.size() * sizeof(LayerOnDevice), cudaMemcpyHostToDevice),
        "weights");
    check(cudaMalloc(&wires_, 2 * wire_bytes), "memory");
    check(cudaMemset(wires_, 0xFF, 2 * wire_bytes), "memory");
    check(cudaMalloc(&set_, sizeof(std::int32_t)), "memory");
    check(cudaMemset(set_, 0, sizeof(std::int32_t)), "memory");
    check(cudaStreamSynchronize(nullptr), "memory");
  } catch (...) {
    cudaFree(layers_);
    cudaFree(wires_);
    cudaFree(set_);
    throw;
  }
}

LayerStack::~LayerStack() {
  cudaFree(layers_);
  cudaFree(wires_);
  cudaFree(set_);
}

bool LayerStack::embeds() const {
  const auto& w = *static_cast<const DeviceMatrix*>(embed_.weights);
  return labels_ == nullptr && w.operands == Operands::split && w.in <= layers::kMostEmbedded;
}

void LayerStack::run(const Call& call, const Stream& s) const {
  layers::Arguments a{static_cast<const layers::LayerOnDevice*>(layers_),
                      static_cast<std::int32_t>(space_.size()),
                      0,
                      call.all,
                      call.last,
                      call.rotary,
                      {},
                      call.x,
                      call.y,
                      static_cast<float*>(wires_),
                      static_cast<std::int32_t*>(set_),
                      0,
                      {},
                      {}};
  if (embeds()) a.embed = *static_cast<const DeviceMatrix*>(embed_.weights);
  auto kv = call.kv.begin();
  for (std::size_t i = 0; i < space_.size(); ++i) {
    if (space_[i]) continue;
    a.last_time = static_cast<std::int32_t>(i);
    a.keys[i] = static_cast<float*>(kv->keys);
    a.values[i] = static_cast<float*>(kv->values);
    ++kv;
  }
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
