// SPDX-License-Identifier: Apache-2.0
#include "server/access_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "server/json_text.h"
#include "server/trace_context.h"

namespace toto::server {
namespace {

std::string now() {
  using Clock = std::chrono::system_clock;
  const auto time = Clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(Clock::to_time_t(time)), ms);
}

}  // namespace

std::string access_line(const HttpRequest& request, const HttpResponse& response, std::size_t bytes,
                        double seconds, bool sent) {
  const Account& account = response.account;
  const std::string_view level = response.status >= 500   ? "error"
                                 : response.status >= 400 ? "warning"
                                                          : "info";
  JsonText out;
  out.open('{').key("time").string(now()).key("level").string(level);
  out.key("event").string("request").key("request_id").string(request.id);
  if (const auto trace = parse_traceparent(request.header("traceparent"))) {
    out.key("trace_id").string(trace->trace_id).key("span_id").string(trace->span_id);
  }
  out.key("peer").string(request.peer).key("method").string(request.method);
  out.key("path").string(std::string_view(request.path).substr(0, 512));
  out.key("status").integer(response.status);
  if (!account.code.empty()) out.key("code").string(account.code);
  if (!account.model.empty()) out.key("model").string(account.model);
  if (account.series > 0) out.key("series").whole(account.series);
  out.key("bytes_in").whole(request.body.size()).key("bytes_out").whole(bytes);
  out.key("seconds").raw(fmt::format("{:.6f}", seconds));
  if (account.compute_seconds > 0) {
    out.key("queue_seconds").raw(fmt::format("{:.6f}", account.queue_seconds));
    out.key("compute_seconds").raw(fmt::format("{:.6f}", account.compute_seconds));
  }
  if (!sent) out.key("sent").boolean(false);
  return out.close('}').take() + "\n";
}

std::string event_line(std::string_view level, std::string_view event, std::string_view message) {
  JsonText out;
  out.open('{').key("time").string(now()).key("level").string(level);
  out.key("event").string(event).key("message").string(message);
  return out.close('}').take() + "\n";
}

}  // namespace toto::server
