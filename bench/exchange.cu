// SPDX-License-Identifier: Apache-2.0
// What it costs that all SMs exchange eight rows of 768 values as the fused forward does
// (src/backend/cuda/runtime/flag_in_data.cuh): cycles from one exchange to the next, by how the
// rows lie and by who polls. Prints the best of three launches of a hundred exchanges.
//
//   cmake --preset cuda -DTOTO_BUILD_BENCHMARKS=ON
//   cmake --build --preset cuda --target bench_exchange && build/cuda/bench/bench_exchange
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "backend/cuda/runtime/flag_in_data.cuh"
#include "backend/cuda/runtime/owner.h"

namespace {

namespace flag = toto::cuda::flag;

constexpr int kExchanges = 100;
constexpr int kRows = 8;
constexpr int kDim = 768;
constexpr int kProducers = 48;                 // blocks, of sixteen columns each
constexpr int kSquares = kRows * kDim;         // where sums of squares lie, a word a row and block
constexpr int kWords = kSquares + kRows * 64;  // of an exchange
constexpr int kBlocks = 132;
constexpr int kThreads = 256;

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

enum class Form {
  float32,           // rows of float32
  bfloat16,          // rows of bfloat16
  operands,          // bfloat16 as tensor core steps take it
  operands_squares,  // and sums of squares, waited for with it
};
enum class Asks {
  all,         // every warp for all that it wants, again and again
  each_warp,   // every warp for one word until that is there, then for all
  one_thread,  // one thread of a block for one word until that is there, then all for all
};

__device__ int operand_at(int row, int k) {
  const int step = k % 192 / 16;
  const int lane = row * 4 + k % 8 / 2;
  return ((k / 192 * 6 + step / 2) * 32 + lane) * 4 + step % 2 * 2 + k % 16 / 8;
}

template <Form F>
__device__ void produce(float* to, float v) {
  const int row = static_cast<int>(threadIdx.x) / 8;
  const int item = static_cast<int>(threadIdx.x) % 8;
  if (row >= kRows) return;
  const int k = static_cast<int>(blockIdx.x) * 16 + item * 2;
  if constexpr (F == Form::float32) {
    flag::publish_pair(to + row * kDim + k, {v, v});
  } else {
    flag::publish(to + (F == Form::bfloat16 ? row * kDim / 2 + k / 2 : operand_at(row, k)), v);
  }
  if (F == Form::operands_squares && item == 0)
    flag::publish(to + kSquares + row * 64 + blockIdx.x, v);
}

/// `busy`: cycles that every block spends before each exchange.
template <Form F, Asks A>
__global__ void exchange(float* wires, unsigned long long* cycles, int busy) {
  __shared__ float seen[8][32];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kFours = F == Form::float32 ? 6 : 3;
  constexpr int kAll = kFours + (F == Form::operands_squares ? 1 : 0);
  float carry = 1;
  const long long begin = clock64();
  for (int i = 0; i < kExchanges; ++i) {
    float* const words = wires + std::int64_t{i} * kWords;
    for (const long long now = clock64(); clock64() - now < busy;) {
    }
    if (blockIdx.x < kProducers) produce<F>(words, carry);
    const float* const own = words + warp * kFours * 128 + lane * 4;
    if (A == Asks::each_warp) {
      if (lane == 0) flag::wait_word(own);
      __syncwarp();
    }
    if (A == Asks::one_thread) {
      if (threadIdx.x == 0) flag::wait_word(words);
      __syncthreads();
    }
    uint4 v[kAll] = {};
    flag::wait_fours(v, [&](int n) {
      return n == kFours ? words + kSquares + warp * 64 + lane % 12 * 4 : own + n * 128;
    });
    std::uint32_t most = 0;
#pragma unroll
    for (int n = 0; n < kAll; ++n) most = max(most, flag::highest(v[n]));
    seen[warp][lane] = __uint_as_float(most);
    __syncthreads();
    carry = seen[threadIdx.x % 8][lane];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    atomicMax(cycles, static_cast<unsigned long long>(clock64() - begin) / kExchanges);
  }
}

/// One word there and back between blocks 0 and `other`.
__global__ void one_word(float* wires, unsigned long long* cycles, int other) {
  if (threadIdx.x != 0 || (blockIdx.x != 0 && static_cast<int>(blockIdx.x) != other)) return;
  const long long begin = clock64();
  for (int i = 0; i < kExchanges; ++i) {
    float* const there = wires + i * 64;
    float* const back = there + 32;
    if (blockIdx.x == 0) {
      flag::publish(there, 1);
      flag::wait_word(back);
    } else {
      flag::wait_word(there);
      flag::publish(back, 1);
    }
  }
  if (blockIdx.x == 0) {
    *cycles = static_cast<unsigned long long>(clock64() - begin) / (2 * kExchanges);
  }
}

void give_back(void* memory) { cudaFree(memory); }
using Owned = toto::cuda::Owner<void*, give_back>;

Owned device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes));
  return Owned(memory);
}

struct Memory {
  float* wires;
  unsigned long long* cycles;
};

template <typename Kernel>
unsigned long long best_of(const Memory& m, const Kernel& kernel, int argument) {
  unsigned long long best = ~0ULL;
  for (int run = 0; run < 5; ++run) {
    check(cudaMemset(m.wires, 0xFF, sizeof(float) * kExchanges * kWords));
    check(cudaMemset(m.cycles, 0, sizeof(*m.cycles)));
    cudaLaunchAttribute together{};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(kBlocks);
    config.blockDim = dim3(kThreads);
    config.attrs = &together;
    config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, kernel, m.wires, m.cycles, argument));
    unsigned long long now = 0;
    check(cudaMemcpy(&now, m.cycles, sizeof(now), cudaMemcpyDeviceToHost));
    if (run > 1) best = std::min(best, now);
  }
  return best;
}

template <Form F>
void print(const Memory& m, const char* name) {
  constexpr int kBusy = 1000;
  const auto cost = [&](auto asks) {
    return static_cast<long long>(best_of(m, exchange<F, asks()>, kBusy)) - kBusy;
  };
  std::printf("%-24s %10lld %10lld %10lld\n", name, cost(std::integral_constant<Asks, Asks::all>{}),
              cost(std::integral_constant<Asks, Asks::each_warp>{}),
              cost(std::integral_constant<Asks, Asks::one_thread>{}));
}

}  // namespace

int main() {
  const Owned wires = device_memory(sizeof(float) * kExchanges * kWords);
  const Owned cycles = device_memory(sizeof(unsigned long long));
  const Memory m{static_cast<float*>(wires.get()), static_cast<unsigned long long*>(cycles.get())};
  for (const int other : {1, 66, 131}) {
    std::printf("one word from block 0 to block %d: %llu cycles\n", other,
                best_of(m, one_word, other));
  }
  std::printf("%-24s %10s %10s %10s\n", "cycles, asked for by", "all", "each warp", "one thread");
  print<Form::float32>(m, "float32");
  print<Form::bfloat16>(m, "bfloat16");
  print<Form::operands>(m, "operands");
  print<Form::operands_squares>(m, "operands and squares");
  return 0;
}
