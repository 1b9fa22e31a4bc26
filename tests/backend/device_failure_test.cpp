// SPDX-License-Identifier: Apache-2.0
// What is said of drivers, devices and operations that fail; no device is needed.
#include "backend/cuda/runtime/device_failure.h"

#include <gtest/gtest.h>

namespace toto::cuda {
namespace {

TEST(DeviceFailure, AnErrorThatLastsSaysThatTheProcessMustBeStartedAgain) {
  const Error error = device_failure(700, "graph launch", "cudaErrorIllegalAddress: an illegal");
  EXPECT_EQ(error.code(), "device_failed");
  EXPECT_EQ(error.status(), ExitStatus::internal);
  EXPECT_EQ(std::string(error.what()),
            "[device_failed] CUDA: graph launch: cudaErrorIllegalAddress: an illegal (the device "
            "cannot be used by this process any more: start it again)");
}

TEST(DeviceFailure, AnErrorThatPassesDoesNot) {
  for (const int error : {1, 9, 98, 801, 900, 901}) {  // invalid value, configuration, capture ...
    EXPECT_FALSE(ends_process(error)) << error;
    EXPECT_EQ(device_failure(error, "launch", "").remedy(), "");
  }
  for (const int error : {702, 710, 719}) EXPECT_TRUE(ends_process(error)) << error;
}

TEST(DeviceFailure, ADriverThatIsRefused) {
  EXPECT_EQ(refused_driver(0), "there is no NVIDIA driver");
  EXPECT_EQ(refused_driver(12040), "the NVIDIA driver is too old: CUDA 13 is needed, it has 12.4");
  EXPECT_EQ(refused_driver(11080), "the NVIDIA driver is too old: CUDA 13 is needed, it has 11.8");
}

TEST(DeviceFailure, ADeviceWithoutKernels) {
  EXPECT_EQ(old_device("Tesla V100", 7, 0),
            "Tesla V100 is too old: compute capability 8.0 is needed, it has 7.0");
}

}  // namespace
}  // namespace toto::cuda
