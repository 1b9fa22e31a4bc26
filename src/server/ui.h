// SPDX-License-Identifier: Apache-2.0
// The page at / and what it asks for.
#pragma once

#include "server/anomalies.h"
#include "server/call.h"
#include "server/models.h"

namespace toto::server {

/// "/", "/page.css", "/page.js": with a policy that lets the page load nothing else. Nothing for
/// other paths.
std::optional<HttpResponse> page_file(std::string_view path, const HttpRequest& request);

/// The model that a page's query names; empty: the first one. Throws Error invalid_request.
std::string model_of_query(std::string_view query);

/// POST /ui/forecast?name=FILE&horizon=N&seed=N&holdout=1: the body is a table of any kind that the
/// reader takes, an empty one the example. The answer has what was read, forecasts, a picture and
/// a CSV. More than `max_text` bytes of table, once unpacked, are 413. With holdout the last N
/// steps are forecast instead, and measured.
ParsedCall parse_table(const HttpRequest& request, const ServedModel& model, const Limits& limits,
                       std::size_t max_text);

/// POST /ui/anomalies?name=FILE&threshold=P: the series of a table, as parse_table reads them, to
/// be scored. Sets the threshold.
std::vector<data::TimeSeries> table_for_anomalies(const HttpRequest& request, const Limits& limits,
                                                  std::size_t max_text, detect::Options& options);
/// The anomalies and a picture.
RenderScores render_anomalies(const ServedModel& model, double threshold);

}  // namespace toto::server
