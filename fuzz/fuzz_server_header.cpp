// SPDX-License-Identifier: Apache-2.0
// Any bytes as the headers that are read one by one: traceparent, request ids, times allowed, lists
// of words (Accept, Accept-Encoding), content types, keys. The line of the log is JSON whatever
// they are, and says a trace only where W3C's grammar has one.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <string_view>

#include "server/access_log.h"
#include "server/app.h"
#include "server/call.h"
#include "server/compress.h"
#include "server/streams.h"
#include "server/trace_context.h"

namespace {

using namespace toto;
using namespace toto::server;

void require(bool holds) {
  if (!holds) std::abort();
}

HttpRequest with(const char* name, const std::string& value) {
  HttpRequest request;
  request.headers = {{name, value}};
  return request;
}

/// The grammar of W3C Trace Context 3.2.2, written another way.
bool is_trace(const std::string& text) {
  static const std::regex grammar(
      "(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[^]*)?");
  std::smatch found;
  if (text.size() > 200 || !std::regex_match(text, found, grammar)) return false;
  return found[1] != "00" || !found[2].matched;
}

void use_trace(const std::string& text) {
  const auto trace = parse_traceparent(text);
  require(text.size() > 200 || trace.has_value() == is_trace(text));
  const auto line = access_line(with("traceparent", text), {}, 0, 0, true);
  require(nlohmann::json::parse(line).contains("trace_id") == trace.has_value());
}

/// What of a request goes into the log.
void use_log(const std::string& text) {
  HttpRequest request;
  request.id = good_request_id(text) ? text : new_request_id();
  request.method = request.path = request.peer = text;
  HttpResponse response;
  response.account.code = response.account.model = text;
  const std::string line = access_line(request, response, 1, 2, false);
  require(nlohmann::json::accept(line) && line.find('\n') == line.size() - 1);
  require(nlohmann::json::accept(event_line("info", "event", text)));
}

void use_time(const std::string& text) {
  const auto seconds = timeout_of(with("x-request-timeout-ms", text));
  require(seconds.has_value() != text.empty());
  if (!seconds) return;
  require(*seconds >= 0.001 && *seconds <= 86'400);
  require(text.find_first_not_of("0123456789") == std::string::npos);
}

void use_words(const std::string& text) {
  const bool taken = lists(text, "gzip");
  HttpResponse response;
  response.body.assign(100'000, 'a');
  compress_if_taken(with("accept-encoding", text), response);
  require((response.body.size() < 100'000) == taken);
  (void)wants_events(with("accept", text));
  (void)is_lines(with("content-type", text));
}

void use_key(const std::string& text) {
  const std::size_t cut = text.find('\n');
  const std::string key = text.substr(0, cut);
  const std::string given = cut == std::string::npos ? std::string() : text.substr(cut + 1);
  if (key.empty()) return;
  require(has_key({key, "another"}, given) == (given == key || given == "another"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  try {
    switch (bytes[0] % 5) {
      case 0:
        use_trace(text);
        break;
      case 1:
        use_log(text);
        break;
      case 2:
        use_time(text);
        break;
      case 3:
        use_words(text);
        break;
      default:
        use_key(text);
    }
  } catch (const Error& error) {
    require(error.code() == "invalid_request");
  }
  return 0;
}
