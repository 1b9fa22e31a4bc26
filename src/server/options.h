// SPDX-License-Identifier: Apache-2.0
// What the JSON protocols share: our options, which go by the same names in each of them.
#pragma once

#include <array>
#include <string_view>

#include "server/call.h"
#include "server/json_field.h"

namespace toto::server {

/// The context asked for and where else options went that are no ForecastOptions.
struct SharedOptions {
  ForecastOptions forecast;
  std::size_t context = 0;
  bool samples = false;
};

/// What read_options reads.
inline constexpr std::array<std::string_view, 13> kOptionNames = {
    "seed",  "num_samples", "mean_only", "return_samples", "context",    "quantiles_from", "decode",
    "align", "paths",       "tails",     "views",          "timeout_ms", "priority"};

/// Members of an object; "timeout_ms" and "priority" go into `call`. Only the mean is selected.
SharedOptions read_options(const JsonField& options, const Limits& limits, ForecastCall& call);

/// A horizon. Throws Error invalid_horizon below 1, limit_exceeded.
std::size_t read_horizon(const JsonField& field, const Limits& limits);

/// Values of a series, [T] or time-major [T][V]; null is missing. Sets steps, targets, univariate.
void read_values(const JsonField& field, const Limits& limits, SeriesInput& input);

/// Columns of an object by name, each [T] (`past`), or two such objects: those that are in `future`
/// [horizon] too are known ahead. Throws Error invalid_request for other lengths.
void read_covariates(const std::optional<JsonField>& past, const std::optional<JsonField>& future,
                     const Limits& limits, SeriesInput& input);

/// Rows of `values` [V][H] as they are answered: [H] of one variate, or time-major [H][V].
void write_rows(class JsonText& out, std::span<const float> values, std::size_t variates,
                std::size_t horizon, bool univariate);

}  // namespace toto::server
