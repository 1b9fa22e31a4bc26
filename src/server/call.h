// SPDX-License-Identifier: Apache-2.0
// What every protocol's request comes down to, and the limits that it is checked against.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/http.h"
#include "server/time_axis.h"
#include "toto/service.hpp"

namespace toto::server {

/// Of one request. What is beyond is 422 limit_exceeded, and the message says by how much.
struct Limits {
  std::size_t max_series = 1024;
  std::size_t max_variates = 1024;  ///< of one series, covariates included
  std::size_t max_horizon = 10'000;
  std::size_t max_samples = 4096;
  std::size_t max_levels = 200;
  std::size_t context = 4096;        ///< steps looked at, the last ones; a request may ask for less
  double max_timeout_seconds = 300;  ///< a request that asks for no time has this
};

/// One series of a request, with options of its own. Arrays are row-major.
struct SeriesInput {
  std::string id;  ///< names the output and addresses the random numbers
  std::size_t steps = 0;
  std::size_t targets = 0;           ///< forecast and answered
  std::size_t past = 0;              ///< covariates known up to now: forecast along, not answered
  std::size_t known = 0;             ///< covariates known ahead
  std::vector<float> values;         ///< [targets + past][steps]; what is missing is filled in
  std::vector<std::uint8_t> mask;    ///< likewise, 1 = observed
  std::vector<std::int32_t> groups;  ///< [targets + past + known], or empty
  std::vector<float> ahead;          ///< [known][steps + horizon]
  std::vector<std::uint8_t> ahead_mask;
  ForecastOptions options;
  std::optional<TimeAxis> axis;
  std::string frequency;     ///< as the request says it
  std::size_t left_out = 0;  ///< oldest steps beyond the context
  bool univariate = false;   ///< answered as a list of numbers
  std::size_t index = 0;     ///< of the series in the request
};

struct ForecastCall {
  std::string model;  ///< empty: the first one
  std::vector<SeriesInput> inputs;
  int priority = 0;
  std::optional<double> timeout_seconds;
  std::vector<std::string> warnings;  ///< members that nothing reads (unread.h)
};

/// Forms the answer out of one forecast for each input.
using Render = std::function<HttpResponse(const ForecastCall&, std::vector<Forecast>&)>;

struct ParsedCall {
  ForecastCall call;
  Render render;
};

/// Seconds of X-Request-Timeout-Ms. Throws Error invalid_request.
std::optional<double> timeout_of(const HttpRequest& request);

/// Appends a row of numbers to a series: what is missing takes the last value before it, or the
/// first one behind. `missing[t]` is true where there is none.
void append_row(SeriesInput& input, std::vector<float> row, const std::vector<bool>& missing);

/// The last `context` steps of everything.
void keep_context(SeriesInput& input, std::size_t context);

/// The covariates known ahead in the form that a model with this lead takes (ModelInfo), behind the
/// other variates. `future` is what Request::series.future_exogenous points to.
struct PreparedSeries {
  std::vector<float> values, future;
  std::vector<std::uint8_t> mask;
  Series view;
};
void prepare(const SeriesInput& input, std::size_t lead, PreparedSeries& out);

/// Numbers in the answer of a call: variates times horizon, of the mean, of each level and of each
/// sample that is returned. Throws Error answer_too_large above kMaxAnswer.
inline constexpr double kMaxAnswer = 67'108'864;  // 2^26, some 700 MB of JSON
void require_answer(const ForecastCall& call);

/// Throws Error limit_exceeded when `found` is more than `limit`.
void require_limit(std::size_t found, std::size_t limit, std::string_view what,
                   std::string_view flag, std::string_view where);

}  // namespace toto::server
