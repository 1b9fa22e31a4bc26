// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace toto {
namespace {

// Amplitudes of hash weights: they give every product an output of about unit size, make attention
// peaked and the forecasts wide.
constexpr double kMatrix = 3.4641016;  // uniform of variance 1
constexpr double kHead = 4.0;          // of the head's last matrices, times the root of the columns
constexpr double kBias = 0.5;
constexpr SyntheticScale kGain = {0.4, 1.0};
constexpr SyntheticScale kPerDimScale = {4.0, 6.0};

/// Collects tensors in state order.
class Layout {
 public:
  void add(std::string name, std::vector<std::int64_t> shape, const SyntheticScale& scale) {
    tensors_.push_back({std::move(name), {}, std::move(shape), scale});
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias,
              double amplitude = kMatrix) {
    add(name + ".weight", {out, in}, {amplitude, 0.0});
    if (bias) add(name + ".bias", {out}, {kBias, 0.0});
  }
  /// The residual MLP of the way in (`head`: the way out), with an inner width of four times D.
  void residual_mlp(const std::string& name, std::int64_t out, std::int64_t inner, std::int64_t in,
                    bool head) {
    const auto amplitude = [&](std::int64_t columns) {
      return head ? kHead * std::sqrt(static_cast<double>(columns)) : kMatrix;
    };
    linear(name + ".linear1", inner, in, true);
    linear(name + ".linear2", out, inner, true, amplitude(inner));
    linear(name + ".skip_proj", out, in, true, amplitude(in));
  }
  std::vector<ExpectedTensor> take() { return std::move(tensors_); }

 private:
  std::vector<ExpectedTensor> tensors_;
};

void add_layer(const Toto2Config& c, std::int32_t i, Layout& layout) {
  const std::string layer = fmt::format("transformer.layers.{}.", i);
  layout.add(layer + "attn_tau", {}, {0.0, tau(c, 2 * i)});
  layout.add(layer + "mlp_tau", {}, {0.0, tau(c, 2 * i + 1)});
  layout.linear(layer + "attn.in_proj", c.qkv_rows(), c.d_model, c.attn_bias);
  layout.linear(layer + "attn.out_proj", c.d_model, std::int64_t{c.num_heads} * c.v_dim,
                c.attn_bias);
  if (c.per_dim_scale) layout.add(layer + "attn._pds.per_dim_scale", {c.qk_dim}, kPerDimScale);
  if (c.qk_norm && c.qk_norm_include_weight) {
    layout.add(layer + "attn.q_norm.weight", {c.qk_dim}, kGain);
    layout.add(layer + "attn.k_norm.weight", {c.qk_dim}, kGain);
  }
  layout.linear(layer + "ffn.fc1", std::int64_t{2} * c.d_ff, c.d_model, c.mlp_bias);
  layout.linear(layer + "ffn.fc2", c.d_model, c.d_ff, c.mlp_bias);
  if (c.norm_include_weight) {
    layout.add(layer + "norm1.weight", {c.d_model}, kGain);
    layout.add(layer + "norm2.weight", {c.d_model}, kGain);
  }
}

}  // namespace

double tau(const Toto2Config& config, std::int32_t branch) {
  const double r = config.residual_attn_ratio;
  const double mlp = config.residual_mult * std::sqrt(2.0 / (1.0 + r * r));
  const double attention = r * mlp;
  const double own = branch % 2 == 0 ? attention : mlp;
  const int attentions = (branch + 1) / 2;  // branches before this one
  const int mlps = branch / 2;
  return own / std::sqrt(config.num_layers + attentions * attention * attention + mlps * mlp * mlp);
}

TensorList tensor_list(const Toto2Config& config) {
  const std::int64_t width = config.d_model;
  const std::int64_t patch = config.patch_size;
  Layout layout;
  layout.residual_mlp("patch_proj", width, 4 * width, 2 * patch, false);
  for (std::int32_t i = 0; i < config.num_layers; ++i) add_layer(config, i, layout);
  if (config.norm_include_weight) layout.add("transformer.out_norm.weight", {width}, kGain);
  layout.residual_mlp("output_head.param_projection.proj", kToto2Quantiles * patch, 4 * width,
                      width, true);
  TensorList list;
  list.tensors = layout.take();
  list.strict = true;
  return list;
}

}  // namespace toto
