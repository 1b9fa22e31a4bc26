// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/layers.h"

#include <cuda.h>

#include <algorithm>

#include "backend/cuda/layers_bf16.cuh"
#include "backend/cuda/layers_f32.cuh"
#include "toto/error.hpp"

namespace toto::cuda {
namespace layers {
namespace {

constexpr int kThreads = kWorkers + 32;

template <typename T>
struct Shared {
  alignas(1024) std::byte stages[kRingStages * kStageBytes];
  Ring ring;
  typename T::Memory memory;
  AttentionMemory attention;
};

/// The thread that streams: all units of this block, in the order in which they are worked on.
template <typename T>
__device__ void stream_weights(Shared<T>& s, const Arguments& a) {
  std::uint32_t n = 0;
  int base = 0;
  for (int layer = 0; layer < a.count; ++layer) {
    const LayerOnDevice& l = a.layers[layer];
    for (int p = 0; p < kProducts; ++p) {
      const int stages = T::stages(p);
      for (int unit = first_unit(base); unit < T::units(p); unit += static_cast<int>(gridDim.x)) {
        for (int stage = 0; stage < stages; ++stage) {
          s.ring.claim(n);
          T::stream(s.stages + n % kRingStages * kStageBytes, &l.maps[p], p, unit, stage,
                    &s.ring.full[n % kRingStages]);
          ++n;
        }
      }
      base += T::units(p);
    }
  }
}

/// The state of the workers.
struct Progress {
  std::uint32_t stage = 0;  // the next one of this block
  int base = 0;             // the next unit of the launch
  int rows = 0;
  bool trimmed = false;
};

template <typename T, int P>
__device__ void multiply(Shared<T>& s, const Arguments& a, int layer, const float* x,
                         const Wires& w, Progress& progress) {
  constexpr int kOuts = T::unit_outs(P);
  const LayerOnDevice& l = a.layers[layer];
  const int first = first_unit(progress.base);
  const int count = units_here(first, T::units(P));
  progress.base += T::units(P);
  if (count == 0) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int items = count * kOuts * kFewRows;
  const auto unit_of = [&](int i) { return first + i * static_cast<int>(gridDim.x); };

  // One output for each thread, to be added to what was there: asked for while there is time.
  constexpr bool kResidual = P == kOut || P == kMlpOut;
  const int own_row = thread / kOuts % kFewRows;
  const int own_out = unit_of(thread / (kOuts * kFewRows)) * kOuts + thread % kOuts;
  float held = 0;
  if (kResidual && thread < items && own_row < progress.rows) {
    const bool from_before = P == kOut && layer == a.last_time;
    const int row = from_before ? row_before(a, own_row) : own_row;
    held = wire::take((P == kOut ? x : w.middle) + row * kDim + own_out);
  }

  typename T::template Phase<P> phase;
  const float* const from = P == kMlpIn ? w.middle : x;
  phase.take(s.memory, w, from, l.norm[P == kMlpIn ? 1 : 0], progress.rows);
  for (int i = 0; i < count; ++i) {
    phase.multiply(s.memory, s.ring, s.stages, progress.stage, i);
    progress.stage += T::stages(P);
  }
  sync_workers();

  const float* const biases = l.bias[P];
  const auto bias = [&](int out) { return biases == nullptr ? nullptr : biases + out; };
  const auto total = [&](int i, int o, int row) {
    return phase.total(s.memory, i * kOuts + o, row, bias(unit_of(i) * kOuts + o));
  };
  if constexpr (kResidual) {
    if (thread >= items || own_row >= progress.rows) return;
    const float v = held + total(thread / (kOuts * kFewRows), thread % kOuts, own_row);
    if (P == kMlpOut && layer + 1 == a.count) {
      a.y[own_row * kDim + own_out] = v;
    } else {
      wire::put((P == kOut ? w.middle : w.end) + own_row * kDim + own_out, v);
    }
  } else if constexpr (P == kQkv) {
    for (int at = thread; at < items; at += kWorkers) {
      const int row = at / kOuts % kFewRows;
      if (row >= progress.rows) continue;
      const int i = at / (kOuts * kFewRows);
      wire::put(w.qkv + row * 3 * kDim + unit_of(i) * kOuts + at % kOuts,
                total(i, at % kOuts, row));
    }
  } else {
    for (int at = thread; at < items / T::kGatedOuts; at += kWorkers) {
      constexpr int kEach = kOuts / T::kGatedOuts;  // of a unit and row
      const int row = at / kEach % kFewRows;
      if (row >= progress.rows) continue;
      const int i = at / (kEach * kFewRows);
      T::put_gated(w, row, unit_of(i), at % kEach, [&](int o) { return total(i, o, row); });
    }
  }
}

template <typename T>
__device__ void attend(Shared<T>& s, const Arguments& a, int layer, const Wires& w,
                       Progress& progress) {
  const auto emit = [&](int row, int channel, float v) { T::put_attended(w, row, channel, v); };
  for (int item = static_cast<int>(blockIdx.x); item < progress.rows * kHeads;
       item += static_cast<int>(gridDim.x)) {
    const int row = item / kHeads;
    const int head = item % kHeads;
    if (a.layers[layer].space != 0) {
      attend_variates(s.attention, progress.trimmed ? *a.last : *a.all, w.qkv, row, head, emit);
    } else {
      attend_time(s.attention, a, layer, w.qkv, row, head, emit);
    }
  }
  if (layer == a.last_time) {
    progress.trimmed = true;
    progress.rows = a.last->rows;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) all_layers(const __grid_constant__ Arguments a) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(1024) std::byte memory[];
  auto& s = *reinterpret_cast<Shared<T>*>(memory);
  if (threadIdx.x == 0) s.ring.initialise(T::kReaders);
  __syncthreads();
  if (threadIdx.x >= kWorkers) {  // weights do not wait for what ran before
    if (threadIdx.x == kWorkers) stream_weights<T>(s, a);
    return;
  }
  begin_kernel();
  Progress progress;
  progress.rows = a.all->rows;
  const float* x = a.hidden;
  for (int layer = 0; layer < a.count; ++layer) {
    const Wires w = wires_of(a.wires, layer);
    multiply<T, kQkv>(s, a, layer, x, w, progress);
    attend<T>(s, a, layer, w, progress);
    multiply<T, kOut>(s, a, layer, x, w, progress);
    multiply<T, kMlpIn>(s, a, layer, x, w, progress);
    multiply<T, kMlpOut>(s, a, layer, x, w, progress);
    x = w.end;
  }
#endif
}

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                              12000, cudaEnableDefault, &result);
  if (status != cudaSuccess || result != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return reinterpret_cast<Encode>(found);
}

/// A stage as a box of the matrix, swizzled. float32: rows of 128 bytes, whatever output they belong
/// to. bfloat16: [k / 64][output][64].
TensorMap describe(const DeviceMatrix& w) {
  TensorMap map{};
  static_assert(sizeof map == sizeof(CUtensorMap));
  const auto outs = static_cast<cuuint64_t>(w.stored);
  const auto ins = static_cast<cuuint64_t>(w.in);
  const cuuint64_t sizes[3] = {w.bf16 ? 64U : 32U, w.bf16 ? outs : outs * ins / 32, ins / 64};
  const cuuint64_t strides[2] = {w.bf16 ? ins * 2 : 128, 128};
  const cuuint32_t box[3] = {w.bf16 ? 64U : 32U, w.bf16 ? 16U : 192U, kDim / 64};
  const cuuint32_t steps[3] = {1, 1, 1};
  const CUresult status = encoder()(
      reinterpret_cast<CUtensorMap*>(&map),
      w.bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, w.bf16 ? 3 : 2,
      w.weights, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) check(cudaErrorInvalidValue, "tensor map");
  return map;
}

bool fits(const Matrix& m, Product p, bool bf16) {
  const auto& w = *static_cast<const DeviceMatrix*>(m.weights);
  return w.bf16 == bf16 && w.stored == outs(p) && w.in == ins(p) && w.pitch == w.in;
}

template <typename T>
void run(const Arguments& arguments, const Stream& s) {
  static const bool ready = [] {
    check(cudaFuncSetAttribute(all_layers<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               sizeof(Shared<T>)),
          "shared memory");
    return true;
  }();
  (void)ready;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;  // all blocks of threads run at once
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(s.processors));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = sizeof(Shared<T>);
  config.stream = s.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, all_layers<T>, arguments), "launch");
  ++s.launches;
}

}  // namespace
}  // namespace layers

bool LayerStack::possible(std::span<const LayerWeights> stack, std::int32_t heads, std::int32_t d,
                          bool bf16, const Stream& s) {
  using namespace layers;
  constexpr std::size_t kShared = std::max(sizeof(Shared<Float32>), sizeof(Shared<Bfloat16>));
  if (!s.overlap || s.processors < kLeastProcessors ||
      static_cast<std::size_t>(s.shared_bytes) < kShared) {
    return false;
  }
  if (stack.size() > kMostLayers || heads != kHeads || d != kHead) return false;
  const bool sizes = std::all_of(stack.begin(), stack.end(), [&](const LayerWeights& l) {
    return fits(l.qkv, kQkv, bf16) && fits(l.out, kOut, bf16) && fits(l.mlp_in, kMlpIn, bf16) &&
           fits(l.mlp_out, kMlpOut, bf16);
  });
  const bool any_time =
      std::any_of(stack.begin(), stack.end(), [](const LayerWeights& l) { return !l.space; });
  return sizes && any_time && encoder() != nullptr;
}

LayerStack::LayerStack(std::span<const LayerWeights> stack, bool bf16)
    : bf16_(bf16), count_(static_cast<std::int32_t>(stack.size())) {
  using namespace layers;
  std::vector<LayerOnDevice> all(stack.size());
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const Matrix* const matrices[kProducts] = {&stack[i].qkv, &stack[i].out, &stack[i].mlp_in,
                                               &stack[i].mlp_out};
    for (int p = 0; p < kProducts; ++p) {
      const auto& w = *static_cast<const DeviceMatrix*>(matrices[p]->weights);
      all[i].maps[p] = describe(w);
      all[i].bias[p] = w.bias;
    }
    all[i].norm[0] = static_cast<const float*>(stack[i].norm1);
    all[i].norm[1] = static_cast<const float*>(stack[i].norm2);
    all[i].space = stack[i].space ? 1 : 0;
    if (!stack[i].space) last_time_ = static_cast<std::int32_t>(i);
  }
  space_.reserve(stack.size());
  for (const LayerWeights& l : stack) space_.push_back(l.space);
  wire_bytes_ = stack.size() * kWireWords * sizeof(float);
  check(cudaMalloc(&layers_, all.size() * sizeof(LayerOnDevice)), "weights");
  try {
    check(cudaMemcpy(layers_, all.data(), all.size() * sizeof(LayerOnDevice),
                     cudaMemcpyHostToDevice),
          "weights");
    check(cudaMalloc(&wires_, wire_bytes_), "memory");
  } catch (...) {
    cudaFree(layers_);
    throw;
  }
}

LayerStack::~LayerStack() {
  cudaFree(layers_);
  cudaFree(wires_);
}

void LayerStack::run(const Call& call, const Stream& s) const {
  layers::Arguments a{static_cast<const layers::LayerOnDevice*>(layers_),
                      count_,
                      last_time_,
                      call.all,
                      call.last,
                      call.rotary,
                      call.hidden,
                      call.y,
                      static_cast<float*>(wires_),
                      {},
                      {}};
  std::size_t time = 0;
  for (std::size_t i = 0; i < space_.size(); ++i) {
    if (space_[i]) continue;
    a.keys[i] = static_cast<float*>(call.kv[time].keys);
    a.values[i] = static_cast<float*>(call.kv[time].values);
    ++time;
  }
  check(cudaMemsetAsync(wires_, 0xFF, wire_bytes_, s.stream), "memory");
  if (bf16_) {
    layers::run<layers::Bfloat16>(a, s);
  } else {
    layers::run<layers::Float32>(a, s);
  }
}

}  // namespace toto::cuda
