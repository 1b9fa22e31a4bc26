// SPDX-License-Identifier: Apache-2.0
// The models that are served, by name, each with its service.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "toto/model.hpp"
#include "toto/service.hpp"

namespace toto::server {

struct ServedModel {
  std::string name;
  ModelInfo info;
  LoadReport report;
  Service service;
  std::optional<Model> model = std::nullopt;  ///< for forecasters beside the service
  ForecasterOptions forecaster = {};
};
using ModelPointer = std::shared_ptr<ServedModel>;

/// Safe to use from many threads.
class Models {
 public:
  Models() = default;
  /// close(): a service must not end on a thread of its own.
  ~Models() { close(); }
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  /// Adds it, or puts it in the place of the one of its name. Requests that have the old one end
  /// with it; sweep() lets go of it after the last.
  void put(ModelPointer model);
  /// An empty name is the first one. Throws Error unknown_model, which lists them.
  [[nodiscard]] ModelPointer find(std::string_view name) const;
  [[nodiscard]] std::vector<ModelPointer> all() const;
  /// Lets go of replaced models that no request has any more. Not to be called on a thread of a
  /// service. True: none is left.
  bool sweep();
  /// Ends all services: what waits or runs is cancelled.
  void close();

 private:
  mutable std::mutex mutex_;
  std::vector<ModelPointer> models_, replaced_;
};

}  // namespace toto::server
