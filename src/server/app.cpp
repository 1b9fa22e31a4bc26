// SPDX-License-Identifier: Apache-2.0
#include "server/app.h"

#include <fmt/format.h>

#include "core/json.h"
#include "server/compress.h"
#include "server/json_text.h"
#include "server/openapi.h"
#include "server/protocols.h"
#include "server/run.h"
#include "server/streams.h"
#include "server/ui.h"

namespace toto::server {
namespace {

constexpr Protocol kTsfm = {"/v1/forecast", Dialect::tsfm, parse_tsfm};
constexpr Protocol kKserve = {"/v1/timeseries/forecast", Dialect::kserve, parse_kserve};

HttpResponse json(std::string text) {
  HttpResponse response;
  response.body = std::move(text);
  return response;
}

/// A pattern's segments against a path's; {name} takes one segment, {name*} the rest.
bool matches(std::string_view pattern, std::string_view path, std::string& name) {
  for (;;) {
    const std::size_t p = pattern.find('/', 1);
    const std::size_t q = path.find('/', 1);
    const std::string_view part = pattern.substr(0, p);
    if (part.ends_with("*}")) return path.size() > 1 && percent_decode(path.substr(1), name);
    const std::string_view found = path.substr(0, q);
    if (part.ends_with('}')) {
      if (found.size() < 2 || !percent_decode(found.substr(1), name)) return false;
    } else if (part != found) {
      return false;
    }
    if ((p == std::string_view::npos) != (q == std::string_view::npos)) return false;
    if (p == std::string_view::npos) return true;
    pattern.remove_prefix(p);
    path.remove_prefix(q);
  }
}

void write_model(JsonText& out, const ServedModel& model, const Limits& limits) {
  const ModelInfo& info = model.info;
  out.open('{').key("id").string(model.name).key("object").string("model");
  out.key("provider").string("toto.cpp").key("owned_by").string("toto.cpp");
  out.key("supported_tasks").open('[').string("forecast").close(']');
  out.key("min_points").integer(1);
  out.key("context_length").whole(limits.context).key("max_context_length").whole(limits.context);
  out.key("max_prediction_length").whole(limits.max_horizon);
  out.key("capabilities").open('[');
  for (const char* word : {"forecast", "quantile", "multivariate", "covariates", "samples"}) {
    out.string(word);
  }
  out.close(']').key("architecture").string(info.architecture);
  out.key("patch_size").integer(info.patch_size).key("parameters").whole(info.parameters);
  out.key("synthetic_weights").boolean(info.synthetic);
  out.key("mode").string(word(model.report.mode)).key("type").string(word(model.report.precision));
  out.key("device").string(model.report.device).key("weights").string(model.report.weights);
  out.close('}');
}

}  // namespace

bool has_key(const std::vector<std::string>& keys, std::string_view given) {
  unsigned any = 0;
  for (const std::string& key : keys) {
    auto different = static_cast<unsigned>(key.size() ^ given.size());
    for (std::size_t i = 0; i < key.size(); ++i) {
      const char other = given.empty() ? '\0' : given[i % given.size()];
      different |= static_cast<unsigned char>(key[i] ^ other);
    }
    any |= static_cast<unsigned>(different == 0);
  }
  return any != 0;
}

struct App::Route {
  using Answer = void (*)(App&, const ExchangePointer&, const std::string& name);
  std::string_view method;
  std::string_view path;
  Dialect dialect;
  Answer answer;
};

namespace {

LiveOptions live_options(LiveOptions options, const Limits& limits) {
  options.context = limits.context;
  return options;
}

}  // namespace

App::App(AppOptions options, Models& models, Metrics& metrics)
    : options_(std::move(options)),
      models_(models),
      metrics_(metrics),
      store_(live_options(options_.live, options_.limits)),
      live_(store_, background_, models_, options_.limits) {
  metrics_.add_gauge("toto_live_series", "Live series",
                     [this] { return static_cast<double>(store_.size()); });
}

const std::vector<App::Route>& App::routes() {
  using X = const ExchangePointer&;
  using N = const std::string&;
  static const std::vector<Route> all = {
      {"GET", "/health", Dialect::plain, [](App& a, X x, N) { x->respond(a.health()); }},
      {"GET", "/metrics", Dialect::plain,
       [](App& a, X x, N) {
         HttpResponse response = json(a.metrics_.text());
         response.content_type = "text/plain; version=0.0.4; charset=utf-8";
         x->respond(std::move(response));
       }},
      {"GET", "/openapi.json", Dialect::plain,
       [](App&, X x, N) { x->respond(json(std::string(openapi()))); }},
      {"POST", "/ui/forecast", Dialect::plain,
       [](App& a, X x, N) {
         const ModelPointer model = a.models_.find(model_of_query(x->request().query));
         run(model, parse_table(x->request(), *model, a.options_.limits, a.options_.max_body_bytes),
             x, a.options_.limits, Dialect::plain, "/ui/forecast");
       }},
      {"POST", "/ui/anomalies", Dialect::plain, [](App& a, X x, N) { a.anomalies(x); }},
      {"GET", "/v1/series", Dialect::plain, [](App& a, X x, N) { a.live_.list(x); }},
      {"GET", "/v1/series/{id}", Dialect::plain, [](App& a, X x, N id) { a.live_.get(x, id); }},
      {"PUT", "/v1/series/{id}", Dialect::plain, [](App& a, X x, N id) { a.live_.put(x, id); }},
      {"DELETE", "/v1/series/{id}", Dialect::plain,
       [](App& a, X x, N id) { a.live_.remove(x, id); }},
      {"POST", "/v1/series/{id}/points", Dialect::plain,
       [](App& a, X x, N id) { a.live_.append(x, id); }},
      {"GET", "/v1/series/{id}/forecast", Dialect::plain,
       [](App& a, X x, N id) { a.live_.forecast(x, id); }},
      {"GET", "/v1/series/{id}/anomalies", Dialect::plain,
       [](App& a, X x, N id) { a.live_.anomalies(x, id); }},
      {"GET", "/v1/models", Dialect::tsfm, [](App& a, X x, N) { x->respond(a.model_list()); }},
      {"GET", "/v1/models/{name*}", Dialect::tsfm,
       [](App& a, X x, N name) { x->respond(a.model(name)); }},
      {"POST", "/v1/forecast", Dialect::tsfm, [](App& a, X x, N) { a.forecast(x, kTsfm); }},
      {"POST", "/v1/timeseries/forecast", Dialect::kserve,
       [](App& a, X x, N) { a.forecast(x, kKserve); }},
      {"GET", "/v1/timeseries/models", Dialect::kserve,
       [](App& a, X x, N) { x->respond(a.kserve_models()); }},
      {"GET", "/v2", Dialect::oip, [](App& a, X x, N) { x->respond(a.oip_server()); }},
      {"GET", "/v2/health/live", Dialect::oip,
       [](App&, X x, N) { x->respond(json("{\"live\":true}")); }},
      {"GET", "/v2/health/ready", Dialect::oip,
       [](App& a, X x, N) { x->respond(a.oip_ready("")); }},
      {"GET", "/v2/models/{name}", Dialect::oip,
       [](App& a, X x, N name) {
         x->respond(json(oip_metadata(a.models_.find(name)->info, name)));
       }},
      {"GET", "/v2/models/{name}/ready", Dialect::oip,
       [](App& a, X x, N name) { x->respond(a.oip_ready(name)); }},
      {"POST", "/v2/models/{name}/infer", Dialect::oip,
       [](App& a, X x, N name) {
         const ModelPointer model = a.models_.find(name);
         run(model, parse_oip(x->request(), name, a.options_.limits), x, a.options_.limits,
             Dialect::oip, "/v2/models/{name}/infer");
       }},
      {"GET", "/v2/models/{name}/versions/1", Dialect::oip,
       [](App& a, X x, N name) {
         x->respond(json(oip_metadata(a.models_.find(name)->info, name)));
       }},
      {"GET", "/v2/models/{name}/versions/1/ready", Dialect::oip,
       [](App& a, X x, N name) { x->respond(a.oip_ready(name)); }},
      {"POST", "/v2/models/{name}/versions/1/infer", Dialect::oip,
       [](App& a, X x, N name) {
         const ModelPointer model = a.models_.find(name);
         run(model, parse_oip(x->request(), name, a.options_.limits), x, a.options_.limits,
             Dialect::oip, "/v2/models/{name}/infer");
       }},
  };
  return all;
}

bool App::allowed(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return true;
  const std::string& path = request.path;
  if (path == "/health" || path == "/v2/health/live" || path == "/v2/health/ready") return true;
  std::string_view given = request.header("x-api-key");
  const std::string_view bearer = request.header("authorization");
  if (given.empty() && bearer.starts_with("Bearer ")) given = bearer.substr(7);
  return has_key(options_.api_keys, given);
}

bool App::streams(const HttpRequest& request) {
  return request.method == "POST" && is_lines(request) &&
         (request.path == kTsfm.route || request.path == kKserve.route);
}

void App::forecast(const ExchangePointer& exchange, const Protocol& protocol) {
  const HttpRequest& request = exchange->request();
  if (streams(request)) {
    answer_lines(exchange, models_, options_.limits, protocol, options_.max_body_bytes);
    return;
  }
  ParsedCall parsed = protocol.parse(request, options_.limits);
  const ModelPointer model = models_.find(parsed.call.model);
  if (wants_events(request)) {
    answer_events(model, std::move(parsed), exchange, options_.limits, protocol);
  } else {
    run(model, std::move(parsed), exchange, options_.limits, protocol.dialect, protocol.route);
  }
}

void App::anomalies(const ExchangePointer& exchange) {
  const HttpRequest& request = exchange->request();
  const ModelPointer model = models_.find(model_of_query(request.query));
  detect::Options options;
  options.context = options_.limits.context;
  std::vector<data::TimeSeries> series =
      table_for_anomalies(request, options_.limits, options_.max_body_bytes, options);
  answer_anomalies(background_, model, std::move(series), options, exchange, options_.limits,
                   Dialect::plain, "/ui/anomalies", render_anomalies(*model, options.threshold));
}

void App::decode(Exchange& exchange) const {
  HttpRequest& request = exchange.request();
  const std::string_view encoding = request.header("content-encoding");
  if (encoding.empty() || encoding == "identity" || request.body.empty()) return;
  std::string body = decode_body(request.body, encoding, options_.max_body_bytes);
  if (!exchange.keep(body.size())) {
    throw Error(ExitStatus::usage, "memory_full",
                "the bodies of other requests take all the memory there is", {},
                "try again in 1 s");
  }
  request.body = std::move(body);
}

void App::answer(const ExchangePointer& exchange, Dialect dialect) {
  const HttpRequest& request = exchange->request();
  // HEAD is GET whose body the transport leaves out.
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  std::string name;
  std::string others;
  for (const Route& route : routes()) {
    if (!matches(route.path, request.path, name)) continue;
    if (route.method != method) {
      others += (others.empty() ? "" : ", ") + std::string(route.method);
      continue;
    }
    decode(*exchange);
    route.answer(*this, exchange, name);
    return;
  }
  HttpResponse response;
  if (others.empty() && method == "GET") {
    if (auto page = page_file(request.path, request)) {
      exchange->respond(std::move(*page));
      return;
    }
  }
  if (others.empty()) {
    response = error_response(404, "not_found", "there is no " + quote(request.path),
                              "see /openapi.json", dialect, request);
  } else {
    response =
        error_response(405, "method_not_allowed", "expected " + others, "", dialect, request);
    response.headers.push_back({"allow", others});
  }
  exchange->respond(std::move(response));
}

void App::handle(const ExchangePointer& exchange) {
  const HttpRequest& request = exchange->request();
  const Dialect dialect = dialect_of(request.path);
  try {
    if (!allowed(request)) {
      exchange->respond(error_response(401, "unauthorized", "expected an API key",
                                       "send Authorization: Bearer KEY", dialect, request));
      return;
    }
    answer(exchange, dialect);
  } catch (...) {
    exchange->respond(error_response(current_error(), dialect, request));
  }
}

void App::done(const HttpRequest& request, const HttpResponse& response, std::size_t bytes,
               bool sent) {
  const double seconds = std::chrono::duration<double>(Clock::now() - request.received).count();
  HttpResponse counted;
  counted.status = response.status;
  counted.account = response.account;
  if (counted.account.route.empty()) {
    std::string unused;
    for (const Route& route : routes()) {
      if (matches(route.path, request.path, unused)) counted.account.route = route.path;
    }
  }
  metrics_.count(counted, request.body.size(), seconds, sent);
  if (options_.log) options_.log(access_line(request, counted, bytes, seconds, sent));
}

HttpResponse App::health() const {
  JsonText out;
  out.open('{').key("status").string(draining_ ? "draining" : "ok");
  out.key("ready").boolean(!draining_).key("version").string(TOTO_VERSION);
  out.key("uptime_seconds")
      .raw(fmt::format("{:.3f}", std::chrono::duration<double>(Clock::now() - started_).count()));
  out.key("models").open('[');
  for (const ModelPointer& one : models_.all()) out.string(one->name);
  HttpResponse response = json(out.close(']').close('}').take());
  if (draining_) response.status = 503;
  return response;
}

HttpResponse App::model_list() const {
  JsonText out;
  out.open('{').key("object").string("list").key("data").open('[');
  for (const ModelPointer& one : models_.all()) write_model(out, *one, options_.limits);
  return json(out.close(']').close('}').take());
}

HttpResponse App::model(std::string_view name) const {
  JsonText out;
  write_model(out, *models_.find(name), options_.limits);
  return json(out.take());
}

HttpResponse App::kserve_models() const {
  JsonText out;
  out.open('[');
  for (const ModelPointer& one : models_.all()) out.string(one->name);
  return json(out.close(']').take());
}

HttpResponse App::oip_server() const {
  return json("{\"name\":\"toto\",\"version\":\"" TOTO_VERSION
              "\",\"extensions\":[\"binary_tensor_data\"]}");
}

HttpResponse App::oip_ready(std::string_view model) const {
  JsonText out;
  out.open('{');
  if (!model.empty()) out.key("name").string(models_.find(model)->name);
  HttpResponse response = json(out.key("ready").boolean(!draining_).close('}').take());
  if (draining_) response.status = 503;
  return response;
}

}  // namespace toto::server
