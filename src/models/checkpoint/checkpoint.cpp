// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/checkpoint.h"

#include <algorithm>
#include <utility>

#include "core/input_file.h"
#include "core/json.h"
#include "core/sha256.h"
#include "models/checkpoint/model_defaults.h"

namespace toto {
namespace {

constexpr std::size_t kMaxConfig = 1 << 20;

}  // namespace

Checkpoint open_checkpoint(const ModelQuery& query) {
  const ResolvedModel files = resolve_model(query);
  std::vector<std::string> warnings;
  ConfigurationPtr config =
      parse_model_config(read_text_file(files.config, kMaxConfig, ExitStatus::bad_config),
                         files.config, query.strict, warnings);
  WeightTable weights(open_safetensors(std::span(files.weights)), config->tensors());
  ModelInfo info = describe_model(*config, weights);
  info.name = files.name;
  info.folder = files.folder;
  info.weight_files = files.weights;
  info.defaults = read_model_defaults(files.folder);
  info.warnings.insert(info.warnings.begin(), warnings.begin(), warnings.end());
  return {std::move(config), std::move(weights), std::move(info)};
}

ModelInfo inspect_model(const ModelQuery& query) { return open_checkpoint(query).info; }

std::string file_sha256(const std::string& path) { return sha256_of(InputFile(path)); }

}  // namespace toto
