// SPDX-License-Identifier: Apache-2.0
// The form of tsfm.ai, which sidus speaks too.
#include <fmt/format.h>

#include "core/json.h"
#include "server/errors.h"
#include "server/json_text.h"
#include "server/options.h"
#include "server/protocols.h"
#include "server/unread.h"

namespace toto::server {
namespace {

SeriesInput read_input(const JsonField& field, std::size_t index, const SharedOptions& shared,
                       const std::string& frequency, const Limits& limits) {
  SeriesInput input;
  input.options = shared.forecast;
  input.index = index;
  input.id = fmt::format("input-{}", index);
  if (const auto id = field.find("item_id")) input.id = id->text();
  read_values(field.at("target"), limits, input);
  input.frequency = frequency;
  if (const auto start = field.find("start")) {
    const std::string& text = start->text();
    if (!frequency.empty()) input.axis = make_axis(text, frequency, start->path());
  }
  read_covariates(field.find("past_covariates"), field.find("future_covariates"), limits, input);
  keep_context(input, shared.context);
  return input;
}

/// Always time-major, [[v], [v], ...] for one variate.
void write_values(JsonText& out, std::span<const float> all, const SeriesInput& input) {
  write_rows(out, all, input.targets, input.options.horizon, false);
}

void write_output(JsonText& out, const SeriesInput& input, const Forecast& forecast,
                  const std::string& metadata) {
  const std::size_t cells = forecast.variates * forecast.horizon;
  out.open('{').key("item_id").string(input.id).key("mean");
  write_values(out, forecast.mean, input);
  out.key("quantile_predictions").open('[');
  if (!forecast.quantiles.empty()) {
    for (std::size_t q = 0; q < forecast.levels.size(); ++q) {
      out.open('{').key("level").number(forecast.levels[q]).key("values");
      write_values(out, std::span(forecast.quantiles).subspan(q * cells, cells), input);
      out.close('}');
    }
  }
  out.close(']');
  if (!forecast.samples.empty()) {
    out.key("samples").open('[');
    for (std::size_t s = 0; s < forecast.num_samples; ++s) {
      write_values(out, std::span(forecast.samples).subspan(s * cells, cells), input);
    }
    out.close(']');
  }
  if (input.axis) {
    out.key("timestamps").open('[');
    for (std::size_t t = 0; t < forecast.horizon; ++t) {
      out.string(input.axis->at(input.steps + t));
    }
    out.close(']');
  } else {
    out.key("timestamps").null();
  }
  out.key("exact_steps").whole(forecast.exact_steps);
  metadata.empty() ? out.key("metadata").null() : out.key("metadata").raw(metadata);
  out.close('}');
}

struct Told {  // of a request, for its answer
  std::string id, metadata;
  std::vector<std::string> of_inputs;
  std::vector<double> levels;
  std::size_t horizon = 0, context_limit = 0;
};

HttpResponse render(const Told& told, const ForecastCall& call,
                    const std::vector<Forecast>& forecasts) {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::uint64_t truncated = 0;
  JsonText out;
  out.open('{').key("id").string("fcst_" + told.id).key("object").string("forecast");
  out.key("model").string(call.model).key("provider").string("toto.cpp");
  out.key("horizon").whole(told.horizon).key("prediction_length").whole(told.horizon);
  out.key("quantile_levels").open('[');
  for (const double level : told.levels) out.number(level);
  out.close(']').key("outputs").open('[');
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    const SeriesInput& input = call.inputs[i];
    write_output(out, input, forecasts[i], told.of_inputs[input.index]);
    read += input.steps * forecasts[i].variates;
    written += input.targets * forecasts[i].horizon;
    if (input.left_out > 0) truncated = std::max(truncated, input.steps + input.left_out);
  }
  out.close(']').key("input_points").whole(read);
  out.key("usage").open('{').key("input_tokens").whole(read).key("output_tokens").whole(written);
  out.key("total_tokens").whole(read + written).close('}');
  if (truncated > 0) {
    out.key("truncated_from").whole(truncated);
    out.key("max_context_length").whole(told.context_limit);
  }
  if (!told.metadata.empty()) out.key("metadata").raw(told.metadata);
  write_warnings(out, call.warnings);
  HttpResponse response;
  response.body = out.close('}').take();
  return response;
}

}  // namespace

Render render_tsfm(const std::string& id, const ForecastOptions& options, std::size_t context) {
  Told told;
  told.id = id;
  told.levels = options.levels;
  told.horizon = options.horizon;
  told.context_limit = context;
  told.of_inputs.emplace_back();
  return [told = std::move(told)](const ForecastCall& call, std::vector<Forecast>& forecasts) {
    return render(told, call, forecasts);
  };
}

ParsedCall parse_tsfm(const HttpRequest& request, const Limits& limits) {
  const JsonTree tree{parse_json(request.body, ExitStatus::usage, "body")};
  const JsonField body(tree.root, "");
  ParsedCall parsed;
  ForecastCall& call = parsed.call;
  call.timeout_seconds = timeout_of(request);
  Told told;
  told.id = request.id;
  call.model = body.object().at("model").text();
  Unread unread;
  unread.look(body, "body", {"model", "inputs", "parameters", "metadata"});
  const nlohmann::json none = nlohmann::json::object();
  const JsonField parameters = body.find("parameters").value_or(JsonField(none, "parameters"));
  unread.look(parameters, "parameters",
              {"prediction_length", "context_length", "quantile_levels", "quantiles", "frequency"},
              true);
  SharedOptions shared = read_options(parameters, limits, call);
  shared.forecast.horizon = std::min<std::size_t>(24, limits.max_horizon);
  if (const auto length = parameters.find("prediction_length")) {
    shared.forecast.horizon = read_horizon(*length, limits);
  }
  if (const auto context = parameters.find("context_length")) {
    shared.context = std::min<std::size_t>(shared.context, context->whole(1, 1'000'000'000));
  }
  for (const char* name : {"quantile_levels", "quantiles"}) {
    if (const auto levels = parameters.find(name)) {
      shared.forecast.levels = read_levels(*levels, limits.max_levels);
      break;
    }
  }
  std::string frequency;
  if (const auto field = parameters.find("frequency")) {
    frequency = field->text();
    if (!parse_frequency(frequency)) field->fail("a frequency: s, min, h, D, W, M, Q, Y, 15min");
  }
  told.levels = shared.forecast.levels;
  told.horizon = shared.forecast.horizon;
  told.context_limit = shared.context;
  if (const auto own = body.find("metadata")) told.metadata = own->object().value().dump();
  const JsonField inputs = body.at("inputs");
  if (inputs.size() == 0) inputs.fail("at least one series");
  require_limit(inputs.size(), limits.max_series, "series", "--max-series", inputs.path());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    call.inputs.push_back(read_input(inputs[i], i, shared, frequency, limits));
    unread.look(inputs[i], "inputs",
                {"target", "item_id", "start", "past_covariates", "future_covariates", "metadata"});
    const auto own = inputs[i].find("metadata");
    told.of_inputs.push_back(own ? own->object().value().dump() : std::string());
  }
  call.warnings = unread.warnings();
  parsed.render = [told = std::move(told)](const ForecastCall& c, std::vector<Forecast>& f) {
    return render(told, c, f);
  };
  return parsed;
}

}  // namespace toto::server
