// SPDX-License-Identifier: Apache-2.0
// Which observations were not to be expected, as answers.
#pragma once

#include "server/background.h"
#include "server/call.h"
#include "server/errors.h"
#include "toto/tools/detect.hpp"

namespace toto::server {

/// Looks for anomalies in the background and answers the exchange with what `render` makes of the
/// scores. Stops when the client goes or the deadline comes. Throws Error queue_full.
using RenderScores = std::function<HttpResponse(const std::vector<data::TimeSeries>&,
                                                const std::vector<detect::Scored>&)>;
void answer_anomalies(Background& background, const ModelPointer& model,
                      std::vector<data::TimeSeries> series, const detect::Options& options,
                      const ExchangePointer& exchange, const Limits& limits, Dialect dialect,
                      std::string_view route, RenderScores render);

/// A threshold out of a query's text. Throws Error invalid_request.
double read_threshold(std::string_view text);

}  // namespace toto::server
