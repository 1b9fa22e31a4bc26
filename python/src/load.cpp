// SPDX-License-Identifier: Apache-2.0
#include "load.h"

#include <algorithm>
#include <string_view>

namespace nb = nanobind;

namespace toto::python {
namespace {

/// To the logger "toto_cpp" of Python (toto_cpp/_log.py): warnings, what variables of PyTorch mean
/// here, and the topics that the settings ask for.
LogSink log_to_python(const LogCategories& topics) {
  return [topics](const LogEvent& event) {
    const bool warns = event.severity == Severity::warning || event.code == "variable";
    if (!warns && !topics.has(event.topic)) return;
    const nb::gil_scoped_acquire gil;
    nb::module_::import_("toto_cpp._log")
        .attr(warns ? "warning" : "info")(nb::str(event.message.data(), event.message.size()));
  };
}

/// "--plan-cache" is the argument plan_cache, and "--device cpu" is device="cpu".
template <typename Call>
void with_arguments(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    if (!error.where().starts_with("--")) throw;
    std::string argument = error.where().substr(2);
    std::replace(argument.begin(), argument.end(), '-', '_');
    std::string remedy = error.remedy();
    constexpr std::string_view kFlag = "--device cpu";
    if (const auto at = remedy.find(kFlag); at != std::string::npos) {
      remedy.replace(at, kFlag.size(), "device=\"cpu\"");
    }
    throw Error(error.status(), error.code(), error.message(), argument, remedy);
  }
}

}  // namespace

Settings settings_of(const SettingsFlags& flags) {
  Settings settings;
  with_arguments([&] { settings = resolve_settings(flags); });
  return settings;
}

ModelQuery query_of(const Recipe& recipe, const Settings& settings) {
  ModelQuery query;
  settings.apply(query);
  if (!recipe.model.empty()) query.model = recipe.model;
  query.hub_cache = recipe.hub_cache;
  query.strict = recipe.strict;
  return query;
}

LoadOptions load_options_of(const Settings& settings) {
  LoadOptions options;
  options.log = log_to_python(settings.log.value);
  with_arguments([&] { settings.apply(options); });
  return options;
}

Model load_model(const Recipe& recipe, const Settings& settings) {
  const LoadOptions options = load_options_of(settings);
  if (!recipe.preset.empty()) {
    return Model::synthesise(recipe.preset, recipe.synthetic_seed, options);
  }
  return Model::load(query_of(recipe, settings), options);
}

ForecasterOptions forecaster_options_of(const Settings& settings) {
  ForecasterOptions options;
  options.log = log_to_python(settings.log.value);
  settings.apply(options);
  return options;
}

}  // namespace toto::python
