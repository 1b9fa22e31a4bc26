// SPDX-License-Identifier: Apache-2.0
// What a build forecasts, kept in a file for a later one: parameters of mixtures or quantiles,
// never draws.
//
// JSON: {"format": "toto-forecasts 1", "program", "model", "model_hash", "settings": [{name,
// value}], "series": [{"id", "input", "variates", "horizon", "components", "df", "loc", "scale",
// "probability", "affine_loc", "affine_scale", "quantiles"}]}; `input` is the SHA-256 of values and
// mask; `quantiles` are there where the distribution is no mixture.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "toto/forecast.hpp"

namespace toto::verify {

struct RecordedSeries {
  std::string id;
  std::string input;
  std::size_t variates = 0, horizon = 0;
  Parameters parameters;
  std::vector<double> quantiles;  // [level][V][H] in data units, where there is no mixture
};

struct History {
  std::string program, model, model_hash;
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<RecordedSeries> series;
};

std::string encode_history(const History& history);
/// Throws Error: file_not_found (66), read_failed (74), invalid_history (65).
History read_history(const std::string& path);

/// |a - b| / (scale + |b|), in the units of correctness checks.
struct Drift {
  double largest = 0;  // infinite where sizes differ or a number is not finite
  std::size_t variate = 0, step = 0;
};
Drift drift(const RecordedSeries& now, const RecordedSeries& before);

}  // namespace toto::verify
