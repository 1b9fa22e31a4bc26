// SPDX-License-Identifier: Apache-2.0
#include "models/toto1/tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace toto {
namespace {

// Amplitudes of hash weights.
constexpr SyntheticScale kVector = {0.4, 0.0};
constexpr SyntheticScale kGain = {0.4, 1.0};
constexpr SyntheticScale kLabel = {2.0, 0.0};
constexpr double kMatrix = 3.0;  // over the root of the columns

/// Collects expected tensors in state order.
class Layout {
 public:
  void linear(const std::string& name, std::int64_t out, std::int64_t in,
              const std::string& alternative = {}) {
    const auto named = [](const std::string& stem, const char* part) {
      return stem.empty() ? stem : stem + part;
    };
    tensors_.push_back({name + ".weight",
                        named(alternative, ".weight"),
                        {out, in},
                        {kMatrix / std::sqrt(static_cast<double>(in)), 0.0}});
    tensors_.push_back({name + ".bias", named(alternative, ".bias"), {out}, kVector});
  }
  void gain(std::string name, std::int64_t width) {
    tensors_.push_back({std::move(name), {}, {width}, kGain});
  }
  std::vector<ExpectedTensor> take() { return std::move(tensors_); }

 private:
  std::vector<ExpectedTensor> tensors_;
};

}  // namespace

TensorList tensor_list(const Toto1Config& config) {
  const std::int64_t width = config.embed_dim;
  const std::int64_t hidden = config.mlp_hidden_dim;
  const std::int64_t patch = config.patch_size;
  Layout layout;
  layout.linear("model.patch_embed.projection", width, patch);
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    const std::string layer = fmt::format("model.transformer.layers.{}.", i);
    layout.gain(layer + "norm1.scale", width);
    layout.gain(layer + "norm2.scale", width);
    layout.linear(layer + "attention.wQKV", 3 * width, width);
    layout.linear(layer + "attention.wO", width, width);
    layout.linear(layer + "mlp.0.w12", 2 * hidden, width, layer + "mlp.0");
    layout.linear(layer + "mlp.0.w3", width, hidden, layer + "mlp.2");
  }
  layout.linear("model.unembed", patch * width, width);
  const std::string head = "model.output_distribution.";
  layout.linear(head + "df", config.components, width);
  layout.linear(head + "loc_proj", config.components, width);
  layout.linear(head + "scale_proj", config.components, width);
  if (config.head == HeadKind::mixture) {
    layout.linear(head + "mixture_weights", config.components, width);
  }
  TensorList list;
  list.tensors = layout.take();
  for (const std::string_view label : {kTargetLabel, kExogenousLabel}) {
    list.together.push_back({std::string(label), {}, {config.embed_dim}, kLabel});
  }
  return list;
}

}  // namespace toto
