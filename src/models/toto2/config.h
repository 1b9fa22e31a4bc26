// SPDX-License-Identifier: Apache-2.0
// The configuration of a Toto 2.0 checkpoint (spec B1): config.json as a plain struct.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace toto {

struct Toto2Config {
  std::int32_t patch_size = 0;        // P
  std::int32_t d_model = 0;           // D
  std::int32_t num_layers = 0;        // L
  std::int32_t num_heads = 0;         // H query heads, divides D
  std::int32_t num_groups = 0;        // G key/value heads, divides H
  std::int32_t qk_dim = 0;            // width of a query or key head, a multiple of 4
  std::int32_t v_dim = 0;             // width of a value head
  std::int32_t d_ff = 0;              // M
  std::int32_t layer_group_size = 0;  // divides L
  std::int32_t variate_layers_per_group = 0;
  bool variate_layer_first = false;
  double norm_eps = 5e-5;
  bool attn_bias = false;
  bool mlp_bias = false;
  bool qk_norm = true;
  bool norm_include_weight = false;
  bool qk_norm_include_weight = false;
  bool per_dim_scale = false;
  bool use_xpos = false;
  double residual_mult = 1.0;           // the last two form the taus, which are stored: of use only
  double residual_attn_ratio = 1.0;     // where weights are synthesised
  bool trained_with_covariates = true;  // a key of ours: published files lack it

  /// Query heads of one key/value head.
  [[nodiscard]] std::int32_t heads_per_group() const { return num_heads / num_groups; }
  /// Rows of in_proj: all queries, all keys, all values.
  [[nodiscard]] std::int32_t qkv_rows() const {
    return (num_heads + num_groups) * qk_dim + num_groups * v_dim;
  }
  /// Whether layer `i` attends over variates (true) or over time (false).
  [[nodiscard]] bool is_variate_layer(std::int32_t i) const {
    const std::int32_t at = i % layer_group_size;
    return variate_layer_first ? at < variate_layers_per_group
                               : at >= layer_group_size - variate_layers_per_group;
  }
  bool operator==(const Toto2Config&) const = default;
};

/// The quantile levels of every checkpoint.
inline constexpr std::int32_t kToto2Quantiles = 9;
/// Patches of context and forecast together: the reference has rotary tables of so many.
inline constexpr std::int32_t kToto2MaxPatches = 8192;

/// The released architectures by name: "toto-2.0-4m", "toto-2.0-22m", "toto-2.0-313m",
/// "toto-2.0-1b", "toto-2.0-2.5b".
std::span<const std::string_view> toto2_presets();
/// nullptr for a name that is none of them.
const Toto2Config* find_toto2_preset(std::string_view name);

/// Parses the text of config.json. `where` names the file in errors. Unknown keys are appended to
/// `warnings`, or an error where `strict`. Throws Error (78): invalid_utf8, invalid_json,
/// duplicate_key, missing_key, invalid_value, unknown_key, unsupported_config, and
/// config_tensor_mismatch for a size beyond what any checkpoint has tensors for.
Toto2Config parse_toto2_config(std::string_view text, std::string_view where, bool strict,
                               std::vector<std::string>& warnings);

/// The inverse, in the format of the published file (sorted keys, indent 2).
std::string to_json(const Toto2Config& config);

}  // namespace toto
