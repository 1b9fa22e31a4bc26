// SPDX-License-Identifier: Apache-2.0
// One number for a distribution: what the words of --aggregate mean.
//
// The distribution is either a set of trajectories' values, or known exactly. Fractions F and
// quantiles Q up to 1 are shares, above 1 percentages: trimmed_mean_10 is trimmed_mean_0.1.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace toto::backtest {

struct Aggregate {
  enum class Kind {
    mean,
    quantile,       // first: level. median, p10 and p90 are quantiles
    trimmed,        // first, second: the shares left out below and above
    mean_std,       // mean + first x standard deviation
    mean_quantile,  // second x mean + (1 - second) x quantile(first)
    quantile_std,   // quantile(first) + second x standard deviation
  };
  Kind kind = Kind::mean;
  double first = 0;
  double second = 0;
};

/// Throws Error (2) unknown_aggregate, which lists what there is; invalid_aggregate for numbers out
/// of range.
Aggregate parse_aggregate(std::string_view text);

/// Several of them, with commas in between: inside this component one prediction may carry many.
std::vector<Aggregate> parse_aggregates(std::string_view text);

/// Everything parse_aggregate() knows, for help and messages.
std::string_view aggregate_words();

/// Of N values s in ascending order, as NumPy computes it: linear interpolation between values, and
/// the standard deviation with divisor N. Trimmed means are, F below and above: s[k:N-k].mean(),
/// k = int(N F); F above alone: s[:max(1, int(N (1 - F)))].mean(); F below alone:
/// s[min(N - 1, int(N F)):].mean().
double aggregate(const Aggregate& what, std::span<const double> sorted);

/// The levels of the band that stands for a standard deviation where a mixture has none
/// (Mixture::standard_deviation()), and the deviation of the normal that has such a band.
inline constexpr double kBandLow = 0.1, kBandHigh = 0.9;
double spread_of_band(double low, double high);

/// np.quantile.
double quantile_of(std::span<const double> sorted, double level);

/// A mixture of Student-T's in one step: [K] each, as toto::Mixture takes them.
struct ExactStep {
  std::span<const double> df, loc, scale, probability;
};

/// Of the exact distribution, in the units of the mixture.
double aggregate(const Aggregate& what, const ExactStep& step);

}  // namespace toto::backtest
