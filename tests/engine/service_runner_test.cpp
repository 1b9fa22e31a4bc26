// SPDX-License-Identifier: Apache-2.0
// Which requests the runner of a real model lets share a micro-batch.
#include "engine/service/forecaster_runner.h"

#include <gtest/gtest.h>

#include "support/small_model.h"

namespace toto {
namespace {

TEST(ServiceRunner, RequestsThatDecodeInAnotherWayAreNotComputedTogether) {
  const ForecasterRunner runner(test::make_model(test::spec_config()), {});
  const Request plain;
  EXPECT_TRUE(runner.compatible(plain, plain));
  Request other;
  other.options.decoding.decode_block_size = 32;
  EXPECT_FALSE(runner.compatible(plain, other));
  other = plain;
  other.options.decoding.has_missing_values = false;
  EXPECT_FALSE(runner.compatible(plain, other));
  other = plain;
  other.options.decoding.scaler_fallback_min_obs = 8;
  EXPECT_FALSE(runner.compatible(plain, other));
  other = plain;
  other.options.decoding.quantile_real_cap_k = 1e4;
  EXPECT_FALSE(runner.compatible(plain, other));
}

}  // namespace
}  // namespace toto
