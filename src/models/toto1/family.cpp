// SPDX-License-Identifier: Apache-2.0
#include "models/toto1/family.h"

#include <nlohmann/json.hpp>

#include "models/toto1/tensors.h"
#include "models/toto1/toto1.h"

namespace toto {
namespace {

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

Execution execution_of(Build how, ContextCache cache) {
  const bool share = cache == ContextCache::shared;
  switch (how) {
    case Build::eager:
      return {false, false, share};
    case Build::exact:
      // A folded head is rounded to float32. To trim the last layer changes nothing in float64 that
      // could be seen.
      return {false, true, share};
    case Build::planned:
      break;
  }
  return {true, true, share};
}

ConfigurationPtr parse(std::string_view text, std::string_view where, bool strict,
                       std::vector<std::string>& warnings) {
  return std::make_shared<Toto1Configuration>(parse_toto1_config(text, where, strict, warnings));
}

}  // namespace

TensorList Toto1Configuration::tensors() const { return tensor_list(config_); }

void Toto1Configuration::describe(const WeightTable& weights, ModelInfo& info) const {
  info.patch_size = config_.patch_size;
  info.embed_dim = config_.embed_dim;
  info.num_layers = config_.num_layers;
  info.num_heads = config_.num_heads;
  info.mlp_hidden_dim = config_.mlp_hidden_dim;
  info.spacewise_every_n_layers = config_.spacewise_every_n_layers;
  info.spacewise_first = config_.spacewise_first;
  info.scaler = name_of(config_.scaler);
  info.head = config_.head == HeadKind::mixture ? "mixture" : "student_t";
  info.components = config_.components;
  info.variate_labels = weights.has_together();
  info.covariate_lead = config_.patch_size;
}

std::unique_ptr<Network> Toto1Configuration::build(const WeightTable& weights,
                                                   std::shared_ptr<Backend> backend, Build how,
                                                   ContextCache cache) const {
  return std::make_unique<Toto1>(config_, weights, std::move(backend), execution_of(how, cache));
}

Family toto1_family() {
  return {"toto-1.0",
          [](const nlohmann::json& object) { return object.contains("embed_dim"); },
          parse,
          {{"toto-open-base-1.0", std::make_shared<Toto1Configuration>(toto_open_base_1_0())}}};
}

}  // namespace toto
