// SPDX-License-Identifier: Apache-2.0
// What is said of a device and measured on it. Skipped where there is none, but for what its driver
// is called.
#include <gtest/gtest.h>

#include "backend/cuda/runtime/cuda_backend.h"
#include "backend/cuda/runtime/driver.h"
#include "toto/error.hpp"

namespace toto {
namespace {

TEST(DriverName, IsTheReleaseAndItsCuda) {
  EXPECT_EQ(
      cuda::driver_name("NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 2024", 12020),
      "535.183.01 (CUDA 12.2)");
  EXPECT_EQ(cuda::driver_name("NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release "
                              "Build  (dvs-builder@U22)",
                              13000),
            "580.159.04 (CUDA 13.0)");
}

TEST(DriverName, IsItsCudaWhereNoReleaseIsTold) {
  for (const char* text : {"", " ", "NVIDIA", "x86_64 5 . 5. .5 1.2b"}) {
    EXPECT_EQ(cuda::driver_name(text, 13010), "CUDA 13.1") << text;
  }
}

TEST(CudaCeilings, AreRefusedWithoutADevice) {
  const std::string why = cuda_unavailable();
  if (why.empty()) GTEST_SKIP() << "there is a device";
  for (const auto of : {cuda_ceilings, cuda_device}) {
    try {
      (void)of();
      FAIL() << "found a device that is not there";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "device_unavailable");
      EXPECT_EQ(e.message(), why);
    }
  }
}

TEST(CudaCeilings, AreThoseOfADevice) {
  const std::string why = cuda_unavailable();
  if (!why.empty()) GTEST_SKIP() << why;
  const DeviceCeilings c = cuda_ceilings();
  EXPECT_NE(c.device, "");
  EXPECT_NE(c.driver.find("CUDA "), std::string::npos) << c.driver;
  EXPECT_EQ(c.architecture.substr(0, 3), "sm_");
  EXPECT_GT(c.f32_flops, 1e11);
  EXPECT_GT(c.tf32_flops, 1e11);
  EXPECT_GT(c.bf16_flops, 1e11);
  EXPECT_GT(c.copy_bytes, 1e10);
  EXPECT_LT(c.f32_flops, 1e15);  // a time that was not waited for would give more
  EXPECT_LT(c.tf32_flops, 1e16);
  EXPECT_LT(c.bf16_flops, 1e17);
  EXPECT_LT(c.copy_bytes, 1e14);
  const DeviceCeilings alone = cuda_device();
  EXPECT_EQ(alone.device, c.device);
  EXPECT_EQ(alone.driver, c.driver);
  EXPECT_EQ(alone.architecture, c.architecture);
  EXPECT_EQ(alone.f32_flops + alone.tf32_flops + alone.bf16_flops + alone.copy_bytes, 0);
}

}  // namespace
}  // namespace toto
