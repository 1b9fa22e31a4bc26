// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_options.h"

#include <algorithm>

#include "cli/arguments.h"
#include "core/closest.h"
#include "core/input_file.h"
#include "settings/words.h"

namespace toto::cli {
namespace {

constexpr std::string_view kPrefix = "TOTO_SERVE_";

/// --max-body: TOTO_SERVE_MAX_BODY.
std::string variable_of(std::string_view flag) {
  std::string name(kPrefix);
  for (const char c : flag.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

/// Adds flags of one group and remembers their variables.
class Group {
 public:
  Group(const Command& command, std::string heading, std::vector<std::string>& variables)
      : command_(command), heading_(std::move(heading)), variables_(variables) {}

  template <typename T>
  void whole(const std::string& flag, T& value, std::uint64_t least, std::uint64_t most,
             const std::string& help) {
    take(flag, add_whole(command_, flag, value, least, most, "invalid_limit", help));
  }
  void seconds(const std::string& flag, double& value, const std::string& help) {
    take(flag, add_number(command_, flag, value, 0.001, 86'400, "invalid_limit", help));
  }
  void text(const std::string& flag, std::string& value, const char* type,
            const std::string& help) {
    take(flag, command_.add_option(flag, value, help).type_name(type));
  }
  void take(const std::string& flag, const Flag& option) {
    const std::string variable = variable_of(first_name(flag));
    option.group(heading_).or_variable(variable);
    variables_.push_back(variable);
  }

 private:
  const Command& command_;
  std::string heading_;
  std::vector<std::string>& variables_;
};

std::vector<std::string>& variables() {
  static std::vector<std::string> all;
  return all;
}

void add_limits(const Command& command, ServeRequest& request) {
  server::Limits& limits = request.serve.app.limits;
  Group of_request(command, "Limits of a request", variables());
  of_request.text("--max-body", request.max_body, "SIZE",
                  "Bytes of a body, once decompressed too (default 16MiB)");
  of_request.whole("--max-series", limits.max_series, 1, 1'000'000, "Series (default 1024)");
  of_request.whole("--max-variates", limits.max_variates, 1, 100'000,
                   "Variates of a series, covariates included (default 1024)");
  of_request.whole("--max-horizon", limits.max_horizon, 1, 100'000, "Steps ahead (default 10000)");
  of_request.whole("--max-samples", limits.max_samples, 1, 65'536, "Trajectories (default 4096)");
  of_request.whole("--max-quantiles", limits.max_levels, 1, 10'000,
                   "Quantile levels (default 200)");
  of_request.whole("--context", limits.context, 1, 10'000'000,
                   "Steps of history looked at, the last ones (default 4096)");
  of_request.seconds("--timeout", limits.max_timeout_seconds,
                     "Seconds from the header to the forecast; requests may ask for less "
                     "(default 300)");
  of_request.take(
      "--max-request-cost",
      add_number(command, "--max-request-cost", request.serve.service.max_request_cost, 0, 1e15,
                 "invalid_limit", "Tokens of a series through the network (default 0: no limit)"));
}

void add_batching(const Command& command, ServeRequest& request) {
  ServiceOptions& service = request.serve.service;
  Group group(command, "Queue and batches", variables());
  group.whole("--max-queue", service.max_queue, 1, 10'000'000,
              "Series that wait; one more is 429 (default 4096)");
  group.take("--max-batch-cost",
             add_number(command, "--max-batch-cost", service.max_batch_cost, 1, 1e15,
                        "invalid_limit", "Tokens of a micro-batch (default 65536)"));
  group.whole("--max-batch-requests", service.max_batch_requests, 1, 1'000'000,
              "Series of a micro-batch (default 1024)");
}

void add_connections(const Command& command, ServeRequest& request) {
  server::TransportOptions& transport = request.serve.transport;
  Group group(command, "Connections", variables());
  group.text("--host", transport.address, "ADDRESS",
             "Address to listen at (default 127.0.0.1; 0.0.0.0: all)");
  group.whole("--port", transport.port, 0, 65'535, "Port (default 8000; 0: any that is free)");
  group.whole("--io-threads", transport.threads, 1, 256,
              "Threads that read and write (default 2; beside a GPU half the cores)");
  group.whole("--max-connections", transport.max_connections, 1, 1'000'000,
              "Open connections; one more is 503 (default 10240)");
  group.whole("--max-header", transport.max_header_bytes, 256, 1 << 20,
              "Bytes of a header (default 16384)");
  group.text("--max-held", request.max_held, "SIZE",
             "Bytes of all bodies in memory; one more is 429 (default 512MiB)");
  group.seconds("--header-timeout", transport.header_seconds,
                "Seconds for a whole header (default 10)");
  group.seconds("--body-timeout", transport.body_seconds, "Seconds for a whole body (default 60)");
  group.seconds("--idle-timeout", transport.idle_seconds,
                "Seconds between requests of a connection (default 75)");
  group.seconds("--write-timeout", transport.write_seconds,
                "Seconds in which a client must take something (default 30)");
  group.seconds("--drain-timeout", request.serve.drain_seconds,
                "Seconds for what is open after SIGTERM (default 30)");
  group.text("--api-keys", request.key_file, "FILE",
             "Only who sends one of these keys, a line each, is answered");
  group.take("--quiet-requests", command.add_flag("--quiet-requests", request.quiet_requests,
                                                  "No line on standard error for each request"));
}

void add_live(const Command& command, ServeRequest& request) {
  server::LiveOptions& live = request.serve.app.live;
  Group group(command, "Live series", variables());
  group.text("--store", live.path, "FILE",
             "Keep live series in this SQLite database (default: in memory alone)");
  group.whole("--max-live-series", live.max_series, 0, 100'000'000,
              "Live series (default 10000; 0: none)");
  group.text("--max-live-memory", request.max_live, "SIZE",
             "Bytes of live series, each with a full context (default 256MiB)");
}

std::uint64_t size_of(const std::string& text, std::string_view flag, std::uint64_t otherwise) {
  if (text.empty()) return otherwise;
  const auto bytes = read_bytes(text);
  if (bytes && *bytes > 0) return *bytes;
  throw Error(ExitStatus::usage, "invalid_limit",
              "expected a number of bytes such as 16777216, 16MB or 16MiB, found '" + text + "'",
              flag);
}

std::vector<std::string> read_keys(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  const std::string text = read_text_file(path, kMostBytes, ExitStatus::usage);
  std::vector<std::string> keys;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string key = text.substr(at, end - at);
    if (key.ends_with('\r')) key.pop_back();
    if (!key.empty() && !key.starts_with('#')) keys.push_back(std::move(key));
    at = end + 1;
  }
  if (keys.empty()) {
    throw Error(ExitStatus::usage, "no_api_keys", "expected a key on each line, found none", path,
                "write one into the file, or leave out --api-keys");
  }
  return keys;
}

}  // namespace

void add_serve_options(const Command& command, ServeRequest& request) {
  request.serve.service.max_queue = 4096;
  request.serve.transport.threads = 0;  // chosen by the device
  Group models(command, "The model", variables());
  models.take("--model",
              command
                  .add_option("--model,-m", request.models,
                              "Folder, .safetensors file or Hub id, possibly NAME= before it; "
                              "several times for several models (default: TOTO_MODEL_ID, then the "
                              "model that ships with toto)")
                  .one_value()
                  .type_name("MODEL"));
  models.text("--devices", request.devices, "DEVICE,...",
              "Several devices, each with a replica: cuda:0,cuda:1 or cuda:all");
  add_model_options(command, request.query);
  add_seed_option(command, request.settings, "The model");
  add_settings_options(command, request.settings);
  add_limits(command, request);
  add_batching(command, request);
  add_connections(command, request);
  add_live(command, request);
}

void check(ServeRequest& request) {
  server::ServeOptions& serve = request.serve;
  serve.transport.max_body_bytes =
      size_of(request.max_body, "--max-body", serve.transport.max_body_bytes);
  serve.transport.max_held_bytes =
      size_of(request.max_held, "--max-held", serve.transport.max_held_bytes);
  serve.app.live.max_bytes =
      size_of(request.max_live, "--max-live-memory", serve.app.live.max_bytes);
  serve.app.max_body_bytes = serve.transport.max_body_bytes;
  if (!request.key_file.empty()) serve.app.api_keys = read_keys(request.key_file);
  for (const auto& [name, value] : process_variables()) {
    if (!name.starts_with(kPrefix) || value.empty()) continue;
    if (std::ranges::find(variables(), name) != variables().end()) continue;
    const std::string_view near = closest(name, variables());
    warn(name + " is set, but this version does not read it" +
         (near.empty() ? "" : " (did you mean " + std::string(near) + "?)"));
  }
}

}  // namespace toto::cli
