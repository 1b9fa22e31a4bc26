// SPDX-License-Identifier: Apache-2.0
// Owners of a driver's resources give each back once, also where making a later one fails.
#include "backend/cuda/runtime/owner.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace toto::cuda {
namespace {

/// A driver whose n-th creation fails.
struct Driver {
  std::set<int> alive;
  int made = 0, fails_at = 0, given_back_twice = 0;
} driver;

void give_back(int handle) {
  if (driver.alive.erase(handle) == 0) ++driver.given_back_twice;
}
using Handle = Owner<int, give_back>;

Handle make() {
  if (++driver.made == driver.fails_at) throw std::runtime_error("no more");
  driver.alive.insert(driver.made);
  return Handle(driver.made);
}

/// As DeviceBackend: a stream, two events, memory, one after the other.
struct Device {
  Handle stream, first, last, memory;
  Device() {
    stream = make();
    first = make();
    last = make();
    memory = make();
  }
};

class CudaOwner : public testing::Test {
 protected:
  CudaOwner() { driver = {}; }
};

TEST_F(CudaOwner, NothingIsLeftWhereMakingAnyOfThemFails) {
  for (int fails_at = 1; fails_at <= 4; ++fails_at) {
    driver = {};
    driver.fails_at = fails_at;
    EXPECT_THROW(Device(), std::runtime_error);
    EXPECT_EQ(driver.made, fails_at);
    EXPECT_TRUE(driver.alive.empty()) << fails_at;
    EXPECT_EQ(driver.given_back_twice, 0);
  }
}

TEST_F(CudaOwner, WhatIsReplacedIsGivenBackAndWhatIsMovedFromIsNot) {
  {
    Handle a = make();
    Handle b = make();
    a = std::move(b);
    EXPECT_EQ(driver.alive, std::set<int>{2});
    Handle c = std::move(a);
    EXPECT_EQ(c.get(), 2);
    Handle& same = c;
    c = std::move(same);
    EXPECT_EQ(driver.alive, std::set<int>{2});
  }
  EXPECT_TRUE(driver.alive.empty());
  EXPECT_EQ(driver.given_back_twice, 0);
}

TEST_F(CudaOwner, WhatIsReleasedBelongsToTheCaller) {
  Handle a = make();
  const int handle = a.release();
  a.reset();
  EXPECT_EQ(driver.alive, std::set<int>{1});
  give_back(handle);
  EXPECT_EQ(driver.given_back_twice, 0);
}

}  // namespace
}  // namespace toto::cuda
