// SPDX-License-Identifier: Apache-2.0
// One model on each of two devices: the same bits, and a service that keeps both busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/needs_device.h"
#include "support/requests.h"
#include "toto/service.hpp"

namespace toto {
namespace {

using test::OwnedSeries;

LoadOptions on_gpu(int index, Precision precision) {
  LoadOptions load;
  load.device = Device::cuda;
  load.device_index = index;
  load.precision = precision;
  return load;
}

std::string code_of_load(int index) {
  try {
    (void)Model::synthesise("toto-open-base-1.0", 1, on_gpu(index, Precision::float32));
  } catch (const Error& error) {
    return error.code();
  }
  return "";
}

TEST(TwoDevices, OneThatIsNotThereIsRefused) {
  EXPECT_EQ(code_of_load(cuda_devices()), "device_unavailable");
  EXPECT_EQ(code_of_load(99), "device_unavailable");
}

TEST(TwoDevices, GiveTheSameBitsAndAreBothUsed) {
  if (cuda_devices() < 2) GTEST_SKIP() << "needs two CUDA devices";
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    std::vector<Model> replicas;
    for (int i = 0; i < 2; ++i) {
      replicas.push_back(Model::synthesise("toto-open-base-1.0", 8, on_gpu(i, precision)));
    }
    EXPECT_EQ(replicas[1].loaded().device, "cuda:1");
    const std::vector<OwnedSeries> owned = test::many(96);
    const std::vector<Series> series = test::views(owned);
    ForecastOptions options = test::six_samples(70);
    // In turn on one thread: each call leaves the other device's work alone.
    Forecaster first(replicas[0]), second(replicas[1]);
    const std::vector<Forecast> expected = first.forecast(series, options);
    const std::vector<Forecast> found = second.forecast(series, options);
    for (std::size_t i = 0; i < series.size(); ++i) test::expect_same(found[i], expected[i]);
    const std::vector<Forecast> again = first.forecast(series, options);
    for (std::size_t i = 0; i < series.size(); ++i) test::expect_same(again[i], expected[i]);

    ServiceOptions bounds;
    bounds.max_batch_requests = 4;
    Service service(replicas, bounds);
    std::vector<Future> futures;
    for (const Series& s : series) futures.push_back(service.submit({s, options}));
    for (std::size_t i = 0; i < series.size(); ++i) {
      test::expect_same(futures[i].get(), expected[i]);
    }
    const ServiceCounters counters = service.counters();
    ASSERT_EQ(counters.devices.size(), 2U);
    EXPECT_EQ(counters.devices[0].name, "cuda:0");
    EXPECT_EQ(counters.devices[1].name, "cuda:1");
    for (const auto& device : counters.devices) EXPECT_GT(device.requests, 8U);
  }
}

}  // namespace
}  // namespace toto
