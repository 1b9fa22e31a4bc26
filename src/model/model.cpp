// SPDX-License-Identifier: Apache-2.0
// toto::Model: a checkpoint on a backend.
#include <fmt/format.h>

#include <utility>

#include "model/backend_choice.h"
#include "model/checkpoint.h"
#include "model/model_impl.h"
#include "model/toto1.h"

namespace toto {
namespace {

Model build(ModelInfo info, const Toto1Config& config, const WeightTable& weights,
            const LoadOptions& options) {
  auto impl = std::make_shared<Model::Impl>();
  impl->info = std::move(info);
  impl->mode = options.mode;
  impl->precision = options.precision;
  impl->content_hash = weights.source().content_hash();
  impl->net =
      std::make_unique<Toto1>(config, weights, make_backend(options),
                              options.mode == Mode::eager ? Execution::eager() : Execution{});
  return Model(std::move(impl));
}

}  // namespace

Model Model::load(const ModelQuery& query, const LoadOptions& options) {
  Checkpoint checkpoint = open_checkpoint(query);
  return build(std::move(checkpoint.info), checkpoint.config, checkpoint.weights, options);
}

Model Model::synthesise(std::string_view preset, std::uint64_t seed, const LoadOptions& options) {
  std::vector<std::string> warnings;
  const Toto1Config config = parse_toto1_config(preset_config(preset), preset, true, warnings);
  const WeightTable weights(synthesise_weights(config, seed, default_tensor_order(config, false)),
                            config);
  ModelInfo info = describe_model(config, weights);
  info.name = fmt::format("{} (synthetic, seed {})", preset, seed);
  return build(std::move(info), config, weights, options);
}

const ModelInfo& Model::info() const { return impl_->info; }

}  // namespace toto
