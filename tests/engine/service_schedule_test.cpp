// SPDX-License-Identifier: Apache-2.0
// Who is computed when, and with whom: a service over devices that only take notes.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "service_fake.h"

namespace toto {
namespace {

using test::fake_request;
using test::FakeLog;
using test::PluggedService;
using testing::ElementsAre;
using Ids = std::vector<std::string>;

TEST(ServiceSchedule, AnIdleDeviceBeginsAtOnce) {
  FakeLog log;
  Service service = test::fake_service(log);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(service.submit(fake_request("one", 3)).get().mean, std::vector<float>{3});
  }
  // Nobody waited for company: each was a micro-batch of its own.
  EXPECT_EQ(service.counters().batches, 100U);
}

TEST(ServiceSchedule, GathersWhatComesWhileBusyByPriorityThenArrival) {
  PluggedService p;
  std::vector<Future> futures;
  for (const auto& [id, priority] :
       {std::pair{"low", -1}, {"a", 0}, {"high", 5}, {"b", 0}, {"higher", 6}}) {
    futures.push_back(p.service.submit(fake_request(id, 1, priority)));
  }
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"higher", "high", "a", "b", "low"}));
}

TEST(ServiceSchedule, AMicroBatchKeepsToTheBoundOfCost) {
  ServiceOptions options;
  options.max_batch_cost = 10;
  PluggedService p(options);
  std::vector<Future> futures;
  for (const auto& [id, cost] : {std::pair{"six", 6}, {"five", 5}, {"four", 4}, {"one", 1}}) {
    futures.push_back(p.service.submit(fake_request(id, static_cast<std::size_t>(cost))));
  }
  // Four fits beside six where five does not.
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"six", "four"}, Ids{"five", "one"}));
}

TEST(ServiceSchedule, WhatIsAboveTheBoundRunsAlone) {
  ServiceOptions options;
  options.max_batch_cost = 10;
  PluggedService p(options);
  const Future big = p.service.submit(fake_request("big", 50));
  const Future small = p.service.submit(fake_request("small", 1));
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"big"}, Ids{"small"}));
}

TEST(ServiceSchedule, AMicroBatchKeepsToTheBoundOfRequests) {
  ServiceOptions options;
  options.max_batch_requests = 2;
  PluggedService p(options);
  std::vector<Future> futures;
  for (const char* id : {"a", "b", "c"}) futures.push_back(p.service.submit(fake_request(id)));
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"a", "b"}, Ids{"c"}));
}

TEST(ServiceSchedule, OnlyCompatibleRequestsShareAMicroBatch) {
  PluggedService p;
  std::vector<Future> futures;
  for (const auto& [id, seed] : {std::pair{"a", 1}, {"x", 2}, {"b", 1}, {"y", 2}}) {
    futures.push_back(p.service.submit(fake_request(id, 1, 0, static_cast<std::uint64_t>(seed))));
  }
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"a", "b"}, Ids{"x", "y"}));
}

TEST(ServiceSchedule, NobodyStarves) {
  // Requests of a higher priority keep coming: each one that is computed submits the next.
  std::atomic<int> important{0}, before_humble{0};
  Service* to = nullptr;
  ServiceOptions options;
  options.max_batch_requests = 1;
  std::vector<Future> more;
  PluggedService p(options, [&](std::span<const Request* const> requests, const StopCheck&) {
    if (requests.front()->series.id == "humble") before_humble = important.load();
    if (requests.front()->series.id != "important" || important >= 100) return;
    ++important;
    more.push_back(to->submit(fake_request("important", 1, 9)));
  });
  to = &p.service;
  const Future humble = p.service.submit(fake_request("humble", 1, -9));
  for (int i = 0; i < 3; ++i) {
    more.push_back(p.service.submit(fake_request("important", 1, 9)));
  }
  p.gate.open();
  humble.wait();
  EXPECT_LE(before_humble, 4);
  while (!p.service.drain(std::chrono::seconds(1))) {
  }
}

TEST(ServiceSchedule, IdleDevicesShareOutWhatWaits) {
  // Eight devices hold a request each; 80 more come. When all are freed, each takes a share.
  constexpr std::size_t kDevices = 8;
  FakeLog log;
  test::Gate gate;
  std::atomic<std::size_t> started{0};
  Service service =
      test::fake_service(log, kDevices, [&](std::span<const Request* const>, const StopCheck&) {
        if (++started <= kDevices) gate.pass();
      });
  std::vector<Future> futures;
  for (std::size_t i = 0; i < kDevices; ++i) futures.push_back(service.submit(fake_request("h")));
  log.wait_for(kDevices);
  std::set<std::string> held;
  for (const auto& batch : log.all()) held.insert(batch.device);
  EXPECT_EQ(held.size(), kDevices);  // none waits while another is idle
  gate.open();
  for (Future& f : futures) f.wait();
}

TEST(ServiceSchedule, ADeviceTakesOverWhatASlowOneCannot) {
  // One of eight devices is stuck: everything else is done without it.
  FakeLog log;
  test::Gate gate;
  Service service =
      test::fake_service(log, 8, [&](std::span<const Request* const> requests, const StopCheck&) {
        if (requests.front()->series.id == "stuck") gate.pass();
      });
  Future stuck = service.submit(fake_request("stuck", 1, 0, 1));
  log.wait_for(1);
  std::vector<Future> futures;
  for (int i = 0; i < 500; ++i) futures.push_back(service.submit(fake_request("quick")));
  for (Future& f : futures) f.wait();
  EXPECT_FALSE(stuck.ready());
  const ServiceCounters counters = service.counters();
  EXPECT_EQ(counters.running, 1U);
  std::uint64_t requests = 0;
  for (const auto& device : counters.devices) requests += device.requests;
  EXPECT_EQ(requests, 500U);
  gate.open();
  stuck.wait();
}

TEST(ServiceSchedule, AGpuComputesWhileResultsAreGivenOut) {
  constexpr std::size_t kMany = 100;
  FakeLog log;
  test::Gate gate;
  ServiceOptions options;
  options.max_batch_requests = kMany;
  Service service = test::fake_service(
      log, 1, [&gate](auto, const StopCheck&) { gate.pass(); }, options, /*gpus=*/true);
  std::vector<Future> futures;
  futures.push_back(service.submit(fake_request("first")));
  EXPECT_TRUE(log.wait_for(1));
  std::atomic<int> begun_meanwhile{0};
  for (std::size_t i = 0; i < kMany; ++i) {
    futures.push_back(service.submit(fake_request("many"), [&](const Future&) {
      if (log.wait_for(3)) ++begun_meanwhile;
    }));
  }
  futures.push_back(service.submit(fake_request("next")));
  gate.open();
  EXPECT_TRUE(service.drain(std::chrono::seconds(120)));
  EXPECT_EQ(begun_meanwhile, static_cast<int>(kMany));
  EXPECT_THAT(log.all().back().ids, ElementsAre("next"));
}

/// A device that has all of a micro-batch as soon as it is called.
class AtOnce final : public Runner {
 public:
  AtOnce(FakeLog& log, test::FakeRunner::OnRun on_run)
      : inner_("at once", log, std::move(on_run), true) {}
  [[nodiscard]] std::string_view device() const override { return inner_.device(); }
  [[nodiscard]] std::size_t lanes() const override { return inner_.lanes(); }
  void check(const Request& request) const override { inner_.check(request); }
  [[nodiscard]] Estimate estimate(const Request& request, bool bytes) const override {
    return inner_.estimate(request, bytes);
  }
  [[nodiscard]] bool compatible(const Request& a, const Request& b) const override {
    return inner_.compatible(a, b);
  }
  void run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
           const RunnerCall& call) override {
    call.handed_over();
    inner_.run(requests, outcomes, call);
  }

 private:
  test::FakeRunner inner_;
};

/// A service over one such device, which is held in every micro-batch until the gate opens.
struct HeldService {
  FakeLog log;
  test::Gate gate;
  Service service;
  explicit HeldService(const ServiceOptions& options) : service(make(options)) {}
  ~HeldService() { gate.open(); }
  HeldService(const HeldService&) = delete;
  HeldService& operator=(const HeldService&) = delete;
  Service make(const ServiceOptions& options) {
    std::vector<std::unique_ptr<Runner>> runners;
    runners.push_back(
        std::make_unique<AtOnce>(log, [this](auto, const StopCheck&) { gate.pass(); }));
    return make_service(std::move(runners), options);
  }
};

TEST(ServiceSchedule, WhileAGpuComputesOneFullMicroBatchIsMadeReadyAndNoMore) {
  ServiceOptions options;
  options.max_batch_requests = 10;
  HeldService held(options);
  std::vector<Future> futures;
  futures.push_back(held.service.submit(fake_request("plug")));
  ASSERT_TRUE(held.log.wait_for(1));
  for (int i = 0; i < 9; ++i) futures.push_back(held.service.submit(fake_request("a")));
  EXPECT_EQ(held.service.counters().queued, 9U);  // they wait for company
  for (int i = 0; i < 25; ++i) futures.push_back(held.service.submit(fake_request("b")));
  ASSERT_TRUE(held.log.wait_for(2));
  EXPECT_EQ(held.log.all().back().ids.size(), 10U);
  futures.push_back(held.service.submit(fake_request("c")));
  EXPECT_EQ(held.service.counters().queued, 25U);
  EXPECT_EQ(held.service.counters().running, 11U);
  held.gate.open();
  EXPECT_TRUE(held.service.drain(std::chrono::seconds(60)));
  EXPECT_EQ(held.service.counters().completed, futures.size());
  EXPECT_FALSE(held.service.counters().devices.front().busy);
}

TEST(ServiceSchedule, ALargeMicroBatchIsMadeReadyThoughItIsNotFull) {
  HeldService held({});
  const auto plug = held.service.submit(fake_request("plug"));
  ASSERT_TRUE(held.log.wait_for(1));
  const auto small = held.service.submit(fake_request("small", 1000));
  EXPECT_EQ(held.service.counters().queued, 1U);
  const auto large = held.service.submit(fake_request("large", 5000));
  ASSERT_TRUE(held.log.wait_for(2));
  EXPECT_THAT(held.log.all().back().ids, ElementsAre("small", "large"));
}

// Of what was queued and computed, each second is counted once.
TEST(ServiceSchedule, SecondsOfMicroBatchesThatOverlapAreNotCountedTwice) {
  ServiceOptions options;
  options.max_batch_requests = 1;
  const auto begun = std::chrono::steady_clock::now();
  HeldService held(options);
  std::vector<Future> futures;
  for (int i = 0; i < 2; ++i) futures.push_back(held.service.submit(fake_request("x")));
  ASSERT_TRUE(held.log.wait_for(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  held.gate.open();
  EXPECT_TRUE(held.service.drain(std::chrono::seconds(60)));
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begun;
  const double busy = held.service.counters().devices.front().busy_seconds;
  EXPECT_GE(busy, 0.02);
  EXPECT_LE(busy, all.count());
}

TEST(ServiceSchedule, GpusAnswerEveryRequestOnceWhateverTheSizeOfTheMicroBatch) {
  constexpr std::size_t kThreads = 8, kEach = 1000;
  FakeLog log;
  ServiceOptions options;
  options.max_queue = kThreads * kEach;
  Service service = test::fake_service(log, 2, {}, options, /*gpus=*/true);
  std::atomic<std::size_t> right{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        std::vector<Future> futures;
        for (std::size_t i = 0; i < kEach; ++i) {
          const std::size_t cost = 1 + (thread + i) % 7;
          futures.push_back(service.submit(fake_request("x", cost, static_cast<int>(i % 3))));
          // Now and then in small micro-batches, and with nothing to do.
          if (i % 100 == 99) futures.back().wait();
        }
        for (std::size_t i = 0; i < kEach; ++i) {
          const auto cost = static_cast<float>(1 + (thread + i) % 7);
          if (futures[i].get().mean == std::vector<float>{cost}) ++right;
        }
      });
    }
  }
  EXPECT_EQ(right, kThreads * kEach);
  const ServiceCounters c = service.counters();
  EXPECT_EQ(c.completed, kThreads * kEach);
  EXPECT_EQ(c.queued + c.running, 0U);
}

TEST(ServiceSchedule, CountersAddUp) {
  FakeLog log;
  Service service = test::fake_service(log, 2);
  std::vector<Future> futures;
  for (std::size_t i = 0; i < 200; ++i) futures.push_back(service.submit(fake_request("x", 1 + i)));
  EXPECT_TRUE(service.drain(std::chrono::seconds(60)));
  const ServiceCounters c = service.counters();
  EXPECT_EQ(c.submitted, 200U);
  EXPECT_EQ(c.completed, 200U);
  EXPECT_EQ(c.queued + c.running, 0U);
  std::uint64_t by_cost = 0;
  double cost = 0;
  for (const std::uint64_t n : c.batch_costs) by_cost += n;
  for (const auto& device : c.devices) cost += device.cost;
  EXPECT_EQ(by_cost, c.batches);
  EXPECT_EQ(cost, 200 * 201 / 2);
  EXPECT_LE(c.queue.p50, c.queue.p99);
  EXPECT_THAT(to_json(c), testing::HasSubstr("\"completed\": 200"));
}

}  // namespace
}  // namespace toto
