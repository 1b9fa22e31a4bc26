// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <atomic>
#include <chrono>

#include "batch.h"
#include "call.h"
#include "errors.h"
#include "lists.h"
#include "load.h"
#include "options.h"
#include "result.h"
#include "toto/service.hpp"
#include "toto/settings.hpp"
#include "watched.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

namespace toto::python {
namespace {

std::atomic<unsigned> forks = 0;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr std::int64_t kLookEveryMs = 20;

/// Everything that one call needs, wherever it is computed.
struct Call {
  Call(std::shared_ptr<ModelHandle::Loaded> model, nb::handle inputs, const SeriesExtras& extras,
       const Options& given, nb::object progress)
      : loaded(std::move(model)),
        batch(inputs, extras, loaded->model.info(), given.forecast.horizon),
        options(given.forecast),
        watcher(std::move(progress)) {
    options.progress = [this](std::size_t done, std::size_t total) {
      return !stopped && watcher(done, total);
    };
  }

  /// Without the GIL.
  void compute() {
    std::unique_lock lock(loaded->turn, std::defer_lock);
    wait_for_turn(lock, options.progress);
    batch.take_out_effects();
    forecasts = batch.effects().forecast(loaded->forecaster, batch.series(), options);
  }

  [[nodiscard]] bool takes_long() const {
    double steps = 0;
    std::size_t variates = 0;
    for (const Series& s : batch.series()) {
      steps += static_cast<double>(s.variates * s.steps);
      variates += s.variates;
    }
    return python::takes_long(steps, variates, options, loaded->model.info());
  }

  std::shared_ptr<ModelHandle::Loaded> loaded;
  Batch batch;
  ForecastOptions options;
  Watcher watcher;
  std::atomic<bool> stopped = false;
  std::vector<Forecast> forecasts;
};

Result forecast(ModelHandle& handle, nb::handle inputs, const Options& options, nb::object ids,
                nb::object mask, nb::object groups, nb::object covariates, std::int64_t exogenous,
                nb::object futures, nb::object future_mask, nb::object progress) {
  const auto call = std::make_shared<Call>(
      handle.loaded(), inputs,
      extras_of(options, std::move(ids), std::move(mask), std::move(groups), std::move(covariates),
                exogenous, std::move(futures), std::move(future_mask)),
      options, std::move(progress));
  try {
    if (call->takes_long()) {
      run_watched([call] { call->compute(); }, [&call] { call->stopped = true; });
    } else {
      const nb::gil_scoped_release free;
      call->compute();
    }
  } catch (const Error&) {
    call->watcher.rethrow();
    throw;
  }
  std::vector<std::string> names;
  names.reserve(call->batch.series().size());
  for (const Series& s : call->batch.series()) names.emplace_back(s.id);
  return {std::move(call->forecasts), std::move(names), call->batch.targets(), call->batch.rank(),
          call->batch.univariate()};
}

void warm_up(
    ModelHandle& handle,
    const std::vector<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>>& given,
    const Options& options) {
  const auto loaded = handle.loaded();
  std::vector<WarmupShape> shapes;
  for (const auto& [context, horizon, variates, batch] : given) {
    shapes.push_back(
        {.context = context, .horizon = horizon, .variates = variates, .batch = batch});
  }
  Watcher watcher{nb::none()};
  ForecastOptions own = options.forecast;
  own.progress = std::ref(watcher);
  try {
    const nb::gil_scoped_release free;
    std::unique_lock lock(loaded->turn, std::defer_lock);
    wait_for_turn(lock, own.progress);
    loaded->forecaster.warm_up(shapes, own);
  } catch (const Error&) {
    watcher.rethrow();
    throw;
  }
}

nb::dict info_of(ModelHandle& handle) {
  const auto loaded = handle.loaded();
  const ModelInfo& info = loaded->model.info();
  nb::dict out;
  out["name"] = info.name;
  out["folder"] = info.folder;
  out["weight_files"] = info.weight_files;
  out["architecture"] = info.architecture;
  out["synthetic"] = info.synthetic;
  out["patch_size"] = info.patch_size;
  out["embed_dim"] = info.embed_dim;
  out["num_layers"] = info.num_layers;
  out["num_heads"] = info.num_heads;
  out["mlp_hidden_dim"] = info.mlp_hidden_dim;
  out["scaler"] = info.scaler;
  out["head"] = info.head;
  out["components"] = info.components;
  out["variate_labels"] = info.variate_labels;
  out["default_paths"] = std::string(word(info.defaults.paths));
  out["default_tails"] = std::string(word(info.defaults.tails));
  out["parameters"] = info.parameters;
  out["file_bytes"] = info.file_bytes;
  out["stored_types"] = info.stored_types;
  out["warnings"] = info.warnings;
  return out;
}

nb::dict settings_dict(ModelHandle& handle) {
  nb::dict out;
  for (const SettingLine& line : describe(handle.loaded()->settings)) {
    out[nb::str(line.name.data(), line.name.size())] =
        nb::make_tuple(line.value, describe(line.origin));
  }
  return out;
}

Recipe recipe_of(const std::optional<std::string>& model, const std::optional<std::string>& preset,
                 std::uint64_t synthetic_seed, const std::optional<std::string>& hub_cache,
                 bool strict, const nb::dict& flags) {
  Recipe recipe;
  recipe.model = model.value_or("");
  recipe.preset = preset.value_or("");
  recipe.synthetic_seed = synthetic_seed;
  recipe.hub_cache = hub_cache.value_or("");
  recipe.strict = strict;
  SettingsFlags& f = recipe.flags;
  const auto text = [&](const char* name) {
    return flags.contains(name) ? std::optional(text_of(flags[name])) : std::nullopt;
  };
  f.preset = text("preset");
  f.mode = text("mode");
  f.kv_cache = text("kv_cache");
  f.device = text("device");
  f.backend = text("backend");
  f.precision = text("precision");
  f.threads = text("threads");
  f.seed = text("seed");
  f.plan_cache_dir = text("plan_cache_dir");
  f.plan_cache = text("plan_cache");
  f.max_plans = text("max_plans");
  f.memory_limit = text("memory_limit");
  f.log = text("log");
  if (flags.contains("strict_counters")) {
    f.strict_counters = nb::cast<bool>(flags["strict_counters"]);
  }
  if (flags.contains("deterministic_checks")) {
    f.deterministic_checks = nb::cast<bool>(flags["deterministic_checks"]);
  }
  return recipe;
}

}  // namespace

unsigned fork_generation() { return forks.load(std::memory_order_relaxed); }

void watch_forks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] {
    ++forks;
    forget_watched();
  });
  if (watched != 0) throw std::bad_alloc();
}

void wait_for_turn(std::unique_lock<std::timed_mutex>& lock,
                   const std::function<bool(std::size_t, std::size_t)>& go_on) {
  while (!lock.try_lock_for(std::chrono::milliseconds(kLookEveryMs))) {
    if (!go_on(0, 0)) {
      throw Error(ExitStatus::interrupted, "interrupted", "stopped while it waited for its turn");
    }
  }
}

bool takes_long(double steps, std::size_t variates, const ForecastOptions& options,
                const ModelInfo& info) {
  constexpr double kOperations = 2e10;
  const std::size_t paths = options.mean_only ? 1 : options.num_samples;
  const double values = steps + static_cast<double>(variates * options.horizon * paths);
  return 2.0 * static_cast<double>(info.parameters) * values / info.patch_size > kOperations;
}

bool Watcher::operator()(std::size_t done, std::size_t total) {
  const std::int64_t now = now_ms();
  if (last_ == 0) last_ = now;
  const bool end = total > 0 && done == total && !callback_.is_none();
  if (now - last_ < kLookEveryMs && !end) return true;
  const nb::gil_scoped_acquire gil;
  last_ = now;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!callback_.is_none() && total > 0) {
      const nb::object answer = callback_(done, total);
      if (answer.ptr() == Py_False) return false;
    }
    return true;
  } catch (nb::python_error& error) {
    raised_.emplace(std::move(error));
    return false;
  }
}

void Watcher::rethrow() {
  if (raised_) throw nb::python_error(std::move(*raised_));
}

ModelHandle::ModelHandle(Recipe recipe)
    : recipe_(std::move(recipe)), loaded_(load()), generation_(fork_generation()) {}

std::shared_ptr<ModelHandle::Loaded> ModelHandle::load() const {
  const Settings settings = settings_of(recipe_.flags);
  return std::make_shared<Loaded>(load_model(recipe_, settings), settings,
                                  forecaster_options_of(settings));
}

ModelHandle::~ModelHandle() { close(); }

void ModelHandle::close() {
  if (loaded_ && generation_ != fork_generation()) {
    // Its threads stayed in the other process; to destroy it would wait for them.
    new std::shared_ptr<Loaded>(std::move(loaded_));
  }
  loaded_.reset();
}

std::shared_ptr<ModelHandle::Loaded> ModelHandle::loaded() {
  if (!loaded_) refuse("closed", "this model was closed", "Model", "load it again");
  if (generation_ != fork_generation()) {
    close();
    loaded_ = load();
    generation_ = fork_generation();
  }
  return loaded_;
}

void bind_model(nb::module_& module) {
  nb::class_<ModelHandle> handle(module, "ModelHandle", "A loaded model and its forecaster.");
  handle
      .def(
          "__init__",
          [](ModelHandle* self, const std::optional<std::string>& model,
             const std::optional<std::string>& preset, std::uint64_t synthetic_seed,
             const std::optional<std::string>& hub_cache, bool strict, const nb::dict& flags) {
            Recipe recipe = recipe_of(model, preset, synthetic_seed, hub_cache, strict, flags);
            const nb::gil_scoped_release free;
            new (self) ModelHandle(std::move(recipe));
          },
          "model"_a.none(), "preset"_a.none(), "synthetic_seed"_a, "hub_cache"_a.none(), "strict"_a,
          "flags"_a)
      .def("forecast", &forecast, "inputs"_a, "options"_a, "ids"_a.none(), "mask"_a.none(),
           "groups"_a.none(), "covariates"_a.none(), "exogenous"_a, "future_exogenous"_a.none(),
           "future_mask"_a.none(), "progress"_a.none())
      .def("warm_up", &warm_up, "shapes"_a, "options"_a)
      .def("info", &info_of)
      .def("settings", &settings_dict)
      .def("counters",
           [](ModelHandle& self) {
             const auto loaded = self.loaded();
             const nb::gil_scoped_release free;
             const std::lock_guard lock(loaded->turn);
             return to_json(loaded->forecaster.counters());
           })
      .def("close", &ModelHandle::close);
  bind_lists(handle);
  module.def("wait_for_watched", &wait_for_watched);
  module.def(
      "devices_of", [](const std::string& text) { return parse_devices(text); }, "text"_a,
      "The names of the devices in \"cpu\", \"cuda:0,cuda:1\" or \"cuda:all\".");
  module.def(
      "threads_of_each",
      [](const std::vector<std::string>& devices, int threads) {
        LoadOptions options;
        options.threads = threads;
        return threads_of_each(options, devices);
      },
      "devices"_a, "threads"_a,
      "How many threads each of several devices computes with; 0: those of the environment, or all "
      "cores.");
  module.def("cuda_unavailable", &cuda_unavailable,
             "Why no GPU can be used here; empty where one can.");
}

}  // namespace toto::python
