// SPDX-License-Identifier: Apache-2.0
// What a service refuses, stops and survives.
#include <gmock/gmock.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>

#include "core/cpu_info.h"
#include "service_fake.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::code_of;
using test::fake_request;
using test::FakeLog;
using test::PluggedService;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Ids = std::vector<std::string>;

TEST(ServiceRefusal, AFullQueueSaysSo) {
  ServiceOptions options;
  options.max_queue = 2;
  PluggedService p(options);
  const Future a = p.service.submit(fake_request("a")), b = p.service.submit(fake_request("b"));
  const Future c = p.service.submit(fake_request("c"));
  ASSERT_TRUE(c.ready());
  EXPECT_EQ(code_of(c), "queue_full");
  EXPECT_THAT(c.error()->what(), HasSubstr("2 requests wait already"));
  EXPECT_THAT(c.error()->remedy(), HasSubstr("try again"));
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"a", "b"}));
  EXPECT_EQ(p.service.counters().refused_queue_full, 1U);
}

TEST(ServiceRefusal, AFullQueueSaysHowLongToWaitOnceSomethingWasMeasured) {
  ServiceOptions options;
  options.max_queue = 1;
  test::Gate second;
  PluggedService p(options, [&](std::span<const Request* const> requests, const StopCheck&) {
    if (requests.front()->series.id == "runs") second.pass();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  p.gate.open();
  (void)p.service.submit(fake_request("measured", 100)).get();
  const std::size_t before = p.log.all().size();
  const Future runs = p.service.submit(fake_request("runs", 100));
  p.log.wait_for(before + 1);
  const Future waits = p.service.submit(fake_request("waits", 100));
  const Future refused = p.service.submit(fake_request("refused", 100));
  const ServiceEstimate estimate = p.service.estimate(fake_request("next", 100));
  second.open();
  EXPECT_EQ(code_of(refused), "queue_full");
  EXPECT_THAT(refused.error()->remedy(), testing::MatchesRegex("try again in [0-9.]+ s"));
  EXPECT_GT(estimate.request.seconds, 0.002);
  EXPECT_GE(estimate.wait_seconds, estimate.request.seconds);
  EXPECT_EQ(estimate.requests_ahead, 1U);
}

TEST(ServiceRefusal, ARequestThatIsTooLargeIsToldByHowMuch) {
  ServiceOptions options;
  options.max_request_cost = 100;
  options.memory_limit = 50'000;  // a fake request takes 1,000 bytes for each token
  FakeLog log;
  Service service = test::fake_service(log, 1, {}, options);
  const Future cost = service.submit(fake_request("cost", 250));
  EXPECT_EQ(code_of(cost), "request_too_large");
  EXPECT_THAT(cost.error()->what(), HasSubstr("at most 100 tokens (max_request_cost), found 250"));
  const Future bytes = service.submit(fake_request("bytes", 60));
  EXPECT_EQ(code_of(bytes), "request_too_large");
  EXPECT_THAT(bytes.error()->what(), HasSubstr("memory_limit"));
  EXPECT_EQ(code_of(service.submit(fake_request("fits", 50))), "");
  EXPECT_EQ(service.counters().refused_too_large, 2U);
}

TEST(ServiceRefusal, AnInvalidRequestIsRefusedBeforeItWaits) {
  PluggedService p;
  const Future f = p.service.submit(fake_request("x", 0));
  ASSERT_TRUE(f.ready());
  EXPECT_EQ(code_of(f), "invalid_horizon");
  EXPECT_THROW((void)p.service.estimate(fake_request("x", 0)), Error);
}

TEST(ServiceRefusal, ACancelledRequestLeavesTheQueueAtOnce) {
  PluggedService p;
  Future gone = p.service.submit(fake_request("gone"));
  const Future stays = p.service.submit(fake_request("stays"));
  gone.cancel();
  ASSERT_TRUE(gone.ready());
  EXPECT_EQ(code_of(gone), "cancelled");
  EXPECT_EQ(gone.error()->status(), ExitStatus::interrupted);
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"stays"}));
  EXPECT_EQ(p.service.counters().cancelled, 1U);
  gone.cancel();
  EXPECT_EQ(p.service.counters().cancelled, 1U);
}

TEST(ServiceRefusal, ARunningRequestThatNobodyWaitsForIsStopped) {
  std::atomic<int> polls{0};
  PluggedService p({}, [&](auto, const StopCheck& stop) {
    while (!stop()) {
      ++polls;
      std::this_thread::yield();
    }
    throw Error(ExitStatus::interrupted, "interrupted", "stopped");
  });
  p.gate.open();
  Future a = p.service.submit(fake_request("a"));
  p.log.wait_for(2);
  EXPECT_FALSE(a.ready());
  a.cancel();
  EXPECT_EQ(code_of(a), "cancelled");
}

TEST(ServiceRefusal, ACancelledRequestDoesNotStopItsNeighbours) {
  Future first;
  test::Gate submitted;
  PluggedService p({}, [&](auto, const StopCheck& stop) {
    submitted.pass();
    first.cancel();
    if (stop()) throw std::runtime_error("stopped");
  });
  first = p.service.submit(fake_request("a"));
  Future second = p.service.submit(fake_request("b"));
  submitted.open();
  p.gate.open();
  EXPECT_EQ(code_of(first), "cancelled");
  EXPECT_EQ(second.get().mean, std::vector<float>{1});
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"a", "b"}));
}

TEST(ServiceRefusal, AnExpiredRequestIsNotComputed) {
  PluggedService p;
  Request late = fake_request("late"), soon = fake_request("soon"), fine = fake_request("fine");
  late.deadline = Clock::now() - std::chrono::seconds(1);
  soon.deadline = Clock::now() + std::chrono::milliseconds(1);
  fine.deadline = Clock::now() + std::chrono::hours(1);
  const Future l = p.service.submit(late), s = p.service.submit(soon), f = p.service.submit(fine);
  EXPECT_TRUE(l.ready());
  EXPECT_EQ(code_of(l), "deadline_exceeded");
  while (Clock::now() <= *soon.deadline) std::this_thread::yield();
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"fine"}));
  EXPECT_EQ(code_of(s), "deadline_exceeded");
  EXPECT_EQ(code_of(f), "");
  EXPECT_EQ(p.service.counters().expired, 2U);
}

TEST(ServiceRefusal, ARunningRequestIsStoppedAtItsDeadline) {
  FakeLog log;
  Service service = test::fake_service(log, 1, [](auto, const StopCheck& stop) {
    while (!stop()) std::this_thread::yield();
    throw Error(ExitStatus::interrupted, "interrupted", "stopped");
  });
  Request request = fake_request("x");
  request.deadline = Clock::now() + std::chrono::milliseconds(30);
  EXPECT_EQ(code_of(service.submit(request)), "deadline_exceeded");
}

TEST(ServiceRefusal, DrainingFinishesWhatIsThere) {
  PluggedService p;
  const Future a = p.service.submit(fake_request("a"));
  EXPECT_FALSE(p.service.drain(std::chrono::milliseconds(1)));
  EXPECT_EQ(code_of(p.service.submit(fake_request("b"))), "draining");
  EXPECT_THAT(p.rest(), ElementsAre(Ids{"a"}));
  EXPECT_EQ(code_of(a), "");
  EXPECT_EQ(p.service.counters().refused_draining, 1U);
}

TEST(ServiceRefusal, AServiceThatIsDestroyedWhileBusyAnswersEverybody) {
  std::vector<Future> futures;
  {
    FakeLog log;
    Service service = test::fake_service(log, 2, [](auto, const StopCheck& stop) {
      while (!stop()) std::this_thread::yield();
      throw Error(ExitStatus::interrupted, "interrupted", "stopped");
    });
    for (int i = 0; i < 50; ++i) futures.push_back(service.submit(fake_request("x")));
    log.wait_for(2);
  }
  for (Future& f : futures) {
    ASSERT_TRUE(f.ready());
    EXPECT_EQ(code_of(f), "cancelled");
    f.cancel();  // the service is gone: nothing happens
  }
}

TEST(ServiceRefusal, AnExceptionReachesOnlyItsRequest) {
  PluggedService p({}, [](std::span<const Request* const> requests, const StopCheck&) {
    for (const Request* r : requests) {
      if (r->series.id == "bad") throw Error(ExitStatus::bad_data, "not_finite", "bad value");
      if (r->series.id == "worse") throw std::runtime_error("worse");
      if (r->series.id == "memory") throw std::bad_alloc();
      if (r->series.id == "worst") throw 1;  // NOLINT: what no program should do
    }
  });
  std::vector<Future> futures;
  for (const char* id : {"a", "bad", "b", "worse", "memory", "worst", "c"}) {
    futures.push_back(p.service.submit(fake_request(id)));
  }
  (void)p.rest();
  std::vector<std::string> codes;
  for (const Future& f : futures) codes.push_back(code_of(f));
  EXPECT_THAT(codes,
              ElementsAre("", "not_finite", "", "internal", "out_of_memory", "internal", ""));
}

TEST(ServiceRefusal, ACallbackIsCalledOnceWhateverHappens) {
  PluggedService p;
  std::atomic<int> calls{0};
  const auto done = [&](const Future& f) {
    EXPECT_TRUE(f.ready());
    ++calls;
    throw std::runtime_error("a callback that throws");
  };
  (void)p.service.submit(fake_request("computed"), done);
  (void)p.service.submit(fake_request("invalid", 0), done);
  p.service.submit(fake_request("cancelled"), done).cancel();
  EXPECT_EQ(calls, 2);
  (void)p.rest();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(p.service.counters().callback_errors, 3U);
}

TEST(ServiceRefusal, ABorrowedSeriesIsNotCopiedAndOthersAre) {
  std::vector<float> values = {1, 2, 3};
  const float* seen = nullptr;
  FakeLog log;
  Service service =
      test::fake_service(log, 1, [&](std::span<const Request* const> requests, const StopCheck&) {
        seen = requests.front()->series.values.data();
      });
  Request request = fake_request("x");
  request.series.values = values;
  service.submit(request).wait();
  EXPECT_NE(seen, values.data());
  request.borrow = true;
  service.submit(request).wait();
  EXPECT_EQ(seen, values.data());
}

TEST(ServiceRefusal, AServiceThatWasMovedFromSaysSo) {
  FakeLog log;
  Service from = test::fake_service(log);
  Service to = std::move(from);
  EXPECT_EQ(to.forecast(fake_request("x")).mean, std::vector<float>{1});
  try {
    (void)from.counters();  // NOLINT(bugprone-use-after-move)
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "moved_from");
  }
}

TEST(ServiceDevices, SeveralGpusShareTheThreads) {
  const auto of = [](int threads, const char* devices) {
    LoadOptions options;
    options.threads = threads;
    return threads_of_each(options, parse_devices(devices));
  };
  EXPECT_EQ(of(8, "cuda:0,cuda:1"), 4);
  EXPECT_EQ(of(8, "cuda:0,cuda:1,cuda:2"), 2);
  EXPECT_EQ(of(1, "cuda:0,cuda:1"), 1);
  EXPECT_EQ(of(8, "cuda:1"), 8);
  EXPECT_EQ(of(8, "cpu,cuda:0"), 8);
  EXPECT_EQ(of(0, "cuda:0"), 0);  // left to Model::load
  EXPECT_EQ(of(0, "cuda:0,cuda:1"), std::max(1, available_cores() / 2));
  const test::ScopedEnvironment environment("TOTO_NUM_THREADS", "6");
  EXPECT_EQ(of(0, "cuda:0,cuda:1"), 3);
  EXPECT_EQ(of(8, "cuda:0,cuda:1"), 4);
}

TEST(ServiceDevices, WordsThatAreNoDevice) {
  EXPECT_THAT(parse_devices("cpu"), ElementsAre("cpu"));
  EXPECT_THAT(parse_devices("cuda,cpu"), ElementsAre("cuda:0", "cpu"));
  for (const char* text :
       {"", "gpu", "cpu,", "cpu,cpu", "cuda:", "cuda:x", "cuda:-1", "cuda,cuda:0"}) {
    try {
      (void)parse_devices(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "invalid_device") << text;
    }
  }
  EXPECT_THAT(parse_devices("cuda:1,cuda:0"), ElementsAre("cuda:1", "cuda:0"));
  if (const int count = cuda_devices(); count > 0) {
    EXPECT_EQ(parse_devices("cuda:all").size(), static_cast<std::size_t>(count));
  } else {
    EXPECT_THROW((void)parse_devices("cuda:all"), Error);
  }
}

}  // namespace
}  // namespace toto
