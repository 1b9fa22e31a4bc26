// SPDX-License-Identifier: Apache-2.0
// While a device computes a chunk or a micro-batch, the next one is made ready: the same bits, two
// graphs of a kind and no more, and nothing is lost where something fails in the middle. The device
// is the CPU (capturing_backend.h).
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <new>
#include <utility>

#include "support/capturing_backend.h"
#include "support/log_lines.h"
#include "support/requests.h"
#include "toto/service.hpp"

namespace toto {
namespace {

using test::CapturingBackend;
using test::expect_same;
using test::odd_model_on;
using test::OwnedSeries;
using test::views;
using test::wave;
using testing::Contains;
using testing::HasSubstr;

constexpr std::size_t kTokens = 32;    // of a series
constexpr std::size_t kChunk = 512;    // series: 16,384 tokens
constexpr std::size_t kSeries = 2400;  // five chunks of 480

ForecastOptions brief() {
  ForecastOptions o;
  o.horizon = 5;
  return o;
}

std::vector<OwnedSeries> long_ones(std::size_t count) {
  std::vector<OwnedSeries> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(wave(i, 8 * kTokens));
  return all;
}

class Overlap : public testing::Test {
 protected:
  [[nodiscard]] std::vector<Forecast> expected(const ForecastOptions& o = brief()) const {
    return Forecaster(plain_).forecast(views(owned_), o);
  }
  void expect_all(const std::vector<Forecast>& found, const std::vector<Forecast>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) expect_same(found[i], expected[i]);
  }
  /// Forecasts what is expected to fail, and returns the code of the error.
  std::string failure(Forecaster& forecaster, const ForecastOptions& o = brief()) {
    try {
      (void)forecaster.forecast(views(owned_), o);
    } catch (const Error& error) {
      return error.code();
    }
    return {};
  }

  std::shared_ptr<CapturingBackend> device_ = std::make_shared<CapturingBackend>();
  Model model_{odd_model_on(device_)};
  Model plain_{odd_model_on(make_backend({}))};  // operation by operation
  std::vector<OwnedSeries> owned_ = long_ones(kSeries);
};

TEST_F(Overlap, ChunksOfACallOverlapAndHaveTheBitsOfOperationByOperation) {
  Forecaster forecaster(model_);
  ForecastOptions o = brief();
  std::size_t done = 0, all = 0;
  o.progress = [&](std::size_t now, std::size_t total) {
    EXPECT_GE(now, done);
    done = now;
    all = total;
    return true;
  };
  expect_all(forecaster.forecast(views(owned_), o), expected());
  EXPECT_EQ(device_->most_under_way(), 2U);
  EXPECT_EQ(done, all);
  EXPECT_EQ(all, kSeries);
  const Counters first = forecaster.counters();
  EXPECT_EQ(first.graph_replays, 5U);
  EXPECT_EQ(first.graph_captures, 2U);
  EXPECT_EQ(first.splits, 0U);

  done = 0;
  expect_all(forecaster.forecast(views(owned_), o), expected());
  const Counters second = forecaster.counters();
  EXPECT_EQ(second.graph_captures, first.graph_captures);
  EXPECT_EQ(second.allocations, first.allocations);
  EXPECT_EQ(second.plan_builds, first.plan_builds);
  EXPECT_EQ(device_->stagings(), 2 * 2);
}

TEST_F(Overlap, TrajectoriesAndOddLengthsOverlapToo) {
  owned_.clear();
  for (std::size_t i = 0; i < 300; ++i) owned_.push_back(wave(i, 300 + (i * 37) % 900, 1 + i % 2));
  ForecastOptions o = test::six_samples(20);
  o.num_samples = 3;
  Forecaster forecaster(model_);
  expect_all(forecaster.forecast(views(owned_), o), expected(o));
  EXPECT_EQ(device_->most_under_way(), 2U);
  EXPECT_EQ(forecaster.counters().graph_fallbacks, 0U);
}

TEST_F(Overlap, WhatIsOneChunkIsOneGraph) {
  owned_.resize(kChunk);
  Forecaster forecaster(model_);
  for (int i = 0; i < 3; ++i) (void)forecaster.forecast(views(owned_), brief());
  EXPECT_EQ(device_->most_under_way(), 1U);
  EXPECT_EQ(forecaster.counters().graph_captures, 1U);
}

// Threads that sleep while the device computes are awake when results are there, if there is work
// for them.
TEST_F(Overlap, ThreadsAreWokenBeforeResultsAreThere) {
  std::string calls;
  device_->on_copy = [&] { calls += "copy "; };
  device_->on_finish = [&] { calls += "finish "; };
  Forecaster forecaster(model_);
  owned_.resize(kChunk);
  (void)forecaster.forecast(views(owned_), brief());
  EXPECT_EQ(calls, device_->workers() > 1 ? "copy finish " : "finish ");
  calls.clear();
  owned_.resize(3);
  (void)forecaster.forecast(views(owned_), brief());
  EXPECT_EQ(calls, "finish ");
}

// Of values that change from call to call, so that what an earlier one has left is wrong.
TEST_F(Overlap, ResultsAreReadWhileOthersAreCopied) {
  owned_.resize(kChunk);
  Forecaster forecaster(model_);
  for (std::size_t call = 0; call < 3; ++call) {
    for (OwnedSeries& s : owned_) s.values[s.values.size() - 1 - call] += 3;
    expect_all(forecaster.forecast(views(owned_), brief()), expected());
  }
  EXPECT_EQ(device_->parts() > 0, device_->workers() > 1);
  const std::size_t parts = device_->parts();
  owned_.resize(3);  // too few to share
  expect_all(forecaster.forecast(views(owned_), brief()), expected());
  EXPECT_EQ(device_->parts(), parts);
}

// Where a second graph of a kind finds no room, chunks come one after the other.
TEST_F(Overlap, WithoutMemoryForASecondGraphTheFirstIsWaitedFor) {
  Forecaster forecaster(model_);
  device_->on_staging = [this] {
    if (device_->stagings() >= 2) throw std::bad_alloc();
  };
  expect_all(forecaster.forecast(views(owned_), brief()), expected());
  EXPECT_EQ(device_->most_under_way(), 1U);
  EXPECT_EQ(forecaster.counters().graph_captures, 1U);
  EXPECT_EQ(forecaster.counters().splits, 0U);
  EXPECT_EQ(device_->stagings(), 2);
}

TEST_F(Overlap, MaxPlansBoundsGraphsOfAKindToo) {
  ForecasterOptions one;
  one.max_plans = 1;
  Forecaster forecaster(model_, one);
  expect_all(forecaster.forecast(views(owned_), brief()), expected());
  EXPECT_EQ(device_->most_under_way(), 1U);
  EXPECT_EQ(device_->stagings(), 2);
}

TEST_F(Overlap, AFailureInTheMiddleEndsTheCallAndNotTheForecaster) {
  const std::vector<OwnedSeries> all = owned_, few(all.begin(), all.begin() + kChunk);
  owned_ = few;
  const std::vector<Forecast> of_few = expected();
  for (const bool launching : {false, true}) {
    for (int last = 0; last < 5; ++last) {
      owned_ = all;
      Forecaster forecaster(model_);
      int left = last;
      const auto fail = [&] {
        if (left-- == 0) throw Error(ExitStatus::internal, "device_failed", "it has stopped");
      };
      (launching ? device_->on_replay : device_->on_finish) = fail;
      EXPECT_EQ(failure(forecaster), "device_failed");
      device_->on_replay = device_->on_finish = {};
      owned_ = few;
      expect_all(forecaster.forecast(views(owned_), brief()), of_few);
    }
  }
}

TEST_F(Overlap, ACallStopsBetweenChunks) {
  Forecaster forecaster(model_);
  int replays = 0;
  device_->on_replay = [&] { ++replays; };
  ForecastOptions o = brief();
  o.progress = [](std::size_t done, std::size_t) { return done == 0; };
  EXPECT_EQ(failure(forecaster, o), "interrupted");
  EXPECT_EQ(replays, 2);  // of five
  expect_all(forecaster.forecast(views(owned_), brief()), expected());
}

TEST_F(Overlap, WhatCannotBeCapturedWaitsForWhatIsUnderWay) {
  // Longer and longer, so that the last chunk has too many patches for a graph.
  std::vector<ForecastOptions> options(kSeries, brief());
  for (std::size_t i = kSeries - 10; i < kSeries; ++i) {
    options[i] = test::six_samples(65 * 8);
    options[i].num_samples = 1;
  }
  const auto series = views(owned_);
  std::vector<Forecast> found(kSeries), plain(kSeries);
  Forecaster forecaster(model_);
  forecaster.forecast(series, options, found);
  Forecaster(plain_).forecast(series, options, plain);
  expect_all(found, plain);
  EXPECT_EQ(forecaster.counters().graph_fallbacks, 1U);
  EXPECT_EQ(device_->most_under_way(), 2U);
}

// --- a service ---

/// What a service reads of a model, which the models of tests leave empty.
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

class ServiceOverlap : public testing::Test {
 protected:
  ServiceOverlap() {
    for (std::size_t i = 0; i < 240; ++i) {
      owned_.push_back(wave(i, 20 + (i * 37) % 100, 1 + i % 3));
      ForecastOptions& o = options_.emplace_back(test::six_samples(3 + i % 20));
      o.num_samples = 1 + i % 5;
      o.seed = i % 7;
    }
    bounds_.max_batch_requests = 30;
  }
  std::vector<Future> submit_all(Service& service) {
    std::vector<Future> futures;
    for (std::size_t i = 0; i < owned_.size(); ++i) {
      futures.push_back(service.submit({owned_[i].view(), options_[i]}));
    }
    return futures;
  }
  void expect_bits(std::vector<Future>& futures) {
    Forecaster alone(plain_);
    for (std::size_t i = 0; i < futures.size(); ++i) {
      const Series series = owned_[i].view();
      expect_same(futures[i].get(), alone.forecast({&series, 1}, options_[i]).front());
    }
  }
  /// From now on nobody gets results before a second micro-batch is under way; a minute at most.
  void wait_for_two() {
    device_->on_replay = [this] {
      const std::scoped_lock lock(mutex_);
      ++launches_;
      launched_.notify_all();
    };
    device_->on_finish = [this] {
      std::unique_lock lock(mutex_);
      if (std::exchange(finishing_, true)) return;
      waited_ =
          launched_.wait_for(lock, std::chrono::minutes(1), [this] { return launches_ >= 2; });
    };
  }

  std::shared_ptr<CapturingBackend> device_ = std::make_shared<CapturingBackend>();
  std::shared_ptr<Model::Impl> impl_ = odd_model_on(device_);
  Model model_{described(impl_)};
  Model plain_{odd_model_on(make_backend({}))};
  std::vector<OwnedSeries> owned_;
  std::vector<ForecastOptions> options_;
  ServiceOptions bounds_;
  std::mutex mutex_;
  std::condition_variable launched_;
  int launches_ = 0;
  bool finishing_ = false;  // somebody has begun to wait
  bool waited_ = false;     // the first of them saw a second launch
};

TEST_F(ServiceOverlap, AMicroBatchIsMadeReadyWhileAnotherIsComputed) {
  wait_for_two();
  Service service(model_, bounds_);
  auto futures = submit_all(service);
  expect_bits(futures);
  EXPECT_TRUE(waited_);
  service.close();
  EXPECT_EQ(service.counters().completed, owned_.size());
}

// Requests of one shape, so that the two micro-batches are of one kind, too.
TEST_F(ServiceOverlap, TwoMicroBatchesOfAKindHaveAGraphEach) {
  for (std::size_t i = 0; i < owned_.size(); ++i) {
    owned_[i] = wave(i, 64);
    options_[i] = brief();
  }
  wait_for_two();
  Service service(model_, bounds_);
  auto futures = submit_all(service);
  expect_bits(futures);
  EXPECT_TRUE(waited_);
}

TEST_F(ServiceOverlap, AFailureReachesThoseThatCausedIt) {
  wait_for_two();
  owned_[100].values.assign(owned_[100].values.size(), 3e38F);
  Service service(model_, bounds_);
  auto futures = submit_all(service);
  Forecaster alone(plain_);
  for (std::size_t i = 0; i < futures.size(); ++i) {
    if (i == 100) continue;
    const Series series = owned_[i].view();
    expect_same(futures[i].get(), alone.forecast({&series, 1}, options_[i]).front());
  }
  futures[100].wait();
}

TEST_F(ServiceOverlap, CancelledOnesEndAndTheOthersGoOn) {
  Service service(model_, bounds_);
  auto futures = submit_all(service);
  for (std::size_t i = 0; i < futures.size(); i += 2) futures[i].cancel();
  Forecaster alone(plain_);
  for (std::size_t i = 1; i < futures.size(); i += 2) {
    const Series series = owned_[i].view();
    expect_same(futures[i].get(), alone.forecast({&series, 1}, options_[i]).front());
  }
  for (Future& future : futures) future.wait();
}

TEST_F(ServiceOverlap, ClosingInTheMiddleLeavesNothingUnderWay) {
  for (int i = 0; i < 5; ++i) {
    Service service(model_, bounds_);
    auto futures = submit_all(service);
    futures[static_cast<std::size_t>(i) * 20].wait();
    service.close();
    for (const Future& future : futures) EXPECT_TRUE(future.ready());
  }
}

// All lanes go to the CPU once one of them finds no memory on the device.
TEST_F(ServiceOverlap, WithoutMemoryAllLanesGoToTheCpu) {
  for (std::size_t i = 120; i < owned_.size(); ++i) owned_[i] = wave(i, 900);  // another graph
  std::atomic<int> loaded{0};
  impl_->load_cpu_fallback = [&] {
    ++loaded;
    return odd_model_on(make_backend({}));
  };
  std::vector<std::string> told;
  bounds_.forecaster.log = test::warnings_into(told);
  int left = 3;
  device_->on_staging = [&] {
    if (left == 0) throw std::bad_alloc();
    --left;
  };
  Service service(model_, bounds_);
  auto futures = submit_all(service);
  expect_bits(futures);
  EXPECT_EQ(loaded, 1);
  EXPECT_THAT(told, Contains(HasSubstr("computed on the CPU")));
  service.close();
  EXPECT_EQ(device_->stagings(), 0);
}

}  // namespace
}  // namespace toto
