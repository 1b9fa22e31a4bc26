// SPDX-License-Identifier: Apache-2.0
// The operations between the matrix products, on the shapes of Toto-Open-Base-1.0: width 768, 12
// heads of 64, patches of 64 steps, 24 components. `%layer` is their time as a share of what the
// products of one layer take for the same rows at the measured peak.
#include <algorithm>
#include <vector>

#include "ceilings.h"

namespace toto::bench {
namespace {

constexpr std::int32_t kWidth = 768;
constexpr std::int32_t kHeads = 12;
constexpr std::int32_t kDim = 64;
constexpr std::int32_t kComponents = 24;
constexpr std::int32_t kPatch = 64;
constexpr double kLayerWeights = 3.0 * 768 * 768 + 768 * 768 + 3.0 * 768 * 3072;

/// Memory of the backend, filled with moderate numbers.
class Memory {
 public:
  explicit Memory(std::size_t count)
      : count_(static_cast<std::int64_t>(count)),
        at_(static_cast<float*>(backend(CpuWeights::f32).allocate(count * sizeof(float)))) {
    for (std::size_t i = 0; i < count; ++i) at_[i] = 0.01F * static_cast<float>(i % 89) + 0.1F;
  }
  ~Memory() { backend(CpuWeights::f32).release(at_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  /// [..][width]
  [[nodiscard]] View of(std::int64_t width) const {
    return view_of(at_, static_cast<std::int32_t>(count_ / width), width);
  }

 private:
  std::int64_t count_;
  float* at_;
};

std::size_t elements(std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); }

void report_share(benchmark::State& state, std::int64_t rows) {
  const double layer = 2.0 * kLayerWeights * static_cast<double>(rows) / ceilings().f32_flops;
  state.counters["%layer"] = benchmark::Counter(
      layer / 100, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Contexts of `tokens` for `series` series of one variate, or `samples` trajectories of one series
/// of `variates` over a shared prefix.
struct Work {
  std::vector<Block> blocks;
  Batch batch;
  std::int64_t kv = 0;

  void add(Block b) {
    b.row = batch.rows;
    b.lane = batch.lanes;
    b.suffix_capacity = b.suffix + b.tokens;
    b.position = b.prefix + b.suffix;
    b.centre = b.position / 2;
    b.prefix_at = kv;
    kv += std::int64_t{b.variates} * b.prefix * kWidth;
    b.suffix_at = kv;
    kv += std::int64_t{b.lanes()} * b.suffix_capacity * kWidth;
    batch.rows += b.rows();
    batch.lanes += b.lanes();
    blocks.push_back(b);
    batch.blocks = blocks.data();
    batch.count = static_cast<std::int32_t>(blocks.size());
  }
};

Work contexts(std::int32_t series, std::int32_t tokens) {
  Work w;
  for (std::int32_t i = 0; i < series; ++i) {
    Block b;
    b.tokens = tokens;
    w.add(b);
  }
  return w;
}

Work trajectories(std::int32_t samples, std::int32_t variates, std::int32_t prefix) {
  Work w;
  Block b;
  b.trajectories = samples;
  b.variates = variates;
  b.tokens = 1;
  b.prefix = prefix;
  b.suffix = 3;
  w.add(b);
  return w;
}

void rms_norm(benchmark::State& state) {
  const auto rows = static_cast<std::int32_t>(state.range(0));
  const Memory x(elements(rows, kWidth));
  const Memory y(elements(rows, kWidth));
  const Memory gain(kWidth);
  for (auto _ : state) {
    backend(CpuWeights::f32).rms_norm(x.of(kWidth), gain.of(kWidth), y.of(kWidth));
  }
  report_share(state, rows);
}
BENCHMARK(rms_norm)->Arg(8)->Arg(512)->Arg(4096)->UseRealTime();

void attend(benchmark::State& state, const Work& w) {
  const Memory qkv(elements(w.batch.rows, std::int64_t{3} * kWidth));
  const Memory keys(elements(w.kv, 1));
  const Memory values(elements(w.kv, 1));
  const Memory out(elements(w.batch.rows, kWidth));
  for (auto _ : state) {
    backend(CpuWeights::f32)
        .time_attention(w.batch, qkv.of(3 * kWidth), {keys.of(kDim), values.of(kDim)},
                        out.of(kWidth), kHeads, false);
  }
  report_share(state, w.batch.rows);
}

void attention_contexts(benchmark::State& state) {  // series, tokens
  attend(state, contexts(static_cast<std::int32_t>(state.range(0)),
                         static_cast<std::int32_t>(state.range(1))));
}
BENCHMARK(attention_contexts)
    ->Args({1, 8})
    ->Args({50, 8})
    ->Args({7, 64})
    ->Args({1, 512})
    ->UseRealTime();

void attention_trajectories(benchmark::State& state) {  // samples, variates, prefix
  attend(state, trajectories(static_cast<std::int32_t>(state.range(0)),
                             static_cast<std::int32_t>(state.range(1)),
                             static_cast<std::int32_t>(state.range(2))));
}
BENCHMARK(attention_trajectories)->Args({256, 1, 8})->Args({256, 7, 64})->UseRealTime();

void rotary_append(benchmark::State& state) {
  const Work w = contexts(static_cast<std::int32_t>(state.range(0)), 8);
  const Memory qkv(elements(w.batch.rows, std::int64_t{3} * kWidth));
  const Memory keys(elements(w.kv, 1));
  const Memory values(elements(w.kv, 1));
  const Memory table(elements(32, kDim));
  const View tables = table.of(kDim / 2);
  for (auto _ : state) {
    backend(CpuWeights::f32)
        .rotary_append(w.batch, {tables, tables, tables, 8}, qkv.of(3 * kWidth),
                       {keys.of(kDim), values.of(kDim)}, kHeads);
  }
  report_share(state, w.batch.rows);
}
BENCHMARK(rotary_append)->Arg(1)->Arg(50)->Arg(512)->UseRealTime();

void variate_attention(benchmark::State& state) {  // samples, variates
  Work w = trajectories(static_cast<std::int32_t>(state.range(0)),
                        static_cast<std::int32_t>(state.range(1)), 0);
  const std::vector<std::int32_t> ids(static_cast<std::size_t>(state.range(1)), 0);
  w.batch.ids = ids.data();
  const Memory qkv(elements(w.batch.rows, std::int64_t{3} * kWidth));
  const Memory out(elements(w.batch.rows, kWidth));
  for (auto _ : state) {
    backend(CpuWeights::f32).variate_attention(w.batch, qkv.of(3 * kWidth), out.of(kWidth), kHeads);
  }
  report_share(state, w.batch.rows);
}
BENCHMARK(variate_attention)->Args({1, 7})->Args({256, 7})->Args({1, 256})->UseRealTime();

void distribution(benchmark::State& state) {  // lanes
  const std::int64_t rows = state.range(0) * kPatch;
  const Memory raw(elements(rows, 4 * kComponents));
  for (auto _ : state) {
    backend(CpuWeights::f32).distribution(raw.of(4 * kComponents), true);
  }
  report_share(state, state.range(0));
}
BENCHMARK(distribution)->Arg(1)->Arg(50)->Arg(1792)->UseRealTime();

void predict_draw(benchmark::State& state) {  // samples, variates; `shared`: parameters per variate
  const Work w = trajectories(static_cast<std::int32_t>(state.range(0)),
                              static_cast<std::int32_t>(state.range(1)), 0);
  const Work one = trajectories(1, static_cast<std::int32_t>(state.range(1)), 0);
  const bool shared = state.range(2) != 0;
  const PatchShape shape{kPatch, kComponents, kPatch};
  const Memory params(elements(w.batch.lanes, std::int64_t{kPatch} * 4 * kComponents));
  const Memory loc(elements(w.batch.lanes, kPatch));
  const Memory scale(elements(w.batch.lanes, kPatch));
  const Memory y(elements(w.batch.lanes, kPatch));
  for (auto _ : state) {
    backend(CpuWeights::f32)
        .predict_draw(w.batch, shared ? &one.batch : nullptr, shape,
                      params.of(kPatch * 4 * kComponents), loc.of(kPatch), scale.of(kPatch),
                      y.of(kPatch));
  }
  report_share(state, w.batch.lanes);
  state.counters["draws"] = benchmark::Counter(static_cast<double>(w.batch.lanes) * kPatch,
                                               benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(predict_draw)->Args({256, 1, 1})->Args({256, 7, 0})->UseRealTime();

void scaler(benchmark::State& state) {  // samples, variates: one patch each
  const Work w = trajectories(static_cast<std::int32_t>(state.range(0)),
                              static_cast<std::int32_t>(state.range(1)), 8);
  const ScalerSpec spec{ScalerSpec::Kind::causal_patch, kPatch, true, 10.0};
  const std::size_t count = elements(w.batch.rows, kPatch);
  const Memory x(count);
  const Memory scaled(count);
  const Memory loc(count);
  const Memory scale(count);
  const Memory last_loc(elements(w.batch.lanes, kPatch));
  const Memory last_scale(elements(w.batch.lanes, kPatch));
  const std::vector<std::uint8_t> mask(count, 1);
  std::vector<ScalerState> states(static_cast<std::size_t>(w.batch.lanes));
  for (auto _ : state) {
    backend(CpuWeights::f32)
        .scale(w.batch, spec, x.of(kPatch), mask.data(), states.data(),
               {scaled.of(kPatch), loc.of(kPatch), scale.of(kPatch), last_loc.of(kPatch),
                last_scale.of(kPatch)});
  }
  report_share(state, w.batch.rows);
}
BENCHMARK(scaler)->Args({256, 1})->Args({256, 7})->UseRealTime();

}  // namespace
}  // namespace toto::bench
