// SPDX-License-Identifier: Apache-2.0
// config.json of Toto 2.0: every field is checked here, so that nothing behind it divides by zero
// or overflows.
#include "models/toto2/config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/checkpoint/config_fields.h"

namespace toto {
namespace {

using config::Fields;
using config::kMaxHidden;
using config::kMaxLayers;
using config::kMaxPatch;
using config::kMaxWidth;
using nlohmann::json;

constexpr std::string_view kFamily = "Toto 2.0";
constexpr double kMaxEpsilon = 1.0;
constexpr double kMaxRatio = 1e6;

constexpr std::array<std::string_view, 26> kKeys = {"patch_size",
                                                    "d_model",
                                                    "num_heads",
                                                    "num_layers",
                                                    "layer_group_size",
                                                    "num_variate_layers_per_group",
                                                    "variate_layer_first",
                                                    "d_ff",
                                                    "qk_dim",
                                                    "v_dim",
                                                    "num_groups",
                                                    "heads_per_group",
                                                    "norm_eps",
                                                    "attn_bias",
                                                    "mlp_bias",
                                                    "qk_norm",
                                                    "norm_include_weight",
                                                    "qk_norm_include_weight",
                                                    "per_dim_scale",
                                                    "use_xpos",
                                                    "residual_mult",
                                                    "residual_attn_ratio",
                                                    "num_output_patches",
                                                    "dropout_p",
                                                    "pre_norm",
                                                    "trained_with_covariates"};

constexpr Toto2Config release(std::int32_t width, std::int32_t layers, std::int32_t hidden,
                              double epsilon) {
  Toto2Config c;
  c.patch_size = 32;
  c.d_model = width;
  c.num_layers = layers;
  c.num_heads = c.num_groups = width / 64;
  c.qk_dim = c.v_dim = 64;
  c.d_ff = hidden;
  c.layer_group_size = layers;
  c.variate_layers_per_group = 1;
  c.norm_eps = epsilon;
  c.attn_bias = true;
  c.qk_norm = false;
  c.per_dim_scale = true;
  c.use_xpos = true;
  c.residual_mult = 0.75;
  c.residual_attn_ratio = 5.136215466577748;
  return c;
}

constexpr std::array<std::string_view, 5> kPresetNames = {
    "toto-2.0-4m", "toto-2.0-22m", "toto-2.0-313m", "toto-2.0-1b", "toto-2.0-2.5b"};
constexpr std::array<Toto2Config, 5> kPresets = {
    release(256, 4, 688, 1e-4), release(512, 6, 1368, 1e-4), release(1024, 24, 2736, 1e-4),
    release(1536, 36, 4096, 5e-4), release(2048, 48, 5464, 5e-4)};

/// The value of a key that may also be null, which means the same as its absence.
const json* find_set(const Fields& fields, std::string_view key) {
  const json* value = fields.find(key);
  return value != nullptr && value->is_null() ? nullptr : value;
}

std::int32_t optional_size(const Fields& fields, std::string_view key, std::int64_t limit,
                           std::int64_t absent) {
  const json* value = find_set(fields, key);
  return value == nullptr ? static_cast<std::int32_t>(absent) : fields.size(key, *value, limit);
}

void check_divides(const Fields& fields, std::string_view part, std::int32_t value,
                   std::string_view whole, std::int32_t of) {
  if (of % value == 0) return;
  fields.fail("invalid_value", fmt::format("\"{}\" must divide \"{}\"; {} does not divide {}", part,
                                           whole, value, of));
}

void parse_heads(const Fields& fields, Toto2Config& config) {
  config.num_heads = fields.size("num_heads", kMaxWidth);
  check_divides(fields, "num_heads", config.num_heads, "d_model", config.d_model);
  const json* groups = find_set(fields, "num_groups");
  const bool own = groups == nullptr || fields.integer("num_groups", *groups) == 0;
  config.num_groups = own ? config.num_heads : fields.size("num_groups", *groups, kMaxWidth);
  check_divides(fields, "num_groups", config.num_groups, "num_heads", config.num_heads);
  config.qk_dim = optional_size(fields, "qk_dim", kMaxWidth, config.d_model / config.num_heads);
  if (config.qk_dim % 4 != 0) {
    fields.fail("invalid_value",
                fmt::format("\"qk_dim\" must be a multiple of 4 for the rotary embedding of half a "
                            "head, not {}",
                            config.qk_dim));
  }
  config.v_dim = optional_size(fields, "v_dim", kMaxWidth, config.qk_dim);
  for (const auto& [name, width] : {std::pair{"qk_dim", config.qk_dim}, {"v_dim", config.v_dim}}) {
    if (std::int64_t{config.num_heads} * width > kMaxHidden) {
      fields.fail("config_tensor_mismatch",
                  fmt::format("\"num_heads\" times \"{}\" is {}; no checkpoint has tensors for "
                              "more than {}",
                              name, std::int64_t{config.num_heads} * width, kMaxHidden));
    }
  }
}

void parse_layers(const Fields& fields, Toto2Config& config) {
  config.num_layers = fields.size("num_layers", kMaxLayers);
  config.layer_group_size = fields.size("layer_group_size", kMaxLayers);
  check_divides(fields, "layer_group_size", config.layer_group_size, "num_layers",
                config.num_layers);
  constexpr std::string_view kVariate = "num_variate_layers_per_group";
  const std::int64_t variate = fields.integer(kVariate);
  if (variate < 0 || variate > config.layer_group_size) {
    fields.wrong(kVariate,
                 fmt::format("from 0 to \"layer_group_size\" = {}", config.layer_group_size),
                 variate);
  }
  config.variate_layers_per_group = static_cast<std::int32_t>(variate);
  (void)fields.at("variate_layer_first");
  config.variate_layer_first = fields.boolean("variate_layer_first", false);
}

/// What the official code also accepts, but does not compute a forecast with.
void refuse_unsupported(const Fields& fields) {
  const auto refuse = [&](std::string_view key, double found, double supported) {
    fields.fail("unsupported_config",
                fmt::format("\"{}\" is {}; only {} is supported", key, found, supported));
  };
  const double dropout = fields.number("dropout_p", 0.0, 1.0, 0.0);
  if (dropout != 0.0) refuse("dropout_p", dropout, 0);
  if (const json* patches = fields.find("num_output_patches"); patches != nullptr) {
    const std::int64_t count = fields.integer("num_output_patches", *patches);
    if (count != 1) refuse("num_output_patches", static_cast<double>(count), 1);
  }
}

}  // namespace

std::span<const std::string_view> toto2_presets() { return kPresetNames; }

const Toto2Config* find_toto2_preset(std::string_view name) {
  const auto at = std::find(kPresetNames.begin(), kPresetNames.end(), name);
  return at == kPresetNames.end() ? nullptr
                                  : &kPresets[static_cast<std::size_t>(at - kPresetNames.begin())];
}

Toto2Config parse_toto2_config(std::string_view text, std::string_view where, bool strict,
                               std::vector<std::string>& warnings) {
  const json object = parse_json(text, ExitStatus::bad_config, where);
  const Fields fields(object, where);
  if (!object.is_object()) fields.fail("invalid_json", "expected an object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      fields.unknown(key, kFamily, strict, warnings);
    }
  }
  Toto2Config config;
  config.patch_size = fields.size("patch_size", kMaxPatch);
  config.d_model = fields.size("d_model", kMaxWidth);
  parse_heads(fields, config);
  parse_layers(fields, config);
  config.d_ff =
      optional_size(fields, "d_ff", kMaxHidden, (std::int64_t{8} * config.d_model / 3 + 7) / 8 * 8);
  config.norm_eps = fields.number("norm_eps", 0.0, kMaxEpsilon, config.norm_eps);
  config.attn_bias = fields.boolean("attn_bias", false);
  config.mlp_bias = fields.boolean("mlp_bias", false);
  config.qk_norm = fields.boolean("qk_norm", true);
  config.norm_include_weight = fields.boolean("norm_include_weight", false);
  config.qk_norm_include_weight = find_set(fields, "qk_norm_include_weight") == nullptr
                                      ? config.norm_include_weight
                                      : fields.boolean("qk_norm_include_weight", false);
  config.per_dim_scale = fields.boolean("per_dim_scale", false);
  config.use_xpos = fields.boolean("use_xpos", false);
  config.residual_mult = fields.number("residual_mult", 0.0, kMaxRatio, 1.0);
  config.residual_attn_ratio = fields.number("residual_attn_ratio", 0.0, kMaxRatio);
  (void)fields.boolean("pre_norm", true);
  config.trained_with_covariates = fields.boolean("trained_with_covariates", true);
  refuse_unsupported(fields);
  return config;
}

std::string to_json(const Toto2Config& config) {
  json object = {{"attn_bias", config.attn_bias},
                 {"d_ff", config.d_ff},
                 {"d_model", config.d_model},
                 {"dropout_p", 0.0},
                 {"heads_per_group", config.heads_per_group()},
                 {"layer_group_size", config.layer_group_size},
                 {"mlp_bias", config.mlp_bias},
                 {"norm_eps", config.norm_eps},
                 {"norm_include_weight", config.norm_include_weight},
                 {"num_groups", config.num_groups},
                 {"num_heads", config.num_heads},
                 {"num_layers", config.num_layers},
                 {"num_output_patches", 1},
                 {"num_variate_layers_per_group", config.variate_layers_per_group},
                 {"patch_size", config.patch_size},
                 {"per_dim_scale", config.per_dim_scale},
                 {"pre_norm", true},
                 {"qk_dim", config.qk_dim},
                 {"qk_norm", config.qk_norm},
                 {"qk_norm_include_weight", config.qk_norm_include_weight},
                 {"residual_attn_ratio", config.residual_attn_ratio},
                 {"residual_mult", config.residual_mult},
                 {"use_xpos", config.use_xpos},
                 {"v_dim", config.v_dim},
                 {"variate_layer_first", config.variate_layer_first}};
  if (!config.trained_with_covariates) object["trained_with_covariates"] = false;
  return object.dump(2);
}

}  // namespace toto
