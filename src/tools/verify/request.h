// SPDX-License-Identifier: Apache-2.0
// The request behind the checks of determinism, and what stands for its results.
#pragma once

#include <string>
#include <vector>

#include "tools/verify/suite_state.h"

namespace toto::verify {

constexpr std::size_t kRequestSamples = 6;

/// Two patches, so that trajectories are fed back; parameters and trajectories are kept.
struct Request {
  std::vector<OwnedSeries> owned;
  std::vector<Series> series;
  ForecastOptions options;
};
Request request_for(const SuiteState& state, std::size_t patch);

/// Everything in a forecast that could differ: parameters, statistics, trajectories.
std::string bytes_of(const Forecast& f);

/// For each series the SHA-256 of these, and of what is forecast without keeping parameters.
std::vector<std::string> digests_of(Forecaster& forecaster, const Request& request,
                                    const std::vector<Forecast>& forecasts);

/// `eager` and the others.
std::vector<Variant> all_subjects(const SuiteState& state);

// draws.cpp
std::vector<Check> check_draws(Forecaster& forecaster, const Request& request,
                               const std::vector<Forecast>& all);

}  // namespace toto::verify
