// SPDX-License-Identifier: Apache-2.0
// Aggregates of trajectories against NumPy, and of mixtures against scipy's integrals.
#include "tools/backtest/aggregate.h"

#include <algorithm>

#include "expected.h"
#include "toto/error.hpp"

namespace toto::backtest {
namespace {

using test::expect_same;
using test::expected;

TEST(Aggregate, OfTrajectoriesAgreesWithNumPy) {
  for (const auto& one : expected().at("aggregates")) {
    auto samples = one.at("samples").get<std::vector<double>>();
    std::ranges::sort(samples);
    for (const auto& [spec, want] : one.at("expected").items()) {
      expect_same(aggregate(parse_aggregate(spec), samples), want.get<double>(), spec);
    }
  }
}

TEST(Aggregate, OfTheExactDistributionAgreesWithScipy) {
  const auto& one = expected().at("exact");
  const auto part = [&](const char* name) { return one.at(name).get<std::vector<double>>(); };
  const auto df = part("df"), loc = part("loc"), scale = part("scale");
  const auto probability = part("probability");
  for (const auto& [spec, want] : one.at("expected").items()) {
    expect_same(aggregate(parse_aggregate(spec), ExactStep{df, loc, scale, probability}),
                want.get<double>(), spec);
  }
}

TEST(Aggregate, TakesSharesAndPercentages) {
  for (const auto& [a, b] :
       {std::pair("trimmed_mean_10", "trimmed_mean_0.1"), std::pair("quantile_35", "quantile_0.35"),
        std::pair("median", "quantile_0.5"), std::pair("p90", "quantile_90"),
        std::pair("mean_quantile_mix_15_0.3", "mean_quantile_mix_0.15_0.3"),
        std::pair("lower_trimmed_mean_20", "lower_trimmed_mean_0.2")}) {
    const Aggregate x = parse_aggregate(a);
    const Aggregate y = parse_aggregate(b);
    EXPECT_EQ(x.kind, y.kind) << a;
    EXPECT_DOUBLE_EQ(x.first, y.first) << a;
    EXPECT_DOUBLE_EQ(x.second, y.second) << a;
  }
}

std::string code_of(const std::string& spec, std::string* remedy = nullptr) {
  try {
    (void)parse_aggregate(spec);
  } catch (const Error& error) {
    if (remedy != nullptr) *remedy = error.remedy();
    EXPECT_EQ(error.status(), ExitStatus::usage);
    return error.code();
  }
  return "";
}

TEST(Aggregate, RefusesWhatItDoesNotKnow) {
  std::string remedy;
  for (const char* spec :
       {"", "average", "Mean", "p50", "quantile_", "quantile_x", "quantile_0.5_1", "quantile_nan",
        "quantile_inf", "trimmed_mean", "mean_plus_std_", "mean_quantile_mix_0.5",
        "quantile_plus_std_0.5", "median_", "mean_0.5"}) {
    EXPECT_EQ(code_of(spec, &remedy), "unknown_aggregate") << spec;
    for (const char* word : {"trimmed_mean_F", "quantile_plus_std_Q_K", "p10"}) {
      EXPECT_NE(remedy.find(word), std::string::npos) << word;
    }
  }
  for (const char* spec :
       {"quantile_-0.1", "quantile_101", "trimmed_mean_0.5", "trimmed_mean_60",
        "lower_trimmed_mean_1", "upper_trimmed_mean_100", "mean_quantile_mix_0.5_1.5"}) {
    EXPECT_EQ(code_of(spec), "invalid_aggregate") << spec;
  }
}

}  // namespace
}  // namespace toto::backtest
