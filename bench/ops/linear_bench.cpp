// SPDX-License-Identifier: Apache-2.0
// Matrix products of one layer and of the head, over row counts. Weights are cold, as in a
// forecast: each iteration takes the next of many copies, more than the caches hold.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ceilings.h"

namespace toto::bench {
namespace {

struct Shape {
  const char* name;
  std::int32_t out, in;
  Epilogue use;
};
constexpr Shape kShapes[] = {
    {"qkv_2304x768", 2304, 768, Epilogue::store},
    {"out_768x768", 768, 768, Epilogue::residual},
    {"mlp_in_6144x768", 6144, 768, Epilogue::gated},
    {"mlp_out_768x3072", 768, 3072, Epilogue::residual},
    {"head_6144x768", 6144, 768, Epilogue::store},
};
constexpr std::int32_t kRows[] = {1, 2, 4, 8, 16, 64, 512, 4096};
constexpr double kColdBytes = 200e6;

std::vector<Matrix> copies(cpu::CpuBackend& be, const Shape& s, double bytes) {
  std::vector<Matrix> matrices;
  for (double total = 0; total < kColdBytes; total += bytes) {
    const auto count = static_cast<std::size_t>(s.out) * static_cast<std::size_t>(s.in);
    auto weights = std::make_unique<float[]>(count);
    for (std::size_t i = 0; i < count; ++i) weights[i] = 1e-3F * static_cast<float>(i % 61);
    const std::vector<float> bias(static_cast<std::size_t>(s.out), 0.5F);
    matrices.push_back(be.upload_matrix(std::move(weights), s.out, s.in, bias, s.use));
  }
  return matrices;
}

void linear(benchmark::State& state, const Shape& s, CpuWeights weights) {
  cpu::CpuBackend& be = backend(weights);
  const auto rows = static_cast<std::int32_t>(state.range(0));
  const double bytes = static_cast<double>(s.out) * s.in * (weights == CpuWeights::f32 ? 4.0 : 2.0);
  // The backend keeps what is uploaded, so each shape is uploaded once.
  static std::map<std::pair<const Shape*, CpuWeights>, std::vector<Matrix>> uploaded;
  std::vector<Matrix>& matrices = uploaded[{&s, weights}];
  if (matrices.empty()) matrices = copies(be, s, bytes);
  auto* x = static_cast<float*>(be.allocate(static_cast<std::size_t>(rows) * s.in * 4));
  auto* y = static_cast<float*>(be.allocate(static_cast<std::size_t>(rows) * s.out * 4));
  std::fill_n(x, static_cast<std::size_t>(rows) * s.in, 0.25F);
  const std::int32_t width = s.use == Epilogue::gated ? s.out / 2 : s.out;
  std::size_t next = 0;
  for (auto _ : state) {
    be.linear(matrices[next], view_of(x, rows, s.in), view_of(y, rows, width), s.use);
    next = (next + 1) % matrices.size();
  }
  be.release(x);
  be.release(y);
  report(state, weights, 2.0 * rows * s.out * s.in, bytes);
}

const bool kRegistered = [] {
  for (const Shape& s : kShapes) {
    for (const CpuWeights weights : {CpuWeights::f32, CpuWeights::bf16}) {
      const std::string name =
          std::string(s.name) + (weights == CpuWeights::f32 ? "/f32" : "/bf16");
      auto* b = benchmark::RegisterBenchmark(
          name.c_str(), [&s, weights](benchmark::State& state) { linear(state, s, weights); });
      for (const std::int32_t rows : kRows) b->Arg(rows);
      b->UseRealTime();
    }
  }
  return true;
}();

}  // namespace
}  // namespace toto::bench
