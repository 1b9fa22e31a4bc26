// SPDX-License-Identifier: Apache-2.0
// A model that Python holds: loaded, with a forecaster, and loaded again in a process that was
// forked.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "toto/forecast.hpp"
#include "toto/model.hpp"
#include "toto/settings.hpp"

namespace toto::python {

/// How a model is loaded, as it was asked for.
struct Recipe {
  std::string model;   ///< as ModelQuery::model
  std::string preset;  ///< of synthetic weights, instead of a model; empty: none
  std::uint64_t synthetic_seed = 0;
  std::string hub_cache;
  bool strict = false;
  SettingsFlags flags;
};

class ModelHandle {
 public:
  /// Loads. Without the GIL: sinks of events take it.
  explicit ModelHandle(Recipe recipe);
  ~ModelHandle();
  ModelHandle(const ModelHandle&) = delete;
  ModelHandle& operator=(const ModelHandle&) = delete;

  struct Loaded {
    Loaded(Model m, Settings s, const ForecasterOptions& options)
        : model(std::move(m)), settings(std::move(s)), forecaster(model, options) {}
    Model model;
    Settings settings;
    Forecaster forecaster;
    std::timed_mutex turn;  ///< of the forecaster
  };

  /// In a process that was forked after loading, the threads of the model are gone: it is loaded
  /// again, and the old one is left alone. Call with the GIL held.
  [[nodiscard]] std::shared_ptr<Loaded> loaded();
  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  void close();

 private:
  [[nodiscard]] std::shared_ptr<Loaded> load() const;

  Recipe recipe_;
  std::shared_ptr<Loaded> loaded_;
  unsigned generation_ = 0;
};

/// How often this process has been forked from one that had this module: 0 in the first.
unsigned fork_generation();
void watch_forks();

/// Waits for the turn of a forecaster; Ctrl-C ends the wait. Without the GIL.
void wait_for_turn(std::unique_lock<std::timed_mutex>& lock,
                   const std::function<bool(std::size_t, std::size_t)>& go_on);

/// Long enough for people to want it stopped: some tenths of a second, or more. `steps`: of the
/// contexts of all variates together.
bool takes_long(double steps, std::size_t variates, const ForecastOptions& options,
                const ModelInfo& info);

/// Progress for people and Ctrl-C, looked at every 20 ms. `stopped()` holds what Python raised.
class Watcher {
 public:
  explicit Watcher(nanobind::object callback) : callback_(std::move(callback)) {}
  /// For ForecastOptions::progress; takes the GIL when it is time.
  bool operator()(std::size_t done, std::size_t total);
  /// Throws what Python raised while it watched. With the GIL held.
  void rethrow();

 private:
  nanobind::object callback_;
  std::optional<nanobind::python_error> raised_;
  std::int64_t last_ = 0;
};

void bind_model(nanobind::module_& module);

}  // namespace toto::python
