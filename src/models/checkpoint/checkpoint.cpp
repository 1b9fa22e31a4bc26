// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/input_file.h"
#include "core/json.h"

namespace toto {
namespace {

constexpr std::size_t kMaxConfig = 1 << 20;

std::string_view name_of(ScalerKind scaler) {
  switch (scaler) {
    case ScalerKind::causal_patch:
      return "causal_patch";
    case ScalerKind::causal_step:
      return "causal_step";
    case ScalerKind::global:
      break;
  }
  return "global";
}

std::vector<std::pair<std::string, std::uint64_t>> count_types(const WeightSource& source) {
  std::array<std::uint64_t, 3> counts = {};
  for (const TensorInfo& tensor : source.tensors())
    ++counts[static_cast<std::size_t>(tensor.dtype)];
  constexpr std::array<std::string_view, 3> kNames = {"F32", "F16", "BF16"};
  std::vector<std::pair<std::string, std::uint64_t>> types;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) types.emplace_back(kNames[i], counts[i]);
  }
  return types;
}

}  // namespace

ModelInfo describe_model(const Toto1Config& config, const WeightTable& weights) {
  ModelInfo info;
  info.architecture = "toto-1.0";
  info.synthetic = weights.source().synthetic();
  info.patch_size = config.patch_size;
  info.embed_dim = config.embed_dim;
  info.num_layers = config.num_layers;
  info.num_heads = config.num_heads;
  info.mlp_hidden_dim = config.mlp_hidden_dim;
  info.spacewise_every_n_layers = config.spacewise_every_n_layers;
  info.spacewise_first = config.spacewise_first;
  info.scaler = name_of(config.scaler);
  info.head = config.head == HeadKind::mixture ? "mixture" : "student_t";
  info.components = config.components;
  info.variate_labels = weights.has_variate_labels();
  info.parameters = weights.parameters();
  info.file_bytes = weights.source().file_bytes();
  info.stored_types = count_types(weights.source());
  for (const std::string& name : weights.unused()) {
    info.warnings.push_back(fmt::format("tensor {} is not used by the model", quote(name)));
  }
  return info;
}

Checkpoint open_checkpoint(const ModelQuery& query) {
  const ResolvedModel files = resolve_model(query);
  std::vector<std::string> warnings;
  const Toto1Config config =
      parse_toto1_config(read_text_file(files.config, kMaxConfig, ExitStatus::bad_config),
                         files.config, query.strict, warnings);
  WeightTable weights(open_safetensors(std::span(files.weights)), config);
  ModelInfo info = describe_model(config, weights);
  info.name = files.name;
  info.folder = files.folder;
  info.weight_files = files.weights;
  info.warnings.insert(info.warnings.begin(), warnings.begin(), warnings.end());
  return {config, std::move(weights), std::move(info)};
}

ModelInfo inspect_model(const ModelQuery& query) { return open_checkpoint(query).info; }

std::string file_sha256(const std::string& path) { return sha256_of(InputFile(path)); }

}  // namespace toto
