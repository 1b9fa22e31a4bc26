// SPDX-License-Identifier: Apache-2.0
// The whole server: models, routes and connections, from start to drained.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/app.h"
#include "server/transport.h"

namespace toto::server {

struct ServeOptions {
  TransportOptions transport;
  AppOptions app;
  ServiceOptions service;
  double drain_seconds = 30;
};

/// How a model comes into memory, the first time and when it is loaded again.
struct ModelSource {
  std::string name;
  std::function<std::vector<Model>()> load;  ///< replicas; throws what Model::load throws
};

class Server {
 public:
  /// Loads the models, then listens. Throws what loading and Transport throw, and Error
  /// duplicate_name (2) for two models of one name.
  Server(ServeOptions options, std::vector<ModelSource> sources);
  ~Server();

  [[nodiscard]] std::uint16_t port() const;
  /// Loads every model again and puts it in the place of the old one. Where one cannot be loaded
  /// the old one stays, and the log says why.
  void reload();
  /// Lets go of replaced models whose last request has ended. To be called now and then.
  void sweep();
  /// Readiness says 503 from here on, and nobody new is let in. Returns at once.
  void begin_drain();
  /// The same; open requests end; then everything is closed. False: some were
  /// cancelled after drain_seconds.
  bool drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace toto::server
