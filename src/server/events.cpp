// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "server/json_text.h"
#include "server/run.h"
#include "server/streams.h"

namespace toto::server {
namespace {

/// All of it runs on the strand of the exchange.
class Events final : public BodySource {
 public:
  explicit Events(const ExchangePointer& exchange, const Protocol& protocol)
      : request_(exchange->request()), protocol_(protocol), all_(std::make_shared<State>()) {
    request_.body.clear();
    all_->account.route = protocol.route;
  }
  ~Events() override {
    all_->take = {};
    for (const RunningPointer& one : all_->running) {
      one->gone = true;
      cancel(*one);
    }
    all_->running.clear();
  }

  void begin_all(const ModelPointer& model, ParsedCall parsed, const ExchangePointer& exchange,
                 Clock::time_point deadline) {
    State& all = *all_;
    all.account.model = model->name;
    all.account.series = all.total = parsed.call.inputs.size();
    all.seconds = estimate(*model, parsed.call);
    all.progress(request_.received);
    for (std::size_t i = 0; i < all.total; ++i) {
      ParsedCall one;
      one.render = parsed.render;
      one.call.model = parsed.call.model;
      one.call.priority = parsed.call.priority;
      one.call.warnings = parsed.call.warnings;
      one.call.inputs.push_back(std::move(parsed.call.inputs[i]));
      all.running.push_back(
          begin(model, std::move(one), deadline, protocol_.route,
                [exchange, weak = std::weak_ptr(all_), i, dialect = protocol_.dialect,
                 request = request_](const RunningPointer& running) {
                  exchange->post([weak, i, dialect, request, running] {
                    if (const auto state = weak.lock()) {
                      state->arrive(i, answer_of(*running, dialect, request), request.received);
                    }
                  });
                }));
    }
  }

  void next(std::function<void(std::string, bool)> take) override {
    all_->take = std::move(take);
    all_->give();
  }
  void tick() override {
    all_->progress(request_.received);
    all_->give();
  }
  const Account* account() const override { return &all_->account; }

 private:
  struct State {
    void event(std::string_view name, std::optional<std::size_t> id, std::string_view data) {
      text += fmt::format("event: {}\n", name);
      if (id) text += fmt::format("id: {}\n", *id);
      text += fmt::format("data: {}\n\n", data);  // JSON of one line
    }
    void progress(Clock::time_point begun) {
      const double spent = std::chrono::duration<double>(Clock::now() - begun).count();
      event("progress", std::nullopt,
            fmt::format(R"({{"done":{},"total":{},"seconds":{:.3f},"estimated_seconds":{:.3f}}})",
                        done, total, spent, seconds));
    }
    void arrive(std::size_t i, const HttpResponse& response, Clock::time_point begun) {
      ++done;
      failed += response.status == 200 ? 0 : 1;
      if (!response.account.code.empty()) account.code = response.account.code;
      account.queue_seconds = std::max(account.queue_seconds, response.account.queue_seconds);
      account.compute_seconds = std::max(account.compute_seconds, response.account.compute_seconds);
      event(response.status == 200 ? "series" : "error", i, response.body);
      progress(begun);
      if (done == total) {
        event("done", std::nullopt,
              fmt::format(R"({{"done":{},"failed":{},"total":{}}})", done, failed, total));
      }
      give();
    }
    void give() {
      if (!take || text.empty()) return;
      std::exchange(take, {})(std::exchange(text, {}), done == total);
    }

    Account account;
    std::vector<RunningPointer> running;
    std::function<void(std::string, bool)> take;
    std::string text;
    std::size_t done = 0, failed = 0, total = 0;
    double seconds = 0;
  };

  /// Of computing all of it alone, from what was measured; 0: nothing was yet.
  static double estimate(const ServedModel& model, const ForecastCall& call) {
    double seconds = 0;
    const auto lead = static_cast<std::size_t>(std::max(model.info.covariate_lead, 0));
    for (const SeriesInput& input : call.inputs) {
      PreparedSeries prepared;
      prepare(input, lead, prepared);
      Request request;
      request.series = prepared.view;
      request.options = input.options;
      seconds += model.service.estimate(request).request.seconds;
    }
    return seconds;
  }

  HttpRequest request_;
  const Protocol protocol_;
  std::shared_ptr<State> all_;
};

}  // namespace

bool wants_events(const HttpRequest& request) {
  return lists(request.header("accept"), "text/event-stream");
}

void answer_events(const ModelPointer& model, ParsedCall parsed, const ExchangePointer& exchange,
                   const Limits& limits, const Protocol& protocol) {
  require_answer(parsed.call);
  const auto deadline = deadline_of(parsed.call, limits, exchange->request().received);
  const auto events = std::make_shared<Events>(exchange, protocol);
  events->begin_all(model, std::move(parsed), exchange, deadline);
  HttpResponse response;
  response.content_type = "text/event-stream";
  response.headers = {{"cache-control", "no-store"}, {"x-accel-buffering", "no"}};
  response.source = events;
  exchange->respond(std::move(response));
}

}  // namespace toto::server
