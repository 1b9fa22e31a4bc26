// SPDX-License-Identifier: Apache-2.0
#include "server/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/compress.h"

namespace toto::server {
namespace {

/// A service that ends cancels what nobody cancelled.
Error told(const Error& error, bool gone) {
  if (error.code() != "cancelled" || gone) return error;
  return {ExitStatus::usage, "draining", "the server ends", error.where(),
          "send it to another server"};
}

/// Counts down; the last one is told.
void arrive(const RunningPointer& running, std::size_t count) {
  if (running->left.fetch_sub(count) != count) return;
  std::exchange(running->ready, {})(running);
}

}  // namespace

Clock::time_point deadline_of(const ForecastCall& call, const Limits& limits,
                              Clock::time_point received) {
  const double time = std::min(call.timeout_seconds.value_or(limits.max_timeout_seconds),
                               limits.max_timeout_seconds);
  return received +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time));
}

RunningPointer begin(const ModelPointer& model, ParsedCall parsed, Clock::time_point deadline,
                     std::string_view route, std::function<void(const RunningPointer&)> ready) {
  require_answer(parsed.call);
  auto running = std::make_shared<Running>();
  running->parsed = std::move(parsed);
  running->model = model;
  running->ready = std::move(ready);
  ForecastCall& call = running->parsed.call;
  call.model = model->name;
  running->account.route = route;
  running->account.model = model->name;
  running->account.series = call.inputs.size();
  const auto lead = static_cast<std::size_t>(std::max(model->info.covariate_lead, 0));
  for (const SeriesInput& input : call.inputs) {
    prepare(input, lead, running->series.emplace_back());
  }
  const std::size_t count = call.inputs.size();
  running->left = count + 1;
  running->futures.reserve(count);
  bool refused = false;
  for (std::size_t i = 0; i < count && !refused; ++i) {
    Request request;
    request.series = running->series[i].view;
    request.options = call.inputs[i].options;
    request.priority = call.priority;
    request.deadline = deadline;
    request.borrow = true;
    running->futures.push_back(
        model->service.submit(request, [running](const Future&) { arrive(running, 1); }));
    const Future& future = running->futures.back();
    refused = future.ready() && future.error() != nullptr;
  }
  if (refused) cancel(*running);
  arrive(running, 1 + count - running->futures.size());
  return running;
}

void cancel(Running& running) {
  for (Future& future : running.futures) future.cancel();
}

HttpResponse answer_of(Running& running, Dialect dialect, const HttpRequest& request) {
  Account& account = running.account;
  const Error* wrong = nullptr;
  for (const Future& future : running.futures) {
    account.queue_seconds = std::max(account.queue_seconds, future.queue_seconds());
    account.compute_seconds = std::max(account.compute_seconds, future.compute_seconds());
    const Error* error = future.error();
    // What was cancelled because another one failed says nothing.
    if (error != nullptr && (wrong == nullptr || wrong->code() == "cancelled")) wrong = error;
  }
  HttpResponse response;
  try {
    if (wrong != nullptr) throw Error(told(*wrong, running.gone));
    std::vector<Forecast> forecasts;
    forecasts.reserve(running.futures.size());
    for (Future& future : running.futures) forecasts.push_back(future.get());
    response = running.parsed.render(running.parsed.call, forecasts);
  } catch (...) {
    response = error_response(current_error(), dialect, request);
    account.code = response.account.code;
  }
  response.account = account;
  return response;
}

void run(const ModelPointer& model, ParsedCall parsed, const ExchangePointer& exchange,
         const Limits& limits, Dialect dialect, std::string_view route) {
  const auto deadline = deadline_of(parsed.call, limits, exchange->request().received);
  const auto finish = [exchange, dialect](const RunningPointer& running) {
    const HttpRequest& request = exchange->request();
    HttpResponse response = answer_of(*running, dialect, request);
    compress_if_taken(request, response);
    response.headers.push_back(
        {"server-timing",
         fmt::format("queue;dur={:.3f}, compute;dur={:.3f}", response.account.queue_seconds * 1e3,
                     response.account.compute_seconds * 1e3)});
    exchange->respond(std::move(response));
  };
  const RunningPointer running = begin(model, std::move(parsed), deadline, route,
                                       [exchange, finish](const RunningPointer& ready) {
                                         exchange->post([finish, ready] { finish(ready); });
                                       });
  exchange->on_gone([weak = std::weak_ptr(running)] {
    const RunningPointer one = weak.lock();
    if (one == nullptr) return;
    one->gone = true;
    cancel(*one);
  });

  // What is computed may take a while to stop: who asked is told at once.
  exchange->on_deadline(deadline, [weak = std::weak_ptr(running), exchange, dialect] {
    const RunningPointer one = weak.lock();
    if (one == nullptr) return;
    const Error late(ExitStatus::usage, "deadline_exceeded",
                     "the deadline passed before the forecast was there", {},
                     "allow more time, or ask for less");
    HttpResponse response = error_response(late, dialect, exchange->request());
    one->account.code = late.code();
    response.account = one->account;
    exchange->respond(std::move(response));
    cancel(*one);
  });
}

}  // namespace toto::server
