// SPDX-License-Identifier: Apache-2.0
#include "engine/prepare.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/small_model.h"
#include "toto/error.hpp"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;
using Limits = std::numeric_limits<float>;

/// What is said of a series that is refused with not_finite; nothing of one that is taken.
std::string complaint(const OwnedSeries& s) {
  try {
    check_series(s.view(), 16, Align::pad, 8);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "not_finite");
    EXPECT_EQ(e.status(), ExitStatus::bad_data);
    return e.what();
  }
}

TEST(Prepare, NamesTheFirstValueThatIsNotFinite) {
  for (const float bad : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::signaling_NaN(),
                          Limits::infinity(), -Limits::infinity()}) {
    for (const std::size_t at : {0U, 1U, 31U, 36U, 37U, 73U}) {
      OwnedSeries s = wave(0, 37, 2);
      s.values.back() = Limits::infinity();
      s.values[at] = bad;
      const std::string place = "variate " + std::to_string(at / 37) + ", step " +
                                std::to_string(at % 37) + " is not a finite number";
      EXPECT_NE(complaint(s).find(place), std::string::npos) << complaint(s);
    }
  }
}

TEST(Prepare, TakesWhatIsFinite) {
  OwnedSeries s = wave(0, 37);
  s.values[3] = Limits::max();
  s.values[4] = Limits::lowest();
  s.values[5] = Limits::denorm_min();
  s.values[6] = -0.0F;
  EXPECT_EQ(complaint(s), "");
}

TEST(Prepare, RefusesCovariatesThatAreNotFinite) {
  OwnedSeries s = wave(0, 20, 2);
  s.exogenous = 1;
  s.future.assign(8, 1);
  EXPECT_EQ(complaint(s), "");
  for (const float bad : {Limits::quiet_NaN(), Limits::infinity()}) {
    s.future.back() = bad;
    EXPECT_NE(complaint(s).find("a future covariate is not a finite number"), std::string::npos);
  }
}

TEST(Prepare, AMaskOfTheFutureHasItsSize) {
  OwnedSeries s = wave(0, 20, 2);
  s.exogenous = 1;
  s.future.assign(8, 1);
  s.future_mask.assign(8, 0);
  EXPECT_EQ(complaint(s), "");
  s.future_mask.pop_back();
  try {
    check_series(s.view(), 16, Align::pad, 8);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "invalid_series");
    EXPECT_NE(std::string(e.what()).find("expected a mask of 8"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace toto
