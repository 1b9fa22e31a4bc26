// SPDX-License-Identifier: Apache-2.0
// Any request to the whole application, with a small model behind it: each path and method, lines
// and events, tables of the page, live series, compressed bodies that come in pieces. There is one
// answer, never 500, and it is what its content type says; the line of the log is JSON.
//   first byte: bytes of a piece of the body (0: all at once); then "METHOD TARGET\n",
//   "name: value\n" for each header, an empty line, and the body
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/app.h"
#include "server/fake_exchange.h"
#include "support/small_model.h"

namespace {

using namespace toto;
using namespace toto::server;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Whole {
  Whole() {
    const Model model = test::make_model(test::spec_config(), false, {}, 0);
    models.put(std::make_shared<ServedModel>(
        ServedModel{"small", model.info(), model.loaded(), Service(model, {}), model}));
    AppOptions options;
    options.limits.context = 64;
    options.limits.max_series = 8;
    options.limits.max_variates = 6;
    options.limits.max_horizon = 24;
    options.limits.max_samples = 8;
    options.limits.max_levels = 8;
    options.max_body_bytes = 1 << 16;
    options.live.max_series = 4;
    options.log = [this](std::string_view line) { last_line = line; };
    app.emplace(options, models, metrics);
  }
  Models models;
  Metrics metrics{models};
  std::string last_line;
  std::optional<App> app;
};

/// Up to the next newline.
std::string_view line_of(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

HttpRequest request_of(std::string_view text) {
  HttpRequest request;
  std::string_view first = line_of(text);
  const std::size_t space = std::min(first.find(' '), first.size());
  request.method = first.substr(0, space);
  first.remove_prefix(std::min(space + 1, first.size()));
  const std::size_t mark = first.find('?');
  request.path = first.substr(0, mark);
  if (mark != std::string_view::npos) request.query = first.substr(mark + 1);
  for (std::string_view line = line_of(text); !line.empty(); line = line_of(text)) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    request.headers.push_back(
        {lower_case(line.substr(0, colon)), std::string(line.substr(colon + 2))});
  }
  request.body = text;
  request.id = good_request_id(request.header("x-request-id"))
                   ? std::string(request.header("x-request-id"))
                   : new_request_id();
  return request;
}

/// "gzip" where the answer is compressed.
std::string_view encoding_of(const HttpResponse& response) {
  for (const HttpHeader& header : response.headers) {
    if (lower_case(header.name) == "content-encoding") return header.value;
    require(header.value.find_first_of("\r\n") == std::string::npos);
  }
  return {};
}

void check_lines(std::string_view body) {
  while (!body.empty()) require(nlohmann::json::accept(line_of(body)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static Whole& whole = *new Whole;  // its threads must not end with the program
  if (size < 2) return 0;
  HttpRequest request =
      request_of(std::string_view(reinterpret_cast<const char*>(bytes) + 1, size - 1));
  if (request.path.empty()) return 0;
  const bool streams = App::streams(request);
  const auto exchange = std::make_shared<FakeExchange>(request);
  exchange->piece = bytes[0];
  whole.app->handle(exchange);
  HttpResponse response = exchange->wait();
  require(exchange->answers() == 1);
  require(response.status != 500 && !reason_phrase(response.status).empty());
  require(response.source == nullptr || response.status == 200);
  if (response.source) response.body = exchange->whole(response);
  if (encoding_of(response).empty()) {
    if (response.content_type == "application/json" && response.status != 204) {
      require(nlohmann::json::accept(response.body));
    } else if (response.content_type == "application/x-ndjson") {
      require(streams);
      check_lines(response.body);
    } else if (response.content_type == "text/event-stream") {
      require(response.body.find("event: done\n") != std::string::npos);
    }
  }
  whole.app->done(exchange->request(), response, response.body.size(), true);
  require(nlohmann::json::accept(whole.last_line));
  return 0;
}
