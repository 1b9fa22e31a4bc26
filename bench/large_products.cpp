// SPDX-License-Identifier: Apache-2.0
// Products of a layer of each published model with the rows of a large batch, on a device: TFLOP/s
// by the device's clock, one line each. bench/peers/large_products.py puts cuBLASLt beside them.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime/cuda_backend.h"
#include "backend/graph_capture.h"
#include "toto/error.hpp"

namespace {

using namespace toto;

struct Product {
  const char* model;
  const char* name;
  std::int32_t out, in;
  Epilogue use;
};
constexpr Product kProducts[] = {
    {"toto-open-base-1.0", "qkv", 2304, 768, Epilogue::store},
    {"toto-open-base-1.0", "out", 768, 768, Epilogue::residual},
    {"toto-open-base-1.0", "mlp_in", 6144, 768, Epilogue::gated},
    {"toto-open-base-1.0", "mlp_out", 768, 3072, Epilogue::residual},
    {"toto-2.0-22m", "qkv", 1536, 512, Epilogue::store},
    {"toto-2.0-22m", "out", 512, 512, Epilogue::residual},
    {"toto-2.0-22m", "mlp_in", 2736, 512, Epilogue::gated},
    {"toto-2.0-22m", "mlp_out", 512, 1368, Epilogue::residual},
    {"toto-2.0-313m", "qkv", 3072, 1024, Epilogue::store},
    {"toto-2.0-313m", "out", 1024, 1024, Epilogue::residual},
    {"toto-2.0-313m", "mlp_in", 5472, 1024, Epilogue::gated},
    {"toto-2.0-313m", "mlp_out", 1024, 2736, Epilogue::residual},
};
constexpr std::int32_t kRows[] = {4096, 8192, 9728};
constexpr double kGraphOperations = 1.5e12;  // of one graph: some milliseconds
constexpr int kTimed = 7;                    // of which the median counts

std::size_t cells(std::int32_t rows, std::int32_t columns) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

/// Uniform in [-1, 1): how fast a device is depends on the bits.
std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  std::uint64_t state = seed;
  for (float& value : values) {  // splitmix64
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    value = static_cast<float>(z >> 40) * 0x1p-23F - 1.0F;
  }
  return values;
}

/// Operations a second.
double rate(Backend& backend, const Product& p, std::int32_t rows) {
  const auto w = random_values(cells(p.out, p.in), 1);
  auto weights = std::make_unique<float[]>(w.size());
  std::copy(w.begin(), w.end(), weights.get());
  const Matrix matrix = backend.upload_matrix(std::move(weights), p.out, p.in, {}, p.use);
  const auto allocate = [&](std::int32_t count, std::int32_t width) -> View {
    const std::size_t bytes = cells(count, width) * backend.element_size();
    return {backend.allocate(bytes), backend.element_type(), width, count};
  };
  // Products read what a norm leaves.
  const std::vector<float> values = random_values(cells(rows, p.in), 2);
  const std::vector<float> ones(static_cast<std::size_t>(p.in), 1.0F);
  const View x = allocate(rows, p.in);
  const View gain = allocate(1, p.in);
  const View room = allocate(rows, p.in + 8);
  const View room_y = allocate(rows, p.out + 16);
  const bool gated = p.use == Epilogue::gated;
  const View normed = room.as(backend.operand_type(matrix), rows, p.in);
  const View y = room_y.as(gated ? backend.operand_type(matrix) : backend.element_type(), rows,
                           gated ? p.out / 2 : p.out);
  backend.upload(std::span<const float>(values), x);
  backend.upload(std::span<const float>(ones), gain);
  backend.rms_norm(x, gain, normed);
  const double operations = 2.0 * rows * p.out * p.in;
  const int repeats = std::max(4, static_cast<int>(kGraphOperations / operations));
  GraphCapture& capture = *backend.capture();
  backend.linear(matrix, normed, y, p.use);
  capture.begin();
  for (int i = 0; i < repeats; ++i) backend.linear(matrix, normed, y, p.use);
  const auto graph = capture.end();
  for (int i = 0; i < 3; ++i) (void)capture.replay(*graph, true, {});
  std::array<double, kTimed> times{};
  for (double& time : times) time = capture.replay(*graph, true, {});
  std::sort(times.begin(), times.end());
  for (const View& memory : {x, gain, room, room_y}) backend.release(memory.data);
  return operations * repeats / times[kTimed / 2];
}

}  // namespace

int main() try {
  struct Type {
    const char* name;
    CudaWeights weights;
  };
  for (const Type& type : {Type{"bfloat16", CudaWeights::bf16}, Type{"tf32", CudaWeights::tf32}}) {
    for (const Product& p : kProducts) {
      for (const std::int32_t rows : kRows) {
        const auto backend = make_cuda_backend({type.weights, 1});
        std::printf("%s %s %s %d %d %d %.1f\n", type.name, p.model, p.name, p.out, p.in, rows,
                    rate(*backend, p, rows) * 1e-12);
        std::fflush(stdout);
      }
    }
  }
  return 0;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
