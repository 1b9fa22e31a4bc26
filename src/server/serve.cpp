// SPDX-License-Identifier: Apache-2.0
#include "server/serve.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <set>

#include "core/json.h"
#include "server/errors.h"

namespace toto::server {

struct Server::Impl {
  Impl(ServeOptions o, std::vector<ModelSource> s)
      : options(std::move(o)), sources(std::move(s)), app(options.app, models, metrics) {}

  ModelPointer load(const ModelSource& source) {
    ServiceOptions service = options.service;
    service.forecaster.log = [this, other = service.forecaster.log](const LogEvent& event) {
      metrics.count_event(event.code);
      if (other) other(event);
    };
    const std::vector<Model> replicas = source.load();
    const Model& first = replicas.front();
    ForecasterOptions forecaster = service.forecaster;
    if (service.memory_limit > 0) forecaster.memory_limit = service.memory_limit;
    return std::make_shared<ServedModel>(ServedModel{
        source.name, first.info(), first.loaded(), Service(replicas, service), first, forecaster});
  }
  void say(std::string_view level, std::string_view event, std::string_view message) const {
    if (options.app.log) options.app.log(event_line(level, event, message));
  }

  ServeOptions options;
  std::vector<ModelSource> sources;
  Models models;
  Metrics metrics{models};
  App app;
  std::optional<Transport> transport;  // the first to go
  std::atomic<const Transport*> listening{nullptr};
};

Server::Server(ServeOptions options, std::vector<ModelSource> sources)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(sources))) {
  std::set<std::string> names;
  for (const ModelSource& source : impl_->sources) {
    if (!names.insert(source.name).second) {
      throw Error(ExitStatus::usage, "duplicate_name",
                  "two models are called " + quote(source.name), "--model",
                  "give them names: --model NAME=MODEL");
    }
    impl_->models.put(impl_->load(source));
  }
  TransportHooks hooks;
  hooks.handler = [this](const ExchangePointer& exchange) { impl_->app.handle(exchange); };
  hooks.streams = App::streams;
  hooks.done = [this](const HttpRequest& request, const HttpResponse& response, std::size_t bytes,
                      bool sent) { impl_->app.done(request, response, bytes, sent); };
  impl_->metrics.watch([impl = impl_.get()] {
    const Transport* const transport = impl->listening;
    return transport == nullptr ? TransportCounts() : transport->counts();
  });
  impl_->transport.emplace(impl_->options.transport, std::move(hooks));
  impl_->listening = &*impl_->transport;
}

Server::~Server() {
  impl_->models.close();
  impl_->app.stop();
  impl_->transport->stop();  // still counted while it ends
}

std::uint16_t Server::port() const { return impl_->transport->port(); }

void Server::reload() {
  for (const ModelSource& source : impl_->sources) {
    try {
      impl_->models.put(impl_->load(source));
      impl_->say("info", "reloaded", source.name);
    } catch (...) {
      const Error error = current_error();
      impl_->say("error", "reload_failed",
                 fmt::format("{}: [{}] {}", source.name, error.code(), error.what()));
    }
  }
  sweep();
}

void Server::sweep() { impl_->models.sweep(); }

void Server::begin_drain() {
  impl_->app.set_draining();
  impl_->transport->begin_drain();
}

bool Server::drain() {
  begin_drain();
  const auto patience =
      std::chrono::milliseconds(static_cast<std::int64_t>(impl_->options.drain_seconds * 1000));
  if (impl_->transport->drain(patience)) return true;
  impl_->models.close();
  impl_->app.stop_background();
  impl_->transport->drain(std::chrono::seconds(1));
  return false;
}

}  // namespace toto::server
