// SPDX-License-Identifier: Apache-2.0
#include "load.h"

#include <algorithm>
#include <string_view>

namespace nb = nanobind;

namespace toto::python {
namespace {

/// To the logger "toto_cpp" of Python (toto_cpp/_log.py).
std::function<void(std::string_view)> log_to_python(const char* function) {
  return [function](std::string_view line) {
    const nb::gil_scoped_acquire gil;
    nb::module_::import_("toto_cpp._log").attr(function)(nb::str(line.data(), line.size()));
  };
}

LoadOptions load_options_of(const Settings& settings) {
  LoadOptions options;
  options.backend = settings.backend.value;
  options.precision = settings.precision.value;
  options.threads = settings.threads.value;
  options.mode = settings.mode.value;
  options.warning = log_to_python("warning");
  if (settings.device.value == Device::cpu) return options;
  const std::string why = cuda_unavailable();
  if (why.empty()) {
    options.backend = "cuda";
    options.else_cpu = settings.device.value == Device::automatic;
  } else if (settings.device.value == Device::cuda) {
    throw Error(ExitStatus::device_unavailable, "device_unavailable", why, "device",
                "use device=\"cpu\" or device=\"auto\"");
  } else {
    options.warning("running on the CPU: " + why);
  }
  return options;
}

}  // namespace

Settings settings_of(const SettingsFlags& flags) {
  try {
    return resolve_settings(flags);
  } catch (const Error& error) {
    if (!error.where().starts_with("--")) throw;
    std::string argument = error.where().substr(2);
    std::replace(argument.begin(), argument.end(), '-', '_');
    throw Error(error.status(), error.code(), error.message(), argument, error.remedy());
  }
}

Model load_model(const Recipe& recipe, const Settings& settings) {
  const LoadOptions options = load_options_of(settings);
  if (!recipe.preset.empty()) {
    return Model::synthesise(recipe.preset, recipe.synthetic_seed, options);
  }
  ModelQuery query;
  query.model = recipe.model;
  query.hub_cache = recipe.hub_cache;
  query.strict = recipe.strict;
  return Model::load(query, options);
}

ForecasterOptions forecaster_options_of(const Settings& settings) {
  ForecasterOptions options;
  options.memory_limit = settings.memory_limit.value;
  options.max_plans = settings.max_plans.value;
  options.plan_cache_dir = settings.plan_cache_dir.value;
  options.plan_cache = settings.plan_cache.value;
  options.strict_counters = settings.strict_counters.value;
  options.deterministic_checks = settings.deterministic_checks.value;
  options.warning = log_to_python("warning");
  const LogCategories& log = settings.log.value;
  if (log.plans || log.graphs || log.cache || log.memory) options.plan_log = log_to_python("info");
  return options;
}

}  // namespace toto::python
