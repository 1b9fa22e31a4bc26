// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request's body, in each protocol: refused with an Error, or series that fit
// together and an answer that is JSON again. The first byte chooses the protocol.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/errors.h"
#include "server/protocols.h"

namespace {

using namespace toto;
using namespace toto::server;

void require(bool holds) {
  if (!holds) std::abort();
}

/// A forecast of the right sizes.
Forecast answer_to(const SeriesInput& input) {
  Forecast f;
  f.id = input.id;
  f.variates = input.targets + input.past + input.known;
  f.horizon = input.options.horizon;
  f.levels = input.options.levels;
  const std::size_t cells = f.variates * f.horizon;
  f.mean.assign(cells, 1.5F);
  f.quantiles.assign(cells * f.levels.size(), -2.0F);
  if (input.options.keep_samples) {
    f.num_samples = 2;
    f.samples.assign(2 * cells, 0.25F);
  }
  return f;
}

void use(ParsedCall& parsed, const Limits& limits) {
  require(!parsed.call.inputs.empty() && parsed.call.inputs.size() <= limits.max_series);
  std::vector<Forecast> forecasts;
  for (const SeriesInput& input : parsed.call.inputs) {
    const std::size_t rows = input.targets + input.past;
    require(input.targets > 0 && input.steps > 0 && input.steps <= limits.context);
    require(input.values.size() == rows * input.steps && input.mask.size() == input.values.size());
    require(input.ahead.size() == input.known * (input.steps + input.options.horizon));
    require(input.groups.empty() || input.groups.size() == rows + input.known);
    require(input.options.horizon >= 1 && input.options.horizon <= limits.max_horizon);
    for (const std::size_t lead : {0, 8}) {
      PreparedSeries prepared;
      prepare(input, lead, prepared);
      require(prepared.view.values.size() == prepared.view.variates * input.steps);
    }
    forecasts.push_back(answer_to(input));
  }
  const HttpResponse response = parsed.render(parsed.call, forecasts);
  std::string_view text = response.body;
  for (const HttpHeader& header : response.headers) {
    if (header.name == "inference-header-content-length") {
      text = text.substr(0, std::strtoul(header.value.c_str(), nullptr, 10));
    }
  }
  require(nlohmann::json::accept(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 3) return 0;
  Limits limits;
  limits.max_series = 16;
  limits.max_horizon = 40;
  limits.max_levels = 8;
  limits.context = 64;
  HttpRequest request;
  request.id = "id";
  request.body.assign(reinterpret_cast<const char*>(bytes) + 3, size - 3);
  const int kind = bytes[0] % 4;
  if (kind == 3) {
    request.headers.push_back({"inference-header-content-length",
                               std::to_string(bytes[1] * std::size_t{256} + bytes[2])});
  }
  try {
    ParsedCall parsed = kind == 0   ? parse_kserve(request, limits)
                        : kind == 1 ? parse_tsfm(request, limits)
                                    : parse_oip(request, "model", limits);
    use(parsed, limits);
  } catch (const Error& error) {
    require(error.code() != "internal" && !error.code().empty());
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
    const int status = http_status(error);
    require(status >= 400 && status < 500);
    for (const Dialect d : {Dialect::plain, Dialect::kserve, Dialect::tsfm, Dialect::oip}) {
      require(nlohmann::json::accept(error_response(error, d, request).body));
    }
  }
  return 0;
}
