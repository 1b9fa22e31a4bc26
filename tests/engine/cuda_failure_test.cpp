// SPDX-License-Identifier: Apache-2.0
// A device with too little memory, and one that fails. These take all memory of the device for a
// moment. Skipped where there is none.
#include <cstdio>
#include <cstdlib>
#include <new>

#include "support/log_lines.h"
#include "support/needs_device.h"
#include "support/requests.h"

namespace toto {
namespace {

using test::expect_same;
using test::many;
using test::odd_config;
using test::views;

/// Holds all memory of the device but `leave` bytes.
class Hog {
 public:
  explicit Hog(std::size_t leave) : backend_(make_cuda_backend({})) {
    void* const reserve = backend_->allocate(leave);
    for (const std::size_t block : {std::size_t{256} << 20, std::size_t{2} << 20}) {
      try {
        for (;;) taken_.push_back(backend_->allocate(block));
      } catch (const std::bad_alloc&) {
        continue;  // with smaller ones
      }
    }
    backend_->release(reserve);
  }
  ~Hog() {
    for (void* memory : taken_) backend_->release(memory);
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;

 private:
  std::unique_ptr<Backend> backend_;
  std::vector<void*> taken_;
};

std::shared_ptr<Model::Impl> make(const std::string& backend) {
  LoadOptions options;
  options.backend = backend;
  options.threads = 1;
  return test::make_impl(odd_config(), false, Execution{}, 5, options);
}

ForecastOptions options() {
  ForecastOptions o;
  o.horizon = 20;
  o.num_samples = 64;
  o.seed = 3;
  return o;
}

TEST(CudaFailure, ABatchThatDoesNotFitIsHalvedAndHasTheSameBits) {
  TOTO_NEEDS_DEVICE();
  const Model model(make("cuda"));
  const auto owned = many(200);
  std::vector<Forecast> expected(owned.size()), found(owned.size());
  std::size_t bytes = 0;
  {
    Forecaster whole(model);
    whole.forecast(views(owned), options(), expected);
    bytes = whole.counters().working_bytes;
  }
  const Hog hog(bytes / 2);
  Forecaster split(model);
  split.forecast(views(owned), options(), found);
  EXPECT_GT(split.counters().splits, 0U);
  EXPECT_EQ(split.counters().graph_fallbacks, 0U);
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(found[i], expected[i]);
}

TEST(CudaFailure, WithoutMemoryItIsAnErrorOrTheCpu) {
  TOTO_NEEDS_DEVICE();
  const auto impl = make("cuda");
  const Model model(impl);
  // One series, which cannot be split, and tens of MB: the driver keeps small pieces back.
  const std::vector<test::OwnedSeries> owned = {test::wave(0, 16000, 4)};
  const auto on_device = Forecaster(model).forecast(views(owned), options());
  const auto on_cpu = Forecaster(Model(make("cpu"))).forecast(views(owned), options());
  {
    const Hog hog(0);
    try {
      (void)Forecaster(model).forecast(views(owned), options());
      ADD_FAILURE() << "there was no memory";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "out_of_memory");
    }
    impl->load_cpu_fallback = [] { return make("cpu"); };
    std::vector<std::string> warnings;
    ForecasterOptions telling;
    telling.log = test::warnings_into(warnings);
    const auto found = Forecaster(model, telling).forecast(views(owned), options());
    for (std::size_t i = 0; i < owned.size(); ++i) expect_same(found[i], on_cpu[i]);
    EXPECT_EQ(warnings.size(), 1U);
  }
  const auto again = Forecaster(model).forecast(views(owned), options());  // memory is back
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(again[i], on_device[i]);
}

TEST(CudaFailure, WeightsThatDoNotFitAreLoadedOnTheCpu) {
  TOTO_NEEDS_DEVICE();
  const Hog hog(std::size_t{64} << 20);
  std::vector<std::string> warnings;
  LoadOptions options;
  options.backend = "cuda";
  EXPECT_THROW((void)Model::synthesise("toto-open-base-1.0", 1, options), Error);
  options.else_cpu = true;
  options.log = test::warnings_into(warnings);
  const Model model = Model::synthesise("toto-open-base-1.0", 1, options);
  EXPECT_EQ(model.impl().net->backend().name(), "cpu");
  EXPECT_EQ(warnings.size(), 1U);
}

/// Makes a kernel read where there is nothing, says what comes of it, and ends as the program
/// would.
[[noreturn]] void fail_on_the_device() {
  int status = 0;
  {
    const Model model(make("cuda"));
    Forecaster forecaster(model);
    const auto owned = many(3);
    (void)forecaster.forecast(views(owned), options());
    Backend& backend = model.impl().net->backend();
    const View nowhere = view_of(reinterpret_cast<float*>(std::uintptr_t{1} << 20), 64, 84);
    backend.rms_norm(nowhere, nowhere, nowhere);
    for (int i = 0; i < 2; ++i) {  // and again: it lasts
      try {
        (void)forecaster.forecast(views(owned), options());
      } catch (const Error& e) {
        std::fprintf(stderr, "%d: %s\n", i, e.what());
        status = static_cast<int>(e.status());
      }
    }
  }
  std::exit(status);
}

TEST(CudaFailureDeathTest, AnErrorThatLastsIsSaidAndTheProcessEndsInOrder) {
  TOTO_NEEDS_DEVICE();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // CUDA does not survive a fork
  EXPECT_EXIT(fail_on_the_device(), testing::ExitedWithCode(70),
              "0: .device_failed. CUDA: .*start it again.*\n1: .device_failed. CUDA: .*start it "
              "again");
}

}  // namespace
}  // namespace toto
