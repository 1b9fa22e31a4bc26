// SPDX-License-Identifier: Apache-2.0
// The protocols: bodies of requests into calls, forecasts into bodies of answers. Nothing here
// knows of models in memory or of sockets. docs/serving.md describes each.
#pragma once

#include "server/call.h"
#include "toto/model.hpp"

namespace toto::server {

/// POST /v1/timeseries/forecast of KServe. Throws Error (errors.h).
ParsedCall parse_kserve(const HttpRequest& request, const Limits& limits);

/// POST /v1/forecast in the form of tsfm.ai. Throws Error.
ParsedCall parse_tsfm(const HttpRequest& request, const Limits& limits);

/// The answer of the form of tsfm.ai to a call with one series.
Render render_tsfm(const std::string& id, const ForecastOptions& options, std::size_t context);

/// POST /v2/models/{name}/infer of the Open Inference Protocol. `model` is the name in the path.
/// Throws Error.
ParsedCall parse_oip(const HttpRequest& request, std::string_view model, const Limits& limits);

/// GET /v2/models/{name}: the tensors that infer takes and gives.
std::string oip_metadata(const ModelInfo& model, std::string_view name);

}  // namespace toto::server
