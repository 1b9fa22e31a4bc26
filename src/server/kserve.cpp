// SPDX-License-Identifier: Apache-2.0
// KServe's time series API. Members that it does not know are our options (options.h).
#include <fmt/format.h>

#include <ctime>

#include "core/json.h"
#include "data/text_writer.h"
#include "server/errors.h"
#include "server/json_text.h"
#include "server/options.h"
#include "server/protocols.h"
#include "server/unread.h"

namespace toto::server {
namespace {

constexpr std::string_view kUnivariate = "univariate_time_series";
constexpr std::string_view kMultivariate = "multivariate_time_series";

void read_groups(const JsonField& field, SeriesInput& input) {
  const std::size_t variates = input.targets + input.past + input.known;
  if (field.size() != input.targets && field.size() != variates) {
    field.fail(fmt::format("{} whole numbers, one for each variate", input.targets));
  }
  for (std::size_t v = 0; v < variates; ++v) {
    // Covariates that are left out go with the first group.
    const JsonField one = field[v < field.size() ? v : 0];
    input.groups.push_back(static_cast<std::int32_t>(one.integer(-1'000'000, 1'000'000)));
  }
}

SeriesInput read_input(const JsonField& field, const SharedOptions& shared, std::size_t horizon,
                       const Limits& limits, Unread& unread) {
  unread.look(field, "inputs",
              {"type", "name", "series", "frequency", "start_timestamp", "horizon", "covariates",
               "groups"});
  SeriesInput input;
  input.options = shared.forecast;
  input.options.horizon = horizon;
  const JsonField type = field.at("type");
  const bool univariate = type.text() == kUnivariate;
  if (!univariate && type.text() != kMultivariate) {
    type.fail(fmt::format("\"{}\" or \"{}\"", kUnivariate, kMultivariate));
  }
  input.id = field.at("name").text();
  const JsonField series = field.at("series");
  read_values(series, limits, input);
  if (univariate != input.univariate) {
    series.fail(univariate ? "a list of numbers, since the type is univariate"
                           : "a list of lists, one for each step, since the type is multivariate");
  }
  const JsonField frequency = field.at("frequency");
  input.frequency = frequency.text();
  if (!parse_frequency(input.frequency)) {
    frequency.fail(
        "second, minute, hour, day, week, month, quarter, year or S, T, H, D, W, M, Q, Y");
  }
  if (const auto start = field.find("start_timestamp")) {
    input.axis = make_axis(start->text(), input.frequency, start->path());
  }
  if (const auto own = field.find("horizon")) input.options.horizon = read_horizon(*own, limits);
  if (const auto covariates = field.find("covariates")) {
    unread.look(*covariates, "covariates", {"past", "future"});
    read_covariates(covariates->find("past"), covariates->find("future"), limits, input);
  }
  if (const auto groups = field.find("groups")) read_groups(*groups, input);
  keep_context(input, shared.context);
  return input;
}

/// The rows of one level, or of the mean, that belong to targets.
void write_targets(JsonText& out, std::span<const float> all, const SeriesInput& input) {
  write_rows(out, all, input.targets, input.options.horizon, input.univariate);
}

void write_series(JsonText& out, const SeriesInput& input, const Forecast& forecast) {
  out.open('{').key("type").string(input.univariate ? kUnivariate : kMultivariate);
  out.key("name").string(input.id);
  out.key("mean_forecast");
  write_targets(out, forecast.mean, input);
  out.key("frequency").string(input.frequency);
  out.key("start_timestamp").string(input.axis ? input.axis->at(input.steps) : "");
  if (!forecast.levels.empty() && !forecast.quantiles.empty()) {
    const std::size_t cells = forecast.variates * forecast.horizon;
    out.key("quantiles").open('{');
    for (std::size_t q = 0; q < forecast.levels.size(); ++q) {
      out.key(data::level_text(forecast.levels[q]));
      write_targets(out, std::span(forecast.quantiles).subspan(q * cells, cells), input);
    }
    out.close('}');
  } else {
    out.key("quantiles").null();
  }
  if (!forecast.samples.empty()) {
    const std::size_t cells = forecast.variates * forecast.horizon;
    out.key("samples").open('[');
    for (std::size_t s = 0; s < forecast.num_samples; ++s) {
      write_targets(out, std::span(forecast.samples).subspan(s * cells, cells), input);
    }
    out.close(']');
  }
  out.key("exact_steps").whole(forecast.exact_steps);
  out.key("context_steps").whole(input.steps);
  out.close('}');
}

HttpResponse render(const std::string& id, const std::string& metadata, const ForecastCall& call,
                    const std::vector<Forecast>& forecasts) {
  JsonText out;
  out.open('{').key("id").string("forecast-" + id);
  out.key("created_at").integer(std::time(nullptr));
  out.key("status").string("completed").key("error").null();
  out.key("model").string(call.model);
  out.key("outputs").open('[').open('{');
  out.key("type").string("time_series_forecast").key("id").string("output-" + id);
  out.key("status").string("completed").key("error").null().key("content").open('[');
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    write_series(out, call.inputs[i], forecasts[i]);
    read += call.inputs[i].steps * forecasts[i].variates;
    written += call.inputs[i].targets * forecasts[i].horizon;
  }
  out.close(']').close('}').close(']');
  out.key("usage").open('{').key("prompt_tokens").whole(read);
  out.key("completion_tokens").whole(written).key("total_tokens").whole(read + written).close('}');
  if (!metadata.empty()) out.key("metadata").raw(metadata);
  write_warnings(out, call.warnings);
  HttpResponse response;
  response.body = out.close('}').take();
  return response;
}

}  // namespace

ParsedCall parse_kserve(const HttpRequest& request, const Limits& limits) {
  const JsonTree tree{parse_json(request.body, ExitStatus::usage, "body")};
  const JsonField body(tree.root, "");
  ParsedCall parsed;
  ForecastCall& call = parsed.call;
  call.timeout_seconds = timeout_of(request);
  call.model = body.object().at("model").text();
  const JsonField options = body.at("options");
  Unread unread;
  unread.look(body, "body", {"model", "inputs", "options", "metadata"});
  unread.look(options, "options", {"horizon", "quantiles"}, true);
  SharedOptions shared = read_options(options, limits, call);
  const std::size_t horizon = read_horizon(options.at("horizon"), limits);
  if (const auto levels = options.find("quantiles")) {
    shared.forecast.levels = read_levels(*levels, limits.max_levels);
  }
  const JsonField inputs = body.at("inputs");
  if (inputs.size() == 0) inputs.fail("at least one series");
  require_limit(inputs.size(), limits.max_series, "series", "--max-series", inputs.path());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    call.inputs.push_back(read_input(inputs[i], shared, horizon, limits, unread));
  }
  call.warnings = unread.warnings();
  std::string metadata;
  if (const auto own = body.find("metadata")) metadata = own->object().value().dump();
  parsed.render = [id = request.id, metadata](const ForecastCall& c, std::vector<Forecast>& f) {
    return render(id, metadata, c, f);
  };
  return parsed;
}

}  // namespace toto::server
