// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/family.h"

#include <nlohmann/json.hpp>

#include "models/toto2/golden.h"
#include "models/toto2/tensors.h"
#include "models/toto2/toto2.h"

namespace toto {
namespace {

ConfigurationPtr parse(std::string_view text, std::string_view where, bool strict,
                       std::vector<std::string>& warnings) {
  return std::make_shared<Toto2Configuration>(parse_toto2_config(text, where, strict, warnings));
}

}  // namespace

TensorList Toto2Configuration::tensors() const { return tensor_list(config_); }

void Toto2Configuration::describe(const WeightTable& /*weights*/, ModelInfo& info) const {
  info.patch_size = config_.patch_size;
  info.embed_dim = config_.d_model;
  info.num_layers = config_.num_layers;
  info.num_heads = config_.num_heads;
  info.mlp_hidden_dim = config_.d_ff;
  info.spacewise_every_n_layers =
      config_.variate_layers_per_group == 0 ? -1 : config_.layer_group_size;
  info.spacewise_layers = config_.variate_layers_per_group;
  info.spacewise_first = config_.variate_layer_first;
  info.scaler = "causal_patch";
  info.head = "quantiles";
  info.components = kToto2Quantiles;
  info.lowest_level = 0.1;
  info.highest_level = 0.9;
  info.denies_covariates = !config_.trained_with_covariates;
}

/// Its weights are folded whatever is asked for, and rounded to float32 once: a factor of a product
/// is then as exact as the product's own weights.
std::unique_ptr<Network> Toto2Configuration::build(const WeightTable& weights,
                                                   std::shared_ptr<Backend> backend, Build how,
                                                   ContextCache /*cache*/) const {
  return std::make_unique<Toto2>(config_, weights, std::move(backend), how != Build::eager);
}

std::unique_ptr<GoldenOutputs> Toto2Configuration::read_golden(const std::string& folder) const {
  return read_toto2_golden(config_, folder);
}

Family toto2_family() {
  Family family{"toto-2.0",
                [](const nlohmann::json& object) { return object.contains("d_model"); },
                parse,
                {}};
  for (const std::string_view name : toto2_presets()) {
    family.presets.emplace_back(name,
                                std::make_shared<Toto2Configuration>(*find_toto2_preset(name)));
  }
  return family;
}

}  // namespace toto
