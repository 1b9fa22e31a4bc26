// SPDX-License-Identifier: Apache-2.0
// The configuration of a Toto 1.0 checkpoint (spec A1): config.json as a plain struct.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace toto {

enum class ScalerKind {
  causal_patch,  ///< CausalPatchStdMeanScaler: statistics up to the end of each patch
  causal_step,   ///< CausalStdMeanScaler: statistics up to each step
  global,        ///< StdMeanScaler: one location and scale per variate of the context
};

enum class HeadKind {
  mixture,    ///< MixtureOfStudentTsOutput
  student_t,  ///< StudentTOutput: one component, no probabilities
};

struct Toto1Config {
  std::int32_t patch_size = 0;                // P, also the stride: other strides are refused
  std::int32_t embed_dim = 0;                 // D
  std::int32_t num_layers = 0;                // L
  std::int32_t num_heads = 0;                 // H, divides D; the head width d = D / H is even
  std::int32_t mlp_hidden_dim = 0;            // M
  std::int32_t spacewise_every_n_layers = 0;  // n; -1: every layer is time-wise
  bool spacewise_first = true;
  ScalerKind scaler = ScalerKind::causal_patch;
  HeadKind head = HeadKind::mixture;
  std::int32_t components = 1;          // K; 1 for a single Student-T
  bool stabilize_with_global = true;    // of the patch scaler only
  double scale_factor_exponent = 10.0;  // of the patch scaler only

  [[nodiscard]] std::int32_t head_dim() const { return embed_dim / num_heads; }
  /// Spec A7.1: whether layer `i` attends over variates (true) or over time (false).
  [[nodiscard]] bool is_space_layer(std::int32_t i) const {
    if (spacewise_every_n_layers < 0) return false;
    const std::int32_t at = i % spacewise_every_n_layers;
    return spacewise_first ? at == 0 : at == spacewise_every_n_layers - 1;
  }
  bool operator==(const Toto1Config&) const = default;
};

/// The published architecture of Datadog/Toto-Open-Base-1.0.
Toto1Config toto_open_base_1_0();

/// Parses the text of config.json. `where` names the file in errors. Unknown keys are appended to
/// `warnings`, or an error where `strict`. Throws Error (78): invalid_utf8, invalid_json,
/// duplicate_key, missing_key, invalid_value, unknown_key, unsupported_config, and
/// config_tensor_mismatch for a size beyond what any checkpoint has tensors for.
Toto1Config parse_toto1_config(std::string_view text, std::string_view where, bool strict,
                               std::vector<std::string>& warnings);

/// The inverse, in the format of the published file (sorted keys, indent 2).
std::string to_json(const Toto1Config& config);

}  // namespace toto
