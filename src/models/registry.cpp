// SPDX-License-Identifier: Apache-2.0
#include "models/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "core/json.h"
#include "models/toto2/tensors.h"

namespace toto {
namespace {

constexpr std::string_view kOpenBase = "toto-open-base-1.0";

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

void describe(const Toto1Config& config, const WeightTable& weights, ModelInfo& info) {
  info.architecture = "toto-1.0";
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
}

void describe(const Toto2Config& config, const WeightTable& /*weights*/, ModelInfo& info) {
  info.architecture = "toto-2.0";
  info.patch_size = config.patch_size;
  info.embed_dim = config.d_model;
  info.num_layers = config.num_layers;
  info.num_heads = config.num_heads;
  info.mlp_hidden_dim = config.d_ff;
  info.spacewise_every_n_layers =
      config.variate_layers_per_group == 0 ? -1 : config.layer_group_size;
  info.spacewise_layers = config.variate_layers_per_group;
  info.spacewise_first = config.variate_layer_first;
  info.scaler = "causal_patch";
  info.head = "quantiles";
  info.components = kToto2Quantiles;
}

}  // namespace

ModelConfig parse_model_config(std::string_view text, std::string_view where, bool strict,
                               std::vector<std::string>& warnings) {
  const auto object = parse_json(text, ExitStatus::bad_config, where);
  if (object.is_object() && object.contains("d_model")) {
    return parse_toto2_config(text, where, strict, warnings);
  }
  return parse_toto1_config(text, where, strict, warnings);
}

const Toto1Config& toto1_config(const ModelConfig& config, std::string_view where) {
  if (const auto* toto1 = std::get_if<Toto1Config>(&config)) return *toto1;
  throw Error(ExitStatus::bad_config, "unsupported_config",
              "this is a Toto 2.0 model; only Toto 1.0 is supported here", where);
}

TensorList tensor_list(const ModelConfig& config) {
  return std::visit([](const auto& c) { return tensor_list(c); }, config);
}

std::vector<SyntheticTensor> synthetic_tensors(const ModelConfig& config) {
  return std::visit([](const auto& c) { return synthetic_tensors(c); }, config);
}

std::string to_json(const ModelConfig& config) {
  return std::visit([](const auto& c) { return to_json(c); }, config);
}

ModelInfo describe_model(const ModelConfig& config, const WeightTable& weights) {
  ModelInfo info;
  std::visit([&](const auto& c) { describe(c, weights, info); }, config);
  info.synthetic = weights.source().synthetic();
  info.parameters = weights.parameters();
  info.file_bytes = weights.source().file_bytes();
  info.stored_types = count_types(weights.source());
  for (const std::string& name : weights.unused()) {
    info.warnings.push_back(fmt::format("tensor {} is not used by the model", quote(name)));
  }
  return info;
}

ModelConfig find_preset(std::string_view preset) {
  if (preset == kOpenBase) return toto_open_base_1_0();
  if (const Toto2Config* found = find_toto2_preset(preset)) return *found;
  throw Error(ExitStatus::usage, "unknown_preset",
              fmt::format("{} is no preset; there are {}, {}", quote(preset), kOpenBase,
                          fmt::join(toto2_presets(), ", ")));
}

}  // namespace toto
