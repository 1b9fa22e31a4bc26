// SPDX-License-Identifier: Apache-2.0
// What a service costs: the rate of many requests from eight threads beside one large batch of the
// same series, and the time that one request waits for an idle device. Without --model, synthetic
// weights of the published architecture. The two take turns; figures are medians.
//
// With --kinds K, requests are of K kinds, which differ in horizon, samples, seed and levels; the
// batch is then one of each kind, one after the other.
//
//   bench_service [--rounds N] [--series N] [--kinds K] [--dtype float32|bfloat16]
//                 [--devices cpu|cuda:0,cuda:1|cuda:all] [--horizon N] [--samples N] [--batch N]
//                 [--model DIR]
//
// --batch bounds the requests of a micro-batch. With several devices the rate of the first alone
// stands beside that of all.
#include "toto/service.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kContext = 512, kThreads = 8, kWarmUps = 2;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

struct Inputs {
  explicit Inputs(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back("series-" + std::to_string(i));
      auto& all = values.emplace_back();
      for (std::size_t t = 0; t < kContext; ++t) {
        all.push_back(static_cast<float>(std::sin(0.26 * static_cast<double>(t + 7 * i))));
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      toto::Series s;
      s.id = ids[i];
      s.steps = kContext;
      s.values = values[i];
      series.push_back(s);
    }
  }
  std::vector<std::string> ids;
  std::vector<std::vector<float>> values;
  std::vector<toto::Series> series;
};

using Kinds = std::vector<toto::ForecastOptions>;

struct Asked {
  std::size_t rounds = 9, series = 128, kinds = 1, horizon = 8, samples = 256, batch = 0;
  std::string devices = "cpu", model;
  toto::LoadOptions load;
};

Kinds make_kinds(const Asked& asked) {
  Kinds kinds(std::max<std::size_t>(asked.kinds, 1));
  kinds[0].horizon = asked.horizon;
  kinds[0].num_samples = asked.samples;
  for (std::size_t k = 1; k < kinds.size(); ++k) {
    kinds[k].horizon = 8 + 12 * (k % 3);
    kinds[k].num_samples = 4 + 4 * (k % 2);
    kinds[k].seed = k;
    if (k % 2 == 0) kinds[k].levels = {0.05, 0.5, 0.95};
  }
  return kinds;
}

std::vector<toto::Model> load_all(const std::string& devices, const std::string& model,
                                  toto::LoadOptions load) {
  std::vector<toto::Model> replicas;
  for (const std::string& device : toto::parse_devices(devices)) {
    load.device = device == "cpu" ? toto::Device::cpu : toto::Device::cuda;
    load.device_index = device == "cpu" ? 0 : std::atoi(device.c_str() + 5);
    replicas.push_back(model.empty() ? toto::Model::synthesise("toto-open-base-1.0", 8, load)
                                     : toto::Model::load({model}, load));
  }
  return replicas;
}

/// A batch of each kind, one after the other.
double batched(toto::Forecaster& forecaster, const Inputs& inputs, const Kinds& kinds) {
  double seconds = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    std::vector<toto::Series> series;
    for (std::size_t i = k; i < inputs.series.size(); i += kinds.size()) {
      series.push_back(inputs.series[i]);
    }
    const auto start = Clock::now();
    (void)forecaster.forecast(series, kinds[k]);
    seconds += seconds_since(start);
  }
  return seconds;
}

/// All series, shared out among threads that submit theirs and then wait.
double served(toto::Service& service, const Inputs& inputs, const Kinds& kinds) {
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        std::vector<toto::Future> futures;
        for (std::size_t i = thread; i < inputs.series.size(); i += kThreads) {
          const auto& options = kinds[i % kinds.size()];
          futures.push_back(service.submit({inputs.series[i], options, 0, std::nullopt, true}));
        }
        for (toto::Future& future : futures) (void)future.get();
      });
    }
  }
  return seconds_since(start);
}

void compare(const Asked& asked) {
  const std::size_t count = std::max<std::size_t>(asked.series, 1);
  const Kinds kinds = make_kinds(asked);
  const std::vector<toto::Model> replicas = load_all(asked.devices, asked.model, asked.load);
  const toto::ForecastOptions& options = kinds[0];
  const Inputs inputs(count);
  toto::Forecaster forecaster(replicas.front());
  toto::ServiceOptions service_options;
  service_options.max_queue = count;
  service_options.max_batch_requests =
      asked.batch > 0 ? asked.batch : (count + replicas.size() - 1) / replicas.size();
  toto::Service service(replicas, service_options);
  std::optional<toto::Service> single;  // with the first device
  if (replicas.size() > 1) single.emplace(replicas.front(), service_options);
  std::vector<double> batch, requests, first_device, one, one_served, waits;
  for (std::size_t round = 0; round < asked.rounds + kWarmUps; ++round) {
    const double together = batched(forecaster, inputs, kinds);
    const double apart = served(service, inputs, kinds);
    auto start = Clock::now();
    (void)forecaster.forecast({inputs.series.data(), 1}, options);
    const double alone = seconds_since(start);
    start = Clock::now();
    toto::Future future = service.submit({inputs.series[0], options, 0, std::nullopt, true});
    (void)future.get();
    const double by_service = seconds_since(start);
    const double by_first = single ? served(*single, inputs, kinds) : apart;
    if (round < kWarmUps) continue;
    first_device.push_back(by_first);
    batch.push_back(together);
    requests.push_back(apart);
    one.push_back(alone);
    one_served.push_back(by_service);
    waits.push_back(future.queue_seconds());
  }
  const auto n = static_cast<double>(count);
  const double b = median(batch), r = median(requests);
  std::printf("%zu series, context %zu, horizon %zu, %zu kinds of requests, %zu rounds\n", count,
              kContext, asked.horizon, kinds.size(), asked.rounds);
  std::printf("a batch of each    %8.1f series/s\n", n / b);
  std::printf("%zu threads, service %8.1f series/s, ratio %.3f\n", kThreads, n / r, b / r);
  if (single) {
    const double f = median(first_device);
    std::printf("%s alone %8.1f series/s, %zu devices %.3f times as many\n",
                service.counters().devices.front().name.c_str(), n / f, replicas.size(), f / r);
  }
  std::printf("one request: forecaster %.3f ms, service %.3f ms, of which it waited %.1f us\n",
              median(one) * 1e3, median(one_served) * 1e3, median(waits) * 1e6);
  std::printf("%s\n", toto::to_json(service.counters()).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Asked asked;
  const std::pair<const char*, std::size_t Asked::*> numbers[] = {
      {"--rounds", &Asked::rounds},   {"--series", &Asked::series},   {"--kinds", &Asked::kinds},
      {"--horizon", &Asked::horizon}, {"--samples", &Asked::samples}, {"--batch", &Asked::batch}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    for (const auto& [name, number] : numbers) {
      if (flag == name) asked.*number = std::strtoul(argv[i + 1], nullptr, 10);
    }
    if (flag == "--devices") asked.devices = argv[i + 1];
    if (flag == "--model") asked.model = argv[i + 1];
    if (flag == "--dtype" && std::string(argv[i + 1]) == "bfloat16") {
      asked.load.precision = toto::Precision::bfloat16;
    }
  }
  asked.rounds = std::max<std::size_t>(asked.rounds, 1);
  try {
    compare(asked);
  } catch (const toto::Error& error) {
    std::fprintf(stderr, "bench_service: %s\n", error.what());
    return static_cast<int>(error.status());
  }
  return 0;
}
