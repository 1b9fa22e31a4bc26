// SPDX-License-Identifier: Apache-2.0
// toto::Model: a checkpoint on a backend.
#include <fmt/format.h>

#include <future>
#include <utility>

#include "models/backend_choice.h"
#include "models/checkpoint/checkpoint.h"
#include "models/model_impl.h"
#include "models/spare.h"
#include "models/toto1/toto1.h"
#include "models/toto2/toto2.h"

namespace toto {
namespace {

std::shared_ptr<Model::Impl> build(const Checkpoint& checkpoint, const LoadOptions& options) {
  const WeightTable& weights = checkpoint.weights;
  auto impl = std::make_shared<Model::Impl>();
  impl->info = checkpoint.info;
  impl->mode = options.mode;
  impl->precision = options.precision;
  // Beside the reading of the weights; where the system has no more threads, after it.
  auto hash = std::async([&] { return weights.source().content_hash(); });
  impl->configuration = to_json(checkpoint.config);
  if (const auto* toto2 = std::get_if<Toto2Config>(&checkpoint.config)) {
    impl->net = std::make_unique<Toto2>(*toto2, weights, make_backend(options),
                                        options.mode != Mode::eager);
  } else {
    impl->net = std::make_unique<Toto1>(
        std::get<Toto1Config>(checkpoint.config), weights, make_backend(options),
        options.mode == Mode::eager ? Execution::eager() : Execution{});
  }
  impl->content_hash = hash.get();
  return impl;
}

Model load_from(Checkpoint from, const LoadOptions& options) {
  const auto checkpoint = std::make_shared<const Checkpoint>(std::move(from));
  return Model(load_with_spare(
      options, [checkpoint](const LoadOptions& where) { return build(*checkpoint, where); }));
}

}  // namespace

Model Model::load(const ModelQuery& query, const LoadOptions& options) {
  return load_from(open_checkpoint(query), options);
}

Model Model::synthesise(std::string_view preset, std::uint64_t seed, const LoadOptions& options) {
  const ModelConfig config = find_preset(preset);
  auto source = synthesise_weights(synthetic_tensors(config), seed, to_json(config));
  WeightTable weights(std::move(source), tensor_list(config));
  ModelInfo info = describe_model(config, weights);
  info.name = fmt::format("{} (synthetic, seed {})", preset, seed);
  return load_from({config, std::move(weights), std::move(info)}, options);
}

const Model::Impl& Model::impl() const {
  if (impl_) return *impl_;
  throw Error(ExitStatus::usage, "moved_from", "this model was moved from", "toto::Model",
              "use what it was moved to");
}

const ModelInfo& Model::info() const { return impl().info; }

}  // namespace toto
