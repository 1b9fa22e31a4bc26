// SPDX-License-Identifier: Apache-2.0
// Gaps that the model fills: each is the forecast of what comes before it.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/requests.h"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;

ForecastOptions by_model() {
  ForecastOptions options;
  options.horizon = 12;
  options.num_samples = 8;
  options.gaps_by_model = true;
  return options;
}

/// A gap that holds what a reader might have put there.
void lose(OwnedSeries& s, std::size_t variate, std::size_t begin, std::size_t end) {
  if (s.mask.empty()) s.mask.assign(s.values.size(), 1);
  const std::size_t steps = s.values.size() / s.variates;
  for (std::size_t t = begin; t < end; ++t) {
    s.values[variate * steps + t] = 1;
    s.mask[variate * steps + t] = 0;
  }
}

class GapsTest : public testing::Test {
 protected:
  Forecast forecast(const OwnedSeries& owned, const ForecastOptions& options) {
    const Series series = owned.view();
    return forecaster_.forecast({&series, 1}, options).front();
  }

  /// Fills [begin, end) of a variate by hand.
  void fill(OwnedSeries& s, std::size_t variate, std::size_t begin, std::size_t end) {
    const std::size_t steps = s.values.size() / s.variates;
    OwnedSeries before = s;
    before.values.clear();
    before.mask.clear();
    for (std::size_t v = 0; v < s.variates; ++v) {
      for (std::size_t t = 0; t < begin; ++t) {
        before.values.push_back(s.values[v * steps + t]);
        before.mask.push_back(s.mask[v * steps + t]);
      }
    }
    ForecastOptions options;
    options.horizon = end - begin;
    options.num_samples = 8;
    options.across_missing = false;
    const Forecast f = forecast(before, options);
    std::copy_n(f.median.begin() + static_cast<std::ptrdiff_t>(variate * options.horizon),
                options.horizon,
                s.values.begin() + static_cast<std::ptrdiff_t>(variate * steps + begin));
  }
  Forecaster forecaster_{test::make_model(test::spec_config())};
};

TEST_F(GapsTest, HoldTheForecastOfWhatComesBefore) {
  OwnedSeries series = wave(1, 120, 2);
  lose(series, 0, 40, 47);
  lose(series, 1, 44, 60);  // longer than a patch
  lose(series, 0, 70, 73);  // short: stays as it is
  lose(series, 1, 3, 9);    // too early
  OwnedSeries by_hand = series;
  fill(by_hand, 0, 40, 47);
  fill(by_hand, 1, 44, 60);
  const Forecast found = forecast(series, by_model());
  ForecastOptions plain = by_model();
  plain.gaps_by_model = false;
  test::expect_same(found, forecast(by_hand, plain));
  EXPECT_EQ(found.applied.filled, 7U + 16U);
  EXPECT_NE(found.median, forecast(series, plain).median);
}

TEST_F(GapsTest, AMissingEndIsForecastAcross) {
  OwnedSeries series = wave(2, 100, 1);
  lose(series, 0, 92, 100);
  const Forecast found = forecast(series, by_model());
  EXPECT_EQ(found.applied.missing_end, 8U);
  EXPECT_EQ(found.applied.filled, 0U);
  ForecastOptions plain = by_model();
  plain.gaps_by_model = false;
  test::expect_same(found, forecast(series, plain));
}

TEST_F(GapsTest, OfManyTheLastAreFilled) {
  OwnedSeries series = wave(3, 600, 1);
  for (std::size_t i = 0; i < 40; ++i) lose(series, 0, 30 + 14 * i, 34 + 14 * i);
  EXPECT_EQ(forecast(series, by_model()).applied.filled, 32U * 4);
}

TEST_F(GapsTest, BitsDoNotDependOnTheBatch) {
  std::vector<OwnedSeries> owned;
  for (std::size_t i = 0; i < 36; ++i) {
    owned.push_back(wave(i, 60 + 3 * i, 1 + i % 2));
    if (i % 4 == 0) continue;
    for (std::size_t g = 0; g < i % 4; ++g)
      lose(owned.back(), g % owned.back().variates, 20 + 9 * g, 25 + 9 * g);
  }
  ForecastOptions options = by_model();
  options.views = parse_views("flip,context/2");
  const std::vector<Series> series = test::views(owned);
  const std::vector<Forecast> together = forecaster_.forecast(series, options);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    const Forecast alone = forecast(owned[i], options);
    test::expect_same(alone, together[i]);
    EXPECT_EQ(alone.applied, together[i].applied);
    EXPECT_EQ(alone.applied.filled > 0, i % 4 != 0);
  }
}

}  // namespace
}  // namespace toto
