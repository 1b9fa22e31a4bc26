// SPDX-License-Identifier: Apache-2.0
// The flags that say which model is loaded and how.
#include "cli/arguments.h"
#include "cli/command.h"

namespace toto::cli {
namespace {

constexpr const char* kGroup = "The model";

enum class Device { automatic, cpu, cuda };

}  // namespace

void add_model_options(CLI::App& command, ModelQuery& query) {
  command
      .add_option("--hub-cache", query.hub_cache,
                  "Hugging Face cache to look in (default: HF_HUB_CACHE, HF_HOME/hub, "
                  "~/.cache/huggingface/hub)")
      ->type_name("DIR")
      ->group(kGroup);
  command.add_flag("--strict", query.strict, "Unknown keys of config.json are errors")
      ->group(kGroup);
}

void add_load_options(CLI::App& command, Session& session, LoadOptions& options) {
  command
      .add_option("--backend", options.backend,
                  "Which implementation computes: cpu (default), or reference (plain loops, slow)")
      ->type_name("NAME")
      ->group(kGroup);
  add_whole(command, "--threads", options.threads, 1, 1024, "invalid_threads",
            "Threads of the cpu backend (default: TOTO_NUM_THREADS, then one for each core)")
      ->envname("TOTO_NUM_THREADS")
      ->group(kGroup);
  command
      .add_option_function<std::string>(
          "--device",
          [&session](const std::string& text) {
            const auto device = parse_choice<Device>(
                text, "--device",
                {{"auto", Device::automatic}, {"cpu", Device::cpu}, {"cuda", Device::cuda}});
            if (device == Device::cuda) {
              throw Error(ExitStatus::device_unavailable, "device_unavailable",
                          "this version of toto has no CUDA backend", "--device cuda",
                          "use --device cpu");
            }
            if (device == Device::automatic) {
              session.notes.emplace_back("no GPU to be had: running on the CPU");
            }
          },
          "Where it computes: cpu (default), cuda or auto")
      ->type_name("DEVICE")
      ->group(kGroup);
  add_choice<Precision>(
      command, "--precision,--dtype", options.precision,
      {{"float32", Precision::float32},
       {"bfloat16", Precision::bfloat16},
       {"float64", Precision::float64}},
      "Arithmetic of the network: float32 (default), bfloat16, or float64 (of the "
      "reference backend)")
      ->group(kGroup);
}

}  // namespace toto::cli
