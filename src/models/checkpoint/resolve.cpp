// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/json.h"
#include "models/checkpoint/hub_cache.h"
#include "models/checkpoint/shard_index.h"
#include "models/checkpoint/shipped_model.h"

namespace toto {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

[[noreturn]] void incomplete(const fs::path& folder, const std::vector<std::string>& missing,
                             std::string_view remedy) {
  throw Error(
      ExitStatus::missing_input, "model_incomplete",
      fmt::format("{} {} missing", fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"),
      folder.string(), remedy);
}

/// The files of a checkpoint folder. `remedy` says how to get what is missing.
ResolvedModel from_folder(std::string name, const fs::path& folder, std::string_view remedy) {
  const fs::path config = folder / "config.json";
  const fs::path weights = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  const bool sharded = !is_file(weights) && is_file(index);
  std::vector<std::string> missing;
  if (!is_file(config)) missing.emplace_back("config.json");
  if (!is_file(weights) && !sharded) missing.emplace_back("model.safetensors");
  if (!missing.empty()) incomplete(folder, missing, remedy);
  ResolvedModel model{std::move(name), folder.string(), config.string(), {}};
  if (sharded) {
    model.weights = shards_of(index.string(), remedy);
  } else {
    model.weights.push_back(weights.string());
  }
  return model;
}

ResolvedModel from_file(std::string name, const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const fs::path config = folder / "config.json";
  if (!is_file(config)) incomplete(folder, {"config.json"}, "it belongs beside the weights");
  return {std::move(name), folder.string(), config.string(), {file.string()}};
}

std::string chosen_model(const ModelQuery& query) {
  if (!query.model.empty()) return query.model;
  if (query.environment == Environment::ignored) return {};
  const char* id = std::getenv("TOTO_MODEL_ID");
  return id ? id : "";
}

}  // namespace

ResolvedModel resolve_model(const ModelQuery& query) {
  const std::string name = chosen_model(query);
  if (name.empty()) {
    const std::string shipped = shipped_model();
    if (!shipped.empty()) return from_folder(std::string(kShippedModel), shipped, {});
    throw Error(ExitStatus::usage, "model_not_chosen",
                fmt::format("no model was named, and {}, which ships with toto, was not found",
                            kShippedModel),
                {},
                "name one with --model or TOTO_MODEL_ID: a folder, a .safetensors file or a Hub id "
                "such as Datadog/Toto-Open-Base-1.0");
  }
  if (is_folder(name)) return from_folder(name, name, {});
  if (is_file(name)) return from_file(name, name);
  if (std::ranges::find(kShippedModels, name) != kShippedModels.end()) {
    const std::string shipped = shipped_model(name);
    if (!shipped.empty()) return from_folder(name, shipped, {});
    throw Error(ExitStatus::missing_input, "model_not_found",
                fmt::format("{} does not lie beside this program", name), {},
                fmt::format("name its folder: models/{} of the project's source tree", name));
  }
  if (is_hub_id(name)) {
    const std::string snapshot = hub_snapshot(name, query.hub_cache);
    return from_folder(name, snapshot, hub_download_command(name, query.hub_cache));
  }
  throw Error(ExitStatus::missing_input, "model_not_found",
              fmt::format("{} is no folder, no file and no Hub id (owner/name)", quote(name)));
}

}  // namespace toto
