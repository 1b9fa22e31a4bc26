// SPDX-License-Identifier: Apache-2.0
// What coherent paths cost: whole calls of sampled forecasts with 256 trajectories, independent and
// coherent in turns in one process. Figures are medians; "more" is the median of neighbouring
// ratios. Without --model, synthetic weights of the published architecture of Toto 1.0.
//
//   bench_paths [--rounds N] [--dtype float32|bfloat16] [--device cpu|cuda] [--model DIR]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "toto/error.hpp"
#include "toto/forecast.hpp"
#include "toto/model.hpp"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kContext = 512, kWarmUps = 2;

struct Workload {
  std::size_t series, variates, horizon;
};
constexpr Workload kWorkloads[] = {{1, 7, 336}, {64, 1, 96}, {1, 1, 96}};

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

/// Walks: [series][variates][steps].
std::vector<float> walks(const Workload& w) {
  std::vector<float> values(w.series * w.variates * kContext);
  std::uint32_t state = 1;
  float at = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    state = state * 1664525U + 1013904223U;
    if (i % kContext == 0) at = 100;
    at += static_cast<float>(state >> 8) / static_cast<float>(1U << 23) - 1;
    values[i] = at;
  }
  return values;
}

void compare(const toto::Model& model, const Workload& w, std::size_t rounds) {
  const std::vector<float> values = walks(w);
  std::vector<toto::Series> series(w.series);
  std::vector<std::string> ids(w.series);
  const std::size_t each = w.variates * kContext;
  for (std::size_t i = 0; i < w.series; ++i) {
    ids[i] = "series-" + std::to_string(i);
    series[i].id = ids[i];
    series[i].variates = w.variates;
    series[i].steps = kContext;
    series[i].values = std::span(values).subspan(i * each, each);
  }
  toto::ForecastOptions options;
  options.horizon = w.horizon;
  options.quantiles_from = toto::QuantilesFrom::samples;
  toto::Forecaster forecaster(model);
  const auto timed = [&](toto::Paths paths) {
    options.paths = paths;
    const auto start = Clock::now();
    (void)forecaster.forecast(series, options);
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  std::vector<double> independent, coherent, more;
  for (std::size_t round = 0; round < rounds + kWarmUps; ++round) {
    const double one = timed(toto::Paths::independent);
    const double other = timed(toto::Paths::coherent);
    if (round < kWarmUps) continue;
    independent.push_back(one);
    coherent.push_back(other);
    more.push_back(other / one - 1);
  }
  std::printf("%zu x %zu x %zu x %zu  independent %8.3f ms  coherent %8.3f ms  more %5.1f %%\n",
              w.series, w.variates, kContext, w.horizon, median(independent), median(coherent),
              100 * median(more));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t rounds = 31;
  std::string folder;
  toto::LoadOptions load;
  load.mode = toto::Mode::reduce_overhead;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--rounds")
      rounds = std::max<std::size_t>(std::strtoul(argv[i + 1], nullptr, 10), 1);
    if (flag == "--model") folder = value;
    if (flag == "--device" && value == "cuda") load.device = toto::Device::cuda;
    if (flag == "--dtype" && value == "bfloat16") load.precision = toto::Precision::bfloat16;
  }
  try {
    const toto::Model model = folder.empty()
                                  ? toto::Model::synthesise("toto-open-base-1.0", 8, load)
                                  : toto::Model::load({folder}, load);
    for (const Workload& w : kWorkloads) compare(model, w, rounds);
  } catch (const toto::Error& error) {
    std::fprintf(stderr, "bench_paths: %s\n", error.what());
    return static_cast<int>(error.status());
  }
  return 0;
}
