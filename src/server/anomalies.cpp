// SPDX-License-Identifier: Apache-2.0
#include "server/anomalies.h"

#include <charconv>

#include "server/compress.h"
#include "server/run.h"

namespace toto::server {
namespace {

/// Why a search was stopped.
Error why(bool gone, bool stopped) {
  if (gone) return {ExitStatus::interrupted, "cancelled", "the client has gone"};
  if (stopped) {
    return {ExitStatus::usage, "draining", "the server ends", {}, "send it to another server"};
  }
  return {ExitStatus::usage,
          "deadline_exceeded",
          "the deadline passed before all was scored",
          {},
          "allow more time, or ask for less"};
}

}  // namespace

void answer_anomalies(Background& background, const ModelPointer& model,
                      std::vector<data::TimeSeries> series, const detect::Options& options,
                      const ExchangePointer& exchange, const Limits& limits, Dialect dialect,
                      std::string_view route, RenderScores render) {
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  const auto deadline = deadline_of({}, limits, exchange->request().received);
  Account account;
  account.route = route;
  account.model = model->name;
  account.series = series.size();
  background.add(
      model, gone,
      [=, series = std::move(series), render = std::move(render)](
          const std::function<Forecaster&()>& forecaster, const std::function<bool()>& stop) {
        HttpResponse response;
        const auto needed = [&stop, deadline] { return !stop() && Clock::now() < deadline; };
        try {
          if (!needed()) throw Error(ExitStatus::interrupted, "interrupted", "nobody needs it");
          detect::Options own = options;
          own.progress = [&needed](std::size_t, std::size_t) { return needed(); };
          const auto begun = Clock::now();
          const auto scored = detect::Detector(forecaster(), own).update(series);
          response = render(series, scored);
          response.account = account;
          response.account.compute_seconds =
              std::chrono::duration<double>(Clock::now() - begun).count();
          compress_if_taken(exchange->request(), response);
        } catch (...) {
          Error error = current_error();
          if (error.code() == "interrupted") error = why(*gone, stop());
          response = error_response(error, dialect, exchange->request());
          const std::string code = response.account.code;
          response.account = account;
          response.account.code = code;
        }
        exchange->respond(std::move(response));
      });
  exchange->on_gone([gone] { *gone = true; });
}

double read_threshold(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0 && value < 1)) {
    throw invalid_request("expected a probability above 0 and below 1", "threshold", "0.001");
  }
  return value;
}

}  // namespace toto::server
