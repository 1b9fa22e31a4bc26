// SPDX-License-Identifier: Apache-2.0
// A service over a model: every request gets the bits that it gets alone, whoever comes with it.
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <new>
#include <thread>

#include "support/faulty_backend.h"
#include "support/requests.h"
#include "toto/service.hpp"

namespace toto {
namespace {

using test::OwnedSeries;

constexpr std::size_t kThreads = 8;
#ifdef TOTO_SANITIZED
constexpr std::size_t kRequests = 100;  // of each thread
#else
constexpr std::size_t kRequests = 1000;
#endif

Toto1Config tiny_config() {
  Toto1Config c = test::spec_config();
  c.embed_dim = 16;
  c.num_layers = 2;
  c.mlp_hidden_dim = 24;
  c.spacewise_every_n_layers = 2;
  return c;
}

/// What the service reads of a model, which the models of tests leave empty.
Model described(const std::shared_ptr<Model::Impl>& impl) {
  const Toto1Config& c = static_cast<const Toto1&>(*impl->net).config();
  impl->info.patch_size = c.patch_size;
  impl->info.embed_dim = c.embed_dim;
  impl->info.num_layers = c.num_layers;
  impl->info.num_heads = c.num_heads;
  impl->info.mlp_hidden_dim = c.mlp_hidden_dim;
  impl->info.components = c.components;
  return Model(impl);
}

Model tiny_model(const LoadOptions& load = {}) {
  return described(test::make_impl(tiny_config(), false, {}, 3, load));
}

/// Kinds of requests that differ in everything that may differ.
struct Kind {
  OwnedSeries series;
  ForecastOptions options;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (std::size_t i = 0; i < 24; ++i) {
    Kind kind{test::wave(i % 20, 3 + (i * 29) % 90, 1 + i % 3), {}};  // some ids come twice
    ForecastOptions& o = kind.options;
    o.horizon = 1 + (i * 7) % 20;
    o.seed = i % 3;
    o.num_samples = 1 + i % 5;
    o.mean_only = i % 11 == 5;
    o.keep_samples = i % 4 == 1 && !o.mean_only;
    o.keep_parameters = i % 7 == 3;
    if (i % 3 == 0) o.levels = {0.05F, 0.5F, 0.95F};
    if (i % 6 == 2) o.levels = {0.9F};
    o.align = i % 5 == 4 ? Align::trim : Align::pad;
    o.decode = i % 8 == 7 ? Decode::uncached : Decode::cached;
    all.push_back(std::move(kind));
  }
  return all;
}

template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool same(const Forecast& a, const Forecast& b) {
  return a.id == b.id && same(a.mean, b.mean) && same(a.median, b.median) && same(a.std, b.std) &&
         same(a.levels, b.levels) && same(a.quantiles, b.quantiles) && same(a.samples, b.samples) &&
         same(a.parameters.loc, b.parameters.loc) && same(a.parameters.df, b.parameters.df) &&
         a.exact_steps == b.exact_steps;
}

TEST(ServiceBits, EightThreadsGetWhatEachRequestGetsAlone) {
  LoadOptions load;
  load.threads = 1;
  std::vector<Model> replicas;
  for (int i = 0; i < 2; ++i) {
    replicas.push_back(tiny_model(load));
  }
  const std::vector<Kind> all = kinds();
  std::vector<Forecast> alone;
  for (const Kind& kind : all) {
    const Series series = kind.series.view();
    alone.push_back(Forecaster(replicas[0]).forecast({&series, 1}, kind.options).front());
  }
  ServiceOptions options;
  options.max_queue = kThreads * kRequests;
  options.max_batch_cost = 2000;
  Service service(replicas, options);
  std::atomic<std::size_t> different{0}, failed{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        std::vector<std::pair<std::size_t, Future>> futures;
        for (std::size_t i = 0; i < kRequests; ++i) {
          const std::size_t which = (thread * 5 + i * 7) % all.size();
          Request request{all[which].series.view(), all[which].options};
          request.priority = static_cast<int>((thread + i) % 3);
          request.borrow = i % 2 == 0;
          futures.emplace_back(which, service.submit(request));
        }
        for (auto& [which, future] : futures) {
          if (future.error() != nullptr) {
            ++failed;
          } else if (!same(future.get(), alone[which])) {
            ++different;
          }
        }
      });
    }
  }
  EXPECT_EQ(failed, 0U);
  EXPECT_EQ(different, 0U);
  const ServiceCounters counters = service.counters();
  EXPECT_EQ(counters.completed, kThreads * kRequests);
  EXPECT_LT(counters.batches, kThreads * kRequests / 2);  // they shared micro-batches
  for (const auto& device : counters.devices) EXPECT_GT(device.requests, 0U);
}

/// Runs the request by the service and alone.
void expect_same_as_alone(Service& service, const Model& model, const Kind& kind) {
  const Series series = kind.series.view();
  const Forecast alone = Forecaster(model).forecast({&series, 1}, kind.options).front();
  Request request{series, kind.options};
  EXPECT_TRUE(same(service.forecast(request), alone));
}

TEST(ServiceBits, WhatTheEstimateAdmitsDoesNotFailForMemory) {
  for (const Mode mode : {Mode::eager, Mode::reduce_overhead}) {
    LoadOptions load;
    load.threads = 1;
    load.mode = mode;
    const Model model =
        described(test::make_impl(test::odd_config(), false,
                                  mode == Mode::eager ? Execution::eager() : Execution{}, 3, load));
    for (const Kind& kind : kinds()) {
      Request request{kind.series.view(), kind.options};
      const std::uint64_t bytes = Service(model).estimate(request).request.bytes;
      ServiceOptions options;
      options.memory_limit = bytes;
      {
        Service enough(model, options);
        expect_same_as_alone(enough, model, kind);
      }
      options.memory_limit = bytes - 1;
      Service little(model, options);
      const Future refused = little.submit(request);
      ASSERT_NE(refused.error(), nullptr);
      EXPECT_EQ(refused.error()->code(), "request_too_large");
    }
  }
}

TEST(ServiceBits, FailedAllocationsFailNobodyThatCanBeServedWithLess) {
  // Once the model is there, every second allocation of the backend fails for a while.
  int allocations = 1000;
  test::Faults faults;
  faults.on_allocate = [&](std::size_t) {
    if (++allocations <= 20 && allocations % 2 == 0) throw std::bad_alloc();
  };
  const Model model = described(test::odd_model_on(
      std::make_shared<test::FaultyBackend>(make_reference_backend_f32(), faults)));
  Service service(model);
  allocations = 0;
  const auto owned = test::many(12);
  ForecastOptions small;  // the reference backend is slow under a sanitizer
  small.horizon = 8;
  small.num_samples = 4;
  std::vector<Future> futures;
  for (const OwnedSeries& s : owned) futures.push_back(service.submit({s.view(), small}));
  std::size_t failed = 0;
  for (std::size_t i = 0; i < futures.size(); ++i) {
    if (futures[i].error() == nullptr) {
      EXPECT_EQ(futures[i].get().id, owned[i].id);
    } else {
      ++failed;
      EXPECT_EQ(futures[i].error()->code(), "out_of_memory");
    }
  }
  EXPECT_LE(failed, 10U);
  // And when there is memory again, all is well.
  allocations = 1000;
  for (const OwnedSeries& s : owned) EXPECT_EQ(service.forecast({s.view(), small}).id, s.id);
}

TEST(ServiceBits, ABadSeriesSpoilsNoMicroBatch) {
  const Model model = tiny_model();
  Service service(model);
  OwnedSeries bad = test::wave(1, 20);
  bad.values[3] = std::nanf("");
  const Future refused = service.submit({bad.view(), {}});
  ASSERT_TRUE(refused.ready());
  EXPECT_EQ(refused.error()->code(), "not_finite");
  ForecastOptions no_samples;
  no_samples.num_samples = 0;
  EXPECT_EQ(service.submit({test::wave(1, 20).view(), no_samples}).error()->code(),
            "invalid_samples");
  EXPECT_EQ(service.forecast({test::wave(1, 20).view(), {}}).id, "wave-1");
}

TEST(ServiceBits, ReplicasMustBeApartAndAlike) {
  const auto code_of = [](std::span<const Model> replicas) -> std::string {
    try {
      const Service service(replicas);
    } catch (const Error& error) {
      return error.code();
    }
    return "";
  };
  const Model model = tiny_model();
  LoadOptions narrow;
  narrow.precision = Precision::bfloat16;
  const std::vector<Model> twice = {model, model};
  const std::vector<Model> mixed = {model, tiny_model(narrow)};
  EXPECT_EQ(code_of({}), "invalid_replicas");
  EXPECT_EQ(code_of(twice), "invalid_replicas");
  EXPECT_EQ(code_of(mixed), "invalid_replicas");
}

TEST(ServiceBits, AfterWarmUpTheBackendAllocatesNothing) {
  int allocations = 0;
  test::Faults faults;
  faults.on_allocate = [&](std::size_t) { ++allocations; };
  const Model model = described(test::odd_model_on(
      std::make_shared<test::FaultyBackend>(make_reference_backend_f32(), faults)));
  Service service(model);
  const auto owned = test::wave(1, 60);
  ForecastOptions options;
  options.num_samples = 16;
  (void)service.forecast({owned.view(), options});
  const int before = allocations;
  for (int i = 0; i < 20; ++i) (void)service.forecast({owned.view(), options});
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace toto
