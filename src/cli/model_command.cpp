// SPDX-License-Identifier: Apache-2.0
// toto model info: what a checkpoint is. toto model synth: writes one with hash weights.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/progress.h"
#include "core/input_file.h"
#include "toto/settings.hpp"

namespace toto::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kMegabyte = 1e6;
constexpr std::size_t kLargestConfig = 1 << 20;  // bytes

using Hashes = std::vector<std::pair<std::string, std::string>>;  // file, SHA-256

struct InfoOptions {
  ModelQuery query;
  bool json = false;
};

ordered_json to_json(const ModelInfo& info, const Hashes& hashes) {
  ordered_json types;
  for (const auto& [name, count] : info.stored_types) types[name] = count;
  ordered_json files;
  for (const auto& [name, hash] : hashes) files[name] = hash;
  return {
      {"name", info.name},
      {"folder", info.folder},
      {"architecture", info.architecture},
      {"synthetic", info.synthetic},
      {"parameters", info.parameters},
      {"patch_size", info.patch_size},
      {"embed_dim", info.embed_dim},
      {"num_layers", info.num_layers},
      {"num_heads", info.num_heads},
      {"mlp_hidden_dim", info.mlp_hidden_dim},
      {"spacewise_every_n_layers", info.spacewise_every_n_layers},
      {"spacewise_layers", info.spacewise_layers},
      {"spacewise_first", info.spacewise_first},
      {"scaler", info.scaler},
      {"head", info.head},
      {"components", info.components},
      {"variate_labels", info.variate_labels},
      {"defaults", {{"paths", word(info.defaults.paths)}, {"tails", word(info.defaults.tails)}}},
      {"stored_types", types},
      {"file_bytes", info.file_bytes},
      {"memory_bytes", info.parameters * sizeof(float)},
      {"sha256", files},
      {"warnings", info.warnings},
  };
}

std::string to_text(const ModelInfo& info, const Hashes& hashes) {
  std::string types;
  for (const auto& [name, count] : info.stored_types) {
    types += fmt::format("{}{} {} tensors", types.empty() ? "" : ", ", count, name);
  }
  std::string space = "all of them over time";
  if (info.spacewise_every_n_layers > 0) {
    space =
        fmt::format("the {}{} of every {} over variates", info.spacewise_first ? "first" : "last",
                    info.spacewise_layers == 1 ? "" : fmt::format(" {}", info.spacewise_layers),
                    info.spacewise_every_n_layers);
  }
  const std::string head = info.head == "quantiles"
                               ? fmt::format("{} quantiles", info.components)
                               : fmt::format("{}, {} component{}", info.head, info.components,
                                             info.components == 1 ? "" : "s");
  const std::string tails = info.head == "quantiles"
                                ? fmt::format(" --tails {}", word(info.defaults.tails))
                                : std::string();
  std::string text = fmt::format(
      "model         {}{}\n"
      "folder        {}\n"
      "architecture  {}: {} layers ({}), width {}, {} heads, MLP {}{}\n"
      "patch         {} steps, {} scaler\n"
      "head          {}\n"
      "defaults      --paths {}{}\n"
      "parameters    {}\n"
      "memory        {:.1f} MB in float32\n"
      "file          {:.1f} MB, {}\n",
      info.name, info.synthetic ? " (SYNTHETIC weights: its forecasts mean nothing)" : "",
      info.folder, info.architecture, info.num_layers, space, info.embed_dim, info.num_heads,
      info.mlp_hidden_dim, info.variate_labels ? ", variate labels" : "", info.patch_size,
      info.scaler, head, word(info.defaults.paths), tails, info.parameters,
      static_cast<double>(info.parameters) * sizeof(float) / kMegabyte,
      static_cast<double>(info.file_bytes) / kMegabyte, types);
  for (const auto& [name, hash] : hashes) {
    const auto slash = name.rfind('/');
    text += fmt::format("sha256        {}  {}\n", hash, name.substr(slash + 1));
  }
  return text;
}

ExitStatus run_info(const InfoOptions& options) {
  const ModelInfo info = inspect_model(options.query);
  for (const std::string& warning : info.warnings) warn(warning);
  Hashes hashes;
  for (const std::string& file : info.weight_files) hashes.emplace_back(file, file_sha256(file));
  print(options.json ? json_text(to_json(info, hashes)) : to_text(info, hashes));
  return ExitStatus::ok;
}

struct SynthOptions {
  std::string config;
  std::string preset;
  std::string folder;
  std::uint64_t seed = 0;
};

ExitStatus run_synth(const SynthOptions& options, const Session& session) {
  if (options.config.empty() && options.preset.empty()) {
    throw Error(ExitStatus::usage, "usage", "--config or --preset is required", "toto model synth",
                "see toto model synth --help");
  }
  const Interrupt interrupt;
  const std::string config = options.preset.empty() ? read_text_file(options.config, kLargestConfig,
                                                                     ExitStatus::bad_config)
                                                    : preset_config(options.preset);
  ProgressBar bar("writing", session.quiet, ProgressUnit::bytes);
  write_synthetic_checkpoint(config, options.seed, options.folder,
                             [&](std::uint64_t done, std::uint64_t total) {
                               if (interrupt.requested()) {
                                 throw Error(ExitStatus::interrupted, "interrupted",
                                             "stopped: nothing was written", options.folder);
                               }
                               bar.update(done, total);
                             });
  bar.finish();
  note(session, fmt::format("wrote {} (SYNTHETIC weights, seed {}: its forecasts mean nothing)",
                            options.folder, options.seed));
  return ExitStatus::ok;
}

void add_info(const Command& model, Session& session) {
  const auto options = std::make_shared<InfoOptions>();
  const Command command =
      add_command(model, session, "info", "Says what a checkpoint is, without loading its weights.",
                  "  toto model info Datadog/Toto-Open-Base-1.0\n"
                  "  toto model info ./my-checkpoint --json\n");
  command
      .add_option("MODEL", options->query.model,
                  "Folder, .safetensors file or Hub id; default: TOTO_MODEL_ID, then the model "
                  "that ships with toto")
      .type_name("");
  add_model_options(command, options->query);
  command.add_flag("--json", options->json, "Print JSON");
  command.callback([options, &session] { session.run = [options] { return run_info(*options); }; });
}

void add_synth(const Command& model, Session& session) {
  const auto options = std::make_shared<SynthOptions>();
  const Command command =
      add_command(model, session, "synth",
                  "Writes a checkpoint with synthetic weights, in the published format: for tests "
                  "and measurements. Its forecasts mean nothing.",
                  "  toto model synth --preset toto-open-base-1.0 --seed 1 --out synthetic\n"
                  "  toto model synth --config config.json --seed 7 --out synthetic\n");
  const Flag config = command.add_option("--config", options->config, "Architecture: a config.json")
                          .type_name("FILE");
  command
      .add_option(
          "--preset", options->preset,
          "Or a published one: toto-open-base-1.0, toto-2.0-4m, toto-2.0-22m, toto-2.0-313m, "
          "toto-2.0-1b, toto-2.0-2.5b")
      .type_name("NAME")
      .excludes(config);
  add_whole(command, "--seed", options->seed, 0, std::numeric_limits<std::uint64_t>::max(),
            "invalid_seed", "Seed of the weights (default 0)");
  command.add_option("--out", options->folder, "Folder to write").required().type_name("DIR");
  command.callback([options, &session] {
    session.run = [options, &session] { return run_synth(*options, session); };
  });
}

}  // namespace

void add_model(const Command& app, Session& session) {
  const Command model =
      app.add_subcommand("model", "Looks at checkpoints, and makes synthetic ones.");
  model.require_one_subcommand();
  add_info(model, session);
  add_synth(model, session);
}

}  // namespace toto::cli
