// SPDX-License-Identifier: Apache-2.0
// What a program left open in the options of a model: the environment is read, the device chosen.
#include <fmt/format.h>

#include "core/log.h"
#include "settings/resolver.h"
#include "toto/model.hpp"

namespace toto {
namespace {

ExitStatus status_of(const Origin& origin) {
  return origin.source == Source::environment ? ExitStatus::bad_config : ExitStatus::usage;
}

/// Why the options rule a device out; empty: they do not. Throws where one was asked for by name
/// all the same.
std::string_view only_on_cpu(const LoadOptions& options, const Setting<Device>& device) {
  const bool wide = options.precision == Precision::float64;
  const bool by_type = wide || options.precision == Precision::int8;
  if (!by_type && options.backend != "reference") return {};
  const std::string_view what = wide      ? "float64 is computed on a CPU only"
                                : by_type ? "int8 is computed on a CPU only"
                                          : "the reference backend computes on a CPU only";
  if (device.value == Device::cuda) {
    throw Error(status_of(device.origin), by_type ? "unsupported_precision" : "conflicting_flags",
                what, device.origin.name,
                by_type ? "use float32, tf32 or bfloat16, or the CPU" : "use --device cpu");
  }
  return what;
}

/// Turns the device into a backend. The one that is there already is what runs on a CPU.
void choose_device(LoadOptions& options, const Setting<Device>& device, int index) {
  const std::string_view cpu = only_on_cpu(options, device);
  const bool wide = options.precision == Precision::float64;
  if (options.backend.empty()) options.backend = wide ? "reference" : "cpu";
  if (device.value == Device::cpu) return;
  const std::string why = cpu.empty() ? cuda_unavailable() : std::string(cpu);
  if (why.empty()) {
    options.backend = "cuda";
    if (const int count = cuda_devices(); index >= count) {
      throw Error(ExitStatus::device_unavailable, "device_unavailable",
                  fmt::format("there is no GPU cuda:{}: this process sees {}, from cuda:0 on",
                              index, count),
                  device.origin.name, "choose another, or see CUDA_VISIBLE_DEVICES");
    }
    options.device_index = index;
    options.else_cpu = options.else_cpu || device.value == Device::automatic;
  } else if (device.value == Device::cuda) {
    throw Error(ExitStatus::device_unavailable, "device_unavailable", why, device.origin.name,
                "use --device cpu");
  } else {
    log_warning(options.log, Topic::device, "device_unavailable", "running on the CPU: " + why);
  }
}

Setting<Device> device_of(const LoadOptions& options, const Resolver& from) {
  if (options.device) return {*options.device, {Source::flag, "LoadOptions::device"}};
  return from.device();
}

void log_notes(const LogSink& log, const std::vector<VariableNote>& notes) {
  if (!log) return;
  for (const VariableNote& note : notes) {
    log({Topic::settings, note.severity, "variable", note.meaning});
  }
}

}  // namespace

void Settings::apply(LoadOptions& options) const {
  options.precision = precision.value;
  options.threads = threads.value;
  options.mode = mode.value;
  // That of the mode is left open: a program may choose another mode.
  options.kv_cache = {};
  if (kv_cache.origin.source != Source::built_in) options.kv_cache = kv_cache.value;
  if (!options.log) options.log = log_to_stderr(log.value);
  log_notes(options.log, notes);
  options.backend = backend.value == "reference" ? "reference" : "";
  choose_device(options, device, device_index);
  options.device = {};
  options.environment = Environment::ignored;
}

LoadOptions complete(const LoadOptions& options) {
  LoadOptions all = options;
  const SettingsFlags flags;
  const Variables variables =
      options.environment == Environment::obeyed ? process_variables() : Variables{};
  const Resolver from(flags, variables);
  if (!all.log) all.log = log_to_stderr(from.log().value);
  log_notes(all.log, explain(variables));
  if (const auto forced = from.forced_mode()) all.mode = forced->value;
  if (!all.mode) all.mode = from.mode().value;
  // That of the mode stays open: whoever loads another mode with these options gets that mode's.
  const Setting<ContextCache> cache = from.kv_cache(*all.mode);
  const bool named = cache.origin.source != Source::built_in;
  if (from.forced_mode() || (!all.kv_cache && named)) all.kv_cache = cache.value;
  const bool by_name = !all.backend.empty() && all.backend != "reference";
  if (!by_name && (all.backend.empty() || all.device)) {
    choose_device(all, device_of(all, from), all.device ? all.device_index : from.device_index());
  }
  all.device = {};
  if (all.threads == 0) all.threads = from.threads(all.backend).value;
  all.environment = Environment::ignored;
  return all;
}

}  // namespace toto
