// SPDX-License-Identifier: Apache-2.0
// All settings at once, and what they mean to the options of the library.
#include "toto/settings.hpp"

#include <unistd.h>

#include <cstdio>

#include "settings/resolver.h"
#include "toto/forecast.hpp"

namespace toto {

Variables process_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return variables;
}

Settings resolve_settings(const SettingsFlags& flags, const Variables& variables) {
  const Resolver from(flags, variables);
  Settings s;
  s.preset = from.preset();
  s.mode = from.mode();
  s.kv_cache = from.kv_cache(s.mode.value);
  s.device = from.device();
  s.device_index = from.device_index();
  s.precision = from.precision();
  s.backend = from.backend(s.precision.value);
  s.threads = from.threads(s.backend.value);
  s.seed = from.seed();
  s.model = from.model();
  s.plan_cache_dir = from.plan_cache_dir();
  s.plan_cache = from.plan_cache();
  s.max_plans = from.max_plans();
  s.memory_limit = from.memory_limit();
  s.log = from.log();
  s.strict_counters = from.strict_counters();
  s.deterministic_checks = from.deterministic_checks();
  s.notes = explain(variables);
  return s;
}

Settings Settings::from_environment(const Variables& variables) {
  return resolve_settings({}, variables);
}

void Settings::apply(ModelQuery& query) const {
  query.model = model.value;
  query.environment = Environment::ignored;
}

void Settings::apply(ForecasterOptions& options) const {
  options.memory_limit = memory_limit.value;
  options.max_plans = max_plans.value;
  options.seed = seed.value;
  options.plan_cache_dir = plan_cache_dir.value;
  options.plan_cache = plan_cache.value;
  options.strict_counters = strict_counters.value;
  options.deterministic_checks = deterministic_checks.value;
  if (!options.log) options.log = log_to_stderr(log.value);
  options.environment = Environment::ignored;
}

void Settings::apply(ForecastOptions& options) const { options.seed = seed.value; }

LogSink log_to_stderr(const LogCategories& topics) {
  if (topics == LogCategories{}) return {};
  return [topics](const LogEvent& event) {
    const bool warning = event.severity == Severity::warning;
    if (!warning && !topics.has(event.topic)) return;
    std::string line = warning ? "toto: warning: " : "toto: ";
    line.append(event.message).append("\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
  };
}

}  // namespace toto
