// SPDX-License-Identifier: Apache-2.0
// When the memory of a device does not suffice: split, then on to the CPU where that is allowed.
// The device here is the CPU with less memory, and with recordings that never find any.
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <new>
#include <stdexcept>

#include "backend/graph_capture.h"
#include "models/cpu_fallback.h"
#include "support/faulty_backend.h"
#include "support/log_lines.h"
#include "support/requests.h"

namespace toto {
namespace {

using test::expect_same;
using test::many;
using test::odd_model_on;
using test::OwnedSeries;
using test::six_samples;
using test::views;

/// Allocations of more than `largest` fail.
struct Memory {
  std::size_t largest = SIZE_MAX;
  int left = std::numeric_limits<int>::max();  // so many more succeed at all
};

class SmallDevice : public test::FaultyBackend {
 public:
  explicit SmallDevice(Memory& memory) : FaultyBackend(make_backend({}), faults(memory)) {}

  void* allocate(std::size_t bytes) override {
    void* const memory = FaultyBackend::allocate(bytes);
    sizes_[memory] = bytes;
    return memory;
  }
  /// What was released is good for nothing.
  void release(void* memory) noexcept override {
    if (const auto found = sizes_.find(memory); found != sizes_.end()) {
      std::memset(memory, 0xFF, found->second);
      sizes_.erase(found);
    }
    FaultyBackend::release(memory);
  }
  [[nodiscard]] std::size_t held() const { return sizes_.size(); }

 private:
  std::map<void*, std::size_t> sizes_;
  static test::Faults faults(Memory& memory) {
    test::Faults f;
    f.on_allocate = [&memory](std::size_t bytes) {
      if (bytes > memory.largest) throw std::bad_alloc();
      if (memory.left == 0) throw std::bad_alloc();
      --memory.left;
    };
    return f;
  }
};

/// Would capture, if there were any memory for staging buffers.
class NeverCaptures : public SmallDevice, public GraphCapture {
 public:
  using SmallDevice::SmallDevice;
  int tries = 0;

  GraphCapture* capture() override { return this; }
  Staging allocate_staging(std::size_t /*bytes*/) override {
    ++tries;
    throw std::bad_alloc();
  }
  void release_staging(const Staging& staging) noexcept override {
    EXPECT_EQ(staging.host, nullptr);
  }
  void begin() override { unexpected(); }
  std::unique_ptr<Graph> end() override { unexpected(); }
  void abandon() noexcept override {}
  void launch(Graph&, bool, std::span<const HostResult>) override { unexpected(); }
  double finish(Graph&, bool, std::span<const HostResult>) override { unexpected(); }

 private:
  [[noreturn]] static void unexpected() { throw std::logic_error("nothing was to be captured"); }
};

/// Has memory for it, but goes no further.
class WouldCapture final : public NeverCaptures {
 public:
  using NeverCaptures::NeverCaptures;
  Staging allocate_staging(std::size_t /*bytes*/) override {
    throw Error(ExitStatus::internal, "would_capture", "it would be captured");
  }
};

struct Warnings {
  std::vector<std::string> lines;
  ForecasterOptions options() {
    ForecasterOptions o;
    o.log = test::warnings_into(lines);
    return o;
  }
};

TEST(DeviceMemory, ABatchThatDoesNotFitIsSplitAndHasTheSameBits) {
  Memory memory;
  const Model model(odd_model_on(std::make_shared<SmallDevice>(memory)));
  const auto owned = many();
  Forecaster whole(model), split(model);
  const auto expected = whole.forecast(views(owned), six_samples());
  memory.largest = whole.counters().working_bytes / 12;
  const auto found = split.forecast(views(owned), six_samples());
  EXPECT_GT(split.counters().splits, 0U);
  EXPECT_LE(split.counters().working_bytes, memory.largest);
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(found[i], expected[i]);
}

TEST(DeviceMemory, WhatFitsNowhereIsAnError) {
  Memory memory;
  Forecaster forecaster(Model(odd_model_on(std::make_shared<SmallDevice>(memory))));
  memory.largest = 1000;
  const auto owned = many(3);
  try {
    (void)forecaster.forecast(views(owned), six_samples());
    FAIL() << "there was no memory";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "out_of_memory");
    EXPECT_EQ(e.status(), ExitStatus::internal);
  }
  memory.largest = SIZE_MAX;  // and goes on
  EXPECT_EQ(forecaster.forecast(views(owned), six_samples()).size(), 3U);
}

// No memory any more, from any allocation on: what was planned before is as good as ever.
TEST(DeviceMemory, AnyAllocationMayFailAndPlansStayWhole) {
  const std::vector<OwnedSeries> small = {test::wave(0, 20)};
  const std::vector<OwnedSeries> large = {test::wave(1, 4000, 3), test::wave(2, 3000)};
  const Model unlimited(odd_model_on(make_backend({})));
  const auto expected = Forecaster(unlimited).forecast(views(large), six_samples());
  int reached = 0;
  for (bool failed = true; failed; ++reached) {
    Memory memory;
    Forecaster forecaster(Model(odd_model_on(std::make_shared<SmallDevice>(memory))));
    const auto before = forecaster.forecast(views(small), six_samples()).front();
    memory.left = reached;
    try {
      const auto found = forecaster.forecast(views(large), six_samples());
      for (std::size_t i = 0; i < large.size(); ++i) expect_same(found[i], expected[i]);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "out_of_memory");
    }
    failed = memory.left == 0;
    memory.left = std::numeric_limits<int>::max();
    expect_same(forecaster.forecast(views(small), six_samples()).front(), before);
  }
  EXPECT_GT(reached, 3);  // the arena, the rotary tables, the masks of ones
}

// A graph holds 64 patches of all passes over the trajectories.
TEST(DeviceMemory, BatchesAreSmallEnoughToBeCaptured) {
  Memory memory;
  const Model model(odd_model_on(std::make_shared<WouldCapture>(memory)));
  struct Asked {
    std::size_t series, patches, samples;
  };
  for (const Asked& r : {Asked{1, 3, 1000}, {700, 6, 1000}, {2100, 3, 1000}}) {
    std::vector<OwnedSeries> owned;
    for (std::size_t i = 0; i < r.series; ++i) owned.push_back(test::wave(i, 64));
    std::vector<std::string> log;
    ForecasterOptions forecaster_options;
    forecaster_options.log = test::infos_into(log);
    Forecaster forecaster(model, forecaster_options);
    ForecastOptions o;
    o.horizon = r.patches * 8;
    o.num_samples = r.samples;
    int told = 0;
    o.progress = [&](std::size_t, std::size_t) { return ++told == 1; };  // not without a graph
    try {
      (void)forecaster.forecast(views(owned), o);
      FAIL() << "there is nothing that captures";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "would_capture") << r.series << " series: " << log.back();
    }
  }
}

TEST(DeviceMemory, WhatDoesNotFitGoesToTheCpuAndStaysThere) {
  Memory memory;
  const auto impl = odd_model_on(std::make_shared<SmallDevice>(memory));
  int loaded = 0;
  impl->load_cpu_fallback = [&] {
    ++loaded;
    return odd_model_on(make_backend({}));
  };
  const Model model(impl);
  const auto owned = many();
  Warnings warnings;
  Forecaster forecaster(model, warnings.options());
  const auto expected = forecaster.forecast(views(owned), six_samples());
  EXPECT_EQ(loaded, 0);

  memory.largest = 1000;
  Forecaster other(model, warnings.options());
  auto found = other.forecast(views(owned), six_samples());
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(found[i], expected[i]);
  ASSERT_EQ(warnings.lines.size(), 1U);
  EXPECT_NE(warnings.lines.front().find("one trajectory needs"), std::string::npos);
  EXPECT_NE(warnings.lines.front().find("computed on the CPU"), std::string::npos);

  found = other.forecast(views(owned), six_samples());  // without another warning
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(found[i], expected[i]);
  EXPECT_EQ(warnings.lines.size(), 1U);
  EXPECT_EQ(other.counters().forecasts, 2U);
  EXPECT_EQ(other.counters().series, 2 * owned.size());

  Forecaster third(model, warnings.options());  // the CPU's model is shared
  (void)third.forecast(views(owned), six_samples());
  EXPECT_EQ(warnings.lines.size(), 2U);
  EXPECT_EQ(loaded, 1);
}

TEST(DeviceMemory, AnAllocationThatFailsMidwayGoesToTheCpuToo) {
  bool fails = false;
  test::Faults faults;
  faults.on_linear = [&] {
    if (fails) throw std::bad_alloc();
  };
  const auto impl = odd_model_on(std::make_shared<test::FaultyBackend>(make_backend({}), faults));
  const auto owned = many(5);
  Forecaster alone{Model(impl)};
  const auto expected = alone.forecast(views(owned), six_samples());
  fails = true;
  EXPECT_THROW((void)alone.forecast(views(owned), six_samples()), Error);
  impl->load_cpu_fallback = [] { return odd_model_on(make_backend({})); };
  const auto found = Forecaster(Model(impl)).forecast(views(owned), six_samples());
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(found[i], expected[i]);
}

TEST(DeviceMemory, WithoutMemoryForInputsSeriesGoOneByOneAndThenToTheCpu) {
  Memory memory;
  const auto device = std::make_shared<NeverCaptures>(memory);
  const auto owned = many(5);
  const auto expected =
      Forecaster(Model(odd_model_on(make_backend({})))).forecast(views(owned), six_samples());
  const auto impl = odd_model_on(device);
  Forecaster forecaster{Model(impl)};
  try {
    (void)forecaster.forecast(views(owned), six_samples());
    FAIL() << "there was no memory";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "out_of_memory");
  }
  EXPECT_GE(device->tries, 5);  // the batch, its parts, a series with fewer and fewer trajectories
  EXPECT_GE(forecaster.counters().splits, 2U);
  EXPECT_EQ(forecaster.counters().graph_captures, 0U);
  impl->load_cpu_fallback = [] { return odd_model_on(make_backend({})); };
  const auto found = Forecaster(Model(impl)).forecast(views(owned), six_samples());
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(found[i], expected[i]);
}

TEST(DeviceMemory, WeightsThatDoNotFitAreLoadedOnTheCpu) {
  std::vector<std::string> tried, warnings;
  const LoadModel load = [&](const LoadOptions& o) -> std::shared_ptr<Model::Impl> {
    tried.push_back(o.backend);
    if (o.backend == "cuda") throw std::bad_alloc();
    return std::make_shared<Model::Impl>();
  };
  LoadOptions device;
  device.backend = "cuda";
  try {
    (void)load_with_cpu_fallback(device, load);
    FAIL() << "there was no memory";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "out_of_memory");
  }
  device.else_cpu = true;
  device.log = test::warnings_into(warnings);
  EXPECT_FALSE(load_with_cpu_fallback(device, load)->load_cpu_fallback);
  EXPECT_EQ(tried, (std::vector<std::string>{"cuda", "cuda", "cpu"}));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings.front().find("running on the CPU"), std::string::npos);
}

TEST(DeviceMemory, WeightsThatDoNotFitLeaveNothingBehind) {
  Memory memory;
  const auto device = std::make_shared<SmallDevice>(memory);
  memory.left = 5;
  EXPECT_THROW((void)odd_model_on(device), std::bad_alloc);
  EXPECT_EQ(device->held(), 0U);
}

TEST(DeviceMemory, OnlyWhatMayMoveHasACpuFallback) {
  std::vector<LoadOptions> loaded;
  const LoadModel load = [&](const LoadOptions& o) {
    loaded.push_back(o);
    return std::make_shared<Model::Impl>();
  };
  LoadOptions o;
  o.else_cpu = true;
  EXPECT_FALSE(load_with_cpu_fallback(o, load)->load_cpu_fallback);
  o.backend = "cuda";
  o.else_cpu = false;
  EXPECT_FALSE(load_with_cpu_fallback(o, load)->load_cpu_fallback);
  o.else_cpu = true;
  o.precision = Precision::bfloat16;
  const auto impl = load_with_cpu_fallback(o, load);
  ASSERT_TRUE(impl->load_cpu_fallback);
  (void)impl->load_cpu_fallback();
  EXPECT_EQ(loaded.back().backend, "cpu");
  EXPECT_EQ(loaded.back().precision, Precision::bfloat16);
}

}  // namespace
}  // namespace toto
