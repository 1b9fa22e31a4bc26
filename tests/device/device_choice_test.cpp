// SPDX-License-Identifier: Apache-2.0
// Which device the built program takes, and what it says where there is none.
#include <tuple>

#include "support/program.h"
#include "toto/model.hpp"

namespace toto::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class DeviceChoice : public Program {
 protected:
  Result forecast(std::vector<std::string> more,
                  std::vector<std::pair<std::string, std::string>> environment = {}) {
    write("in.csv", two_columns());
    std::vector<std::string> arguments = {"forecast",  "in.csv", "--model",   tiny_model(),
                                          "--horizon", "12",     "--samples", "8",
                                          "--output",  "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(Invocation{arguments, "", std::move(environment), ""});
  }
};

/// Of a test of what happens without a device.
#define TOTO_SKIP_WITH_DEVICE() \
  if (cuda_unavailable().empty()) GTEST_SKIP() << "there is a device"

TEST_F(DeviceChoice, TheProgramStartsWithoutADriver) {
  const Result result = run({"--version"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "toto " TOTO_VERSION "\n");
}

TEST_F(DeviceChoice, TheReasonIsOfThisBuild) {
  TOTO_SKIP_WITH_DEVICE();
  const std::string absent = "this build of toto has no CUDA backend";
  if (TOTO_WITH_CUDA) {
    EXPECT_NE(cuda_unavailable(), absent);
  } else {
    EXPECT_EQ(cuda_unavailable(), absent);
  }
}

TEST_F(DeviceChoice, CudaThatCannotBeHadIsAnError) {
  TOTO_SKIP_WITH_DEVICE();
  const Result result = forecast({"--device", "cuda"});
  expect_failure(result, 69, "device_unavailable");
  EXPECT_THAT(result.err, HasSubstr("--device: " + cuda_unavailable()));
  EXPECT_THAT(result.err, HasSubstr("--device cpu"));
  EXPECT_EQ(result.out, "");
}

TEST_F(DeviceChoice, AutoIsTheCpuAndSaysSoOnce) {
  TOTO_SKIP_WITH_DEVICE();
  const Result cpu = forecast({"--device", "cpu"});
  const Result automatic = forecast({"--device", "auto"});
  EXPECT_EQ(automatic.status, 0) << automatic.err;
  EXPECT_EQ(automatic.err, "toto: warning: running on the CPU: " + cuda_unavailable() + "\n");
  EXPECT_EQ(automatic.out, cpu.out);
}

TEST_F(DeviceChoice, CudaDoesNotComputeWhatOnlyACpuDoes) {  // with a device and without
  const Result wide = forecast({"--device", "cuda", "--precision", "float64"});
  expect_failure(wide, 2, "unsupported_precision");
  EXPECT_THAT(wide.err, HasSubstr("--device: float64"));
  const Result whole = forecast({"--device", "cuda", "--precision", "int8"});
  expect_failure(whole, 2, "unsupported_precision");
  EXPECT_THAT(whole.err, HasSubstr("--device: int8"));
  const Result plain = forecast({"--device", "cuda", "--backend", "reference"});
  expect_failure(plain, 2, "conflicting_flags");
  EXPECT_THAT(plain.err, HasSubstr("--device: the reference backend"));
  expect_failure(forecast({"--precision", "float64"}, {{"TOTO_COMPILE_BACKEND", "cuda"}}), 78,
                 "unsupported_precision");
  expect_failure(run({"bench", "a", "--device", "cuda", "--dtype", "float32,float64"}), 2,
                 "unsupported_precision");
}

TEST_F(DeviceChoice, AutoLeavesToTheCpuWhatOnlyACpuDoes) {
  for (const auto& [flag, word, why] :
       {std::tuple{"--precision", "float64", "float64 is computed on a CPU only"},
        {"--precision", "int8", "int8 is computed on a CPU only"},
        {"--backend", "reference", "the reference backend computes on a CPU only"}}) {
    const Result automatic = forecast({"--device", "auto", flag, word});
    EXPECT_EQ(automatic.status, 0) << automatic.err;
    EXPECT_EQ(automatic.err, std::string("toto: warning: running on the CPU: ") + why + "\n");
    EXPECT_EQ(automatic.out, forecast({flag, word}).out);
  }
}

TEST_F(DeviceChoice, TheVariableIsReadWhereThereIsNoFlag) {
  EXPECT_EQ(forecast({}, {{"TOTO_COMPILE_BACKEND", "cpu"}}).err, "");
  expect_failure(forecast({}, {{"TOTO_COMPILE_BACKEND", "tpu"}}), 78, "unknown_device");
  EXPECT_EQ(forecast({"--device", "cpu"}, {{"TOTO_COMPILE_BACKEND", "tpu"}}).status, 0);
}

TEST_F(DeviceChoice, TheVariableDoesWhatTheFlagDoes) {
  TOTO_SKIP_WITH_DEVICE();
  const Result cuda = forecast({}, {{"TOTO_COMPILE_BACKEND", "cuda"}});
  expect_failure(cuda, 69, "device_unavailable");
  EXPECT_THAT(cuda.err, HasSubstr("TOTO_COMPILE_BACKEND: " + cuda_unavailable()));
  EXPECT_EQ(forecast({}, {{"TOTO_COMPILE_BACKEND", "auto"}}).err,
            "toto: warning: running on the CPU: " + cuda_unavailable() + "\n");
}

}  // namespace
}  // namespace toto::test
