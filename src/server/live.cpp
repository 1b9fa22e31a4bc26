// SPDX-License-Identifier: Apache-2.0
#include "server/live.h"

#include <fmt/format.h>

#include "server/json_text.h"
#include "server/options.h"
#include "server/protocols.h"
#include "server/query.h"
#include "server/unread.h"

namespace toto::server {
namespace {

constexpr std::string_view kOne = "/v1/series/{id}";

HttpResponse answer(std::string body, std::string_view route) {
  HttpResponse response;
  response.body = std::move(body);
  response.account.route = route;
  return response;
}

/// Answers with the series as it is after a change.
Told tell(const ExchangePointer& exchange, std::string_view route) {
  return [exchange, route](const Outcome& outcome) {
    HttpResponse response;
    if (outcome.error) {
      response = error_response(*outcome.error, Dialect::plain, exchange->request());
      response.account.route = route;
    } else if (outcome.series == nullptr) {
      response = answer({}, route);
      response.status = 204;
    } else {
      response = answer(describe(*outcome.series, 0), route);
      response.status = outcome.made ? 201 : 200;
      response.account.series = 1;
    }
    exchange->respond(std::move(response));
  };
}

void require_steps(const LiveSeries& series) {
  if (!series.rows.empty()) return;
  throw invalid_request("expected at least one step, found none", "id",
                        "append some: POST /v1/series/" + series.id + "/points");
}

/// The scores of a live series: steps are counted since it was made.
HttpResponse render_scores(const LiveSeries& series, const SeriesInput& input,
                           const std::string& model, double threshold,
                           const std::vector<detect::Scored>& scored) {
  const std::uint64_t first = series.count - input.steps;
  JsonText out;
  out.open('{').key("id").string(series.id).key("model").string(model);
  out.key("count").whole(series.count).key("threshold").number(threshold);
  out.key("variates").open('[');
  for (const detect::Scored& one : scored) {
    out.open('{').key("variate").whole(one.column).key("scored").whole(one.points.size());
    out.key("anomalies").open('[');
    for (const detect::Point& point : one.points) {
      if (!point.anomaly) continue;
      out.open('{').key("step").whole(first + point.step);
      if (input.axis) out.key("time").string(input.axis->at(point.step));
      out.key("value").number(point.value).key("median").number(point.median);
      out.key("low").number(point.low).key("high").number(point.high);
      out.key("p").number(point.p).close('}');
    }
    out.close(']').close('}');
  }
  return answer(out.close(']').close('}').take(), "/v1/series/{id}/anomalies");
}

}  // namespace

ParsedCall parse_live_forecast(const HttpRequest& request, const LiveSeries& series,
                               const Limits& limits) {
  const nlohmann::json options = options_of(parse_query(request.query));
  const JsonField field(options, "");
  require_known(JsonField(options, "query"), {"model", "horizon", "quantiles"}, true);
  ParsedCall parsed;
  parsed.call.timeout_seconds = timeout_of(request);
  if (const auto model = field.find("model")) parsed.call.model = model->text();
  SharedOptions shared = read_options(field, limits, parsed.call);
  shared.forecast.horizon = std::min<std::size_t>(24, limits.max_horizon);
  if (const auto horizon = field.find("horizon")) {
    shared.forecast.horizon = read_horizon(*horizon, limits);
  }
  shared.forecast.levels = {0.1, 0.5, 0.9};
  if (const auto levels = field.find("quantiles")) {
    const nlohmann::json list =
        levels->value().is_array() ? levels->value() : nlohmann::json::array({levels->value()});
    shared.forecast.levels = read_levels(JsonField(list, "quantiles"), limits.max_levels);
  }
  if (shared.forecast.mean_only) shared.forecast.levels.clear();
  require_steps(series);
  parsed.call.inputs.push_back(input_of(series, shared.context, shared.forecast));
  parsed.render = render_tsfm(request.id, shared.forecast, shared.context);
  return parsed;
}

void Live::list(const ExchangePointer& exchange) const {
  JsonText out;
  out.open('{').key("series").open('[');
  for (const LivePointer& one : store_.all()) {
    out.open('{').key("id").string(one->id).key("count").whole(one->count).close('}');
  }
  exchange->respond(answer(out.close(']').close('}').take(), "/v1/series"));
}

void Live::put(const ExchangePointer& exchange, const std::string& id) {
  store_.put(parse_series(id, exchange->request().body, limits_), tell(exchange, kOne));
}

void Live::append(const ExchangePointer& exchange, const std::string& id) {
  store_.append(id, parse_points(exchange->request().body, limits_),
                tell(exchange, "/v1/series/{id}/points"));
}

void Live::remove(const ExchangePointer& exchange, const std::string& id) {
  store_.remove(id, tell(exchange, kOne));
}

void Live::get(const ExchangePointer& exchange, const std::string& id) const {
  const nlohmann::json options = options_of(parse_query(exchange->request().query));
  require_known(JsonField(options, "query"), {"last"});
  const auto last = JsonField(options, "").find("last");
  const std::uint64_t steps = last ? last->whole(0, 1'000'000'000) : 0;
  exchange->respond(answer(describe(*store_.find(id), steps), kOne));
}

void Live::forecast(const ExchangePointer& exchange, const std::string& id) const {
  const LivePointer series = store_.find(id);
  ParsedCall parsed = parse_live_forecast(exchange->request(), *series, limits_);
  const ModelPointer model = models_.find(parsed.call.model);
  run(model, std::move(parsed), exchange, limits_, Dialect::plain, "/v1/series/{id}/forecast");
}

void Live::anomalies(const ExchangePointer& exchange, const std::string& id) {
  const LivePointer series = store_.find(id);
  require_steps(*series);
  Query query = parse_query(exchange->request().query);
  const nlohmann::json given = options_of(query);
  require_known(JsonField(given, "query"), {"threshold", "model"});
  detect::Options options;
  options.context = limits_.context;
  if (const auto text = query.find("threshold"); text != query.end()) {
    options.threshold = read_threshold(text->second);
  }
  const ModelPointer model = models_.find(query["model"]);
  const SeriesInput input = input_of(*series, limits_.context, {});
  data::TimeSeries one;
  one.id = series->id;
  one.steps = input.steps;
  one.values = input.values;
  one.mask = input.mask;
  for (std::size_t v = 0; v < series->variates; ++v) one.variates.push_back(fmt::to_string(v));
  for (std::size_t t = 0; t < one.steps; ++t)
    one.times.edit().push_back(static_cast<std::int64_t>(t));
  answer_anomalies(
      background_, model, {std::move(one)}, options, exchange, limits_, Dialect::plain,
      "/v1/series/{id}/anomalies",
      [series, input, name = model->name, threshold = options.threshold](
          const std::vector<data::TimeSeries>&, const std::vector<detect::Scored>& scored) {
        return render_scores(*series, input, name, threshold, scored);
      });
}

}  // namespace toto::server
