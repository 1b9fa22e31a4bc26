// SPDX-License-Identifier: Apache-2.0
// Whether the best of many candidates is better than what there is, or lucky.
#pragma once

#include <cstddef>
#include <vector>

namespace toto::backtest {

/// White's Reality Check (Econometrica 68, 2000): the probability of a lead as large as that of the
/// best candidate, if none were better than the benchmark. `leads[c][w]`: loss of the benchmark
/// less that of candidate c at origin w, in the order of time. Origins up to `overlap` apart may be
/// correlated: they are drawn in blocks of overlap + 1 (circular block bootstrap, 2,000 resamples
/// addressed by a fixed seed, so that the same leads give the same p). NaN with fewer than 10
/// origins and 3 for each that may be correlated; 1 where no candidate leads.
double reality_check(const std::vector<std::vector<double>>& leads, std::size_t overlap);

}  // namespace toto::backtest
