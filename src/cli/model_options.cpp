// SPDX-License-Identifier: Apache-2.0
// The flags that say which model is loaded and how.
#include <fmt/format.h>

#include <optional>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/help_groups.h"
#include "cli/process.h"

namespace toto::cli {
namespace {

constexpr const char* kGroup = "The model";
constexpr const char* kExecution = "How it runs";

}  // namespace

void add_model_option(const Command& command, SettingsFlags& flags) {
  command
      .add_option("--model,-m", flags.model,
                  "Folder, .safetensors file or Hub id (default: TOTO_MODEL_ID, then the model "
                  "that ships with toto)")
      .type_name("MODEL")
      .group(kFirstFlags);
}

void add_seed_option(const Command& command, SettingsFlags& flags, const std::string& group) {
  command
      .add_option("--seed", flags.seed, "Seed of the random numbers (default: TOTO_SEED, then 0)")
      .type_name("N")
      .group(group);
}

void add_model_options(const Command& command, ModelQuery& query) {
  command
      .add_option("--hub-cache", query.hub_cache,
                  "Hugging Face cache to look in (default: HF_HUB_CACHE, HF_HOME/hub, "
                  "~/.cache/huggingface/hub)")
      .type_name("DIR")
      .group(kGroup);
  command.add_flag("--strict", query.strict, "Unknown keys of config.json are errors")
      .group(kGroup);
}

void add_settings_options(const Command& command, SettingsFlags& flags) {
  const auto add = [&command](const char* names, std::optional<std::string>& value,
                              const char* type, const char* help, const char* group) {
    command.add_option(names, value, help).type_name(type).group(group);
  };
  add("--device", flags.device, "WORD",
      "Where it computes: cpu (default), cuda, cuda:1 and so on, or auto (TOTO_COMPILE_BACKEND)",
      kGroup);
  add("--backend", flags.backend, "NAME",
      "Which implementation computes on a CPU: cpu (default), or reference (plain loops, slow)",
      kGroup);
  add("--precision,--dtype", flags.precision, "WORD",
      "Arithmetic of the network: float32 (default), tf32 (on Hopper GPUs; elsewhere float32), "
      "bfloat16, int8 (weights, on a CPU), or float64 (of the reference backend)",
      kGroup);
  add("--threads", flags.threads, "N",
      "Threads of the cpu backend (default: TOTO_NUM_THREADS, then one for each core)", kGroup);
  add("--mode", flags.mode, "WORD",
      "eager, default, reduce-overhead (default) or max-autotune (TOTO_COMPILE_MODE)", kExecution);
  add("--kv-cache", flags.kv_cache, "WORD",
      "Keys and values of a context: shared by its trajectories (default), or private to each "
      "(default of eager); they differ by rounding (TOTO_KV_CACHE)",
      kExecution);
  add("--preset", flags.preset, "WORD", "production, development or validation: several settings",
      kExecution);
  add("--plan-cache", flags.plan_cache, "WORD",
      "Plans kept on disk: prefer (default), only or never", kExecution);
  add("--plan-cache-dir", flags.plan_cache_dir, "DIR", "Where they are (TOTO_PLAN_CACHE_DIR)",
      kExecution);
  add("--max-plans", flags.max_plans, "N", "Plans kept in memory (TOTO_MAX_PLANS, default 256)",
      kExecution);
  add("--memory-limit", flags.memory_limit, "SIZE",
      "Working memory, weights excluded; batches are split to fit", kExecution);
  command
      .add_flag("--strict-counters,!--no-strict-counters", flags.strict_counters,
                "After --warmup, tell of every plan built and every allocation")
      .group(kExecution);
  command
      .add_flag("--deterministic-checks,!--no-deterministic-checks", flags.deterministic_checks,
                "Compute every forecast twice; other bits the second time are an error")
      .group(kExecution);
  add("--log", flags.log, "WORD,...",
      "What is told as it happens: plans, graphs, cache, memory, device, settings, all (TOTO_LOG)",
      kExecution);
}

LogSink log_sink(const Settings& settings) {
  return [wanted = settings.log.value](const LogEvent& event) {
    if (event.code == "variable") return;  // cli/environment.h tells
    if (event.severity == Severity::warning) {
      warn(event.message);
    } else if (wanted.has(event.topic)) {
      say(event.message);
    }
  };
}

LoadOptions load_options(const Settings& settings, const Session& session) {
  note_about_environment(session);
  LoadOptions options;
  options.log = log_sink(settings);
  settings.apply(options);
  return options;
}

ForecasterOptions forecaster_options(const Settings& settings) {
  ForecasterOptions options;
  options.log = log_sink(settings);
  settings.apply(options);
  return options;
}

}  // namespace toto::cli
