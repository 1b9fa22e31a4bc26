// SPDX-License-Identifier: Apache-2.0
// Skips a test, with the reason, where there is no CUDA device.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "backend/cuda/runtime/cuda_backend.h"

#define TOTO_NEEDS_DEVICE() \
  if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why
