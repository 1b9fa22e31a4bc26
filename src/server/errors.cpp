// SPDX-License-Identifier: Apache-2.0
#include "server/errors.h"

#include <fmt/format.h>

#include <array>
#include <new>
#include <utility>

#include "server/json_text.h"

namespace toto::server {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 21> kStatuses = {{
    {"queue_full", 429},
    {"memory_full", 429},
    {"request_too_large", 422},
    {"limit_exceeded", 422},
    {"answer_too_large", 422},
    {"nonfinite_forecast", 422},  // values near the limit of float32
    {"body_too_large", 413},
    {"deadline_exceeded", 504},
    {"draining", 503},
    {"cancelled", 499},
    {"unknown_model", 404},
    {"unknown_series", 404},
    {"not_found", 404},
    {"method_not_allowed", 405},
    {"unsupported_encoding", 415},
    {"unauthorized", 401},
    {"file_too_large", 413},
    {"conflict", 409},
    {"device_failed", 503},
    {"store_failed", 503},
    {"store_format", 503},
}};

std::string text_of(std::string_view message, std::string_view where, std::string_view remedy) {
  std::string text;
  if (!where.empty()) text.append(where).append(": ");
  text += message;
  if (!remedy.empty()) text.append(" (").append(remedy).append(")");
  return text;
}

/// "try again in 0.250 s" says how long; a whole number of seconds goes into the header.
int retry_seconds(std::string_view remedy) {
  double seconds = 0;
  const std::size_t at = remedy.find("try again in ");
  if (at != std::string_view::npos) {
    seconds = std::strtod(std::string(remedy.substr(at + 13)).c_str(), nullptr);
  }
  return seconds > 3600 ? 3600 : static_cast<int>(seconds) + 1;
}

std::string_view type_of(int status) {
  if (status == 404) return "not_found_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

HttpResponse make(int status, std::string_view code, std::string_view message,
                  std::string_view where, std::string_view remedy, Dialect dialect,
                  const HttpRequest& request) {
  HttpResponse response;
  response.status = status;
  response.account.code = code;
  JsonText out;
  out.open('{');
  switch (dialect) {
    case Dialect::plain:
      out.key("error").open('{').key("code").string(code).key("message").string(message);
      out.key("where").string(where).key("remedy").string(remedy).close('}');
      out.key("request_id").string(request.id);
      break;
    case Dialect::kserve:
      out.key("error").open('{').key("code").string(code);
      out.key("message").string(text_of(message, where, remedy));
      out.key("param");
      where.empty() ? out.null() : out.string(where);
      out.key("type").string(type_of(status)).close('}');
      break;
    case Dialect::tsfm:
      out.key("error").string(text_of(message, where, remedy)).key("code").string(code);
      out.key("endpoint").string(request.path);
      break;
    case Dialect::oip:
      out.key("error").string(fmt::format("[{}] {}", code, text_of(message, where, remedy)));
      break;
  }
  response.body = out.close('}').take();
  if (status == 429 || status == 503) {
    response.headers.push_back({"retry-after", std::to_string(retry_seconds(remedy))});
  }
  if (status == 401) response.headers.push_back({"www-authenticate", "Bearer"});
  return response;
}

}  // namespace

Dialect dialect_of(std::string_view path) {
  if (path.starts_with("/v2")) return Dialect::oip;
  if (path.starts_with("/v1/timeseries/")) return Dialect::kserve;
  if (path.starts_with("/v1/series")) return Dialect::plain;
  return path.starts_with("/v1/") ? Dialect::tsfm : Dialect::plain;
}

int http_status(const Error& error) {
  for (const auto& [code, status] : kStatuses) {
    if (code == error.code()) return status;
  }
  switch (error.status()) {
    case ExitStatus::usage:
    case ExitStatus::bad_data:
      return 400;
    case ExitStatus::interrupted:
      return 499;
    case ExitStatus::device_unavailable:
      return 503;
    default:
      return error.code() == "out_of_memory" ? 503 : 500;
  }
}

HttpResponse error_response(const Error& error, Dialect dialect, const HttpRequest& request) {
  return make(http_status(error), error.code(), error.message(), error.where(), error.remedy(),
              dialect, request);
}

HttpResponse error_response(int status, std::string_view code, std::string_view message,
                            std::string_view remedy, Dialect dialect, const HttpRequest& request) {
  return make(status, code, message, {}, remedy, dialect, request);
}

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ExitStatus::internal,
            "out_of_memory",
            "there is no memory for this request",
            {},
            "try again later"};
  } catch (const std::exception& error) {
    return {ExitStatus::internal, "internal", error.what(), {}, "this is a defect of toto"};
  } catch (...) {
    return {
        ExitStatus::internal, "internal", "something was thrown", {}, "this is a defect of toto"};
  }
}

Error invalid_request(std::string_view message, std::string_view where, std::string_view remedy) {
  return {ExitStatus::usage, "invalid_request", message, where, remedy};
}

}  // namespace toto::server
