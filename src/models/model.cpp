// SPDX-License-Identifier: Apache-2.0
// toto::Model: a checkpoint on a backend.
#include <fmt/format.h>

#include <future>
#include <utility>

#include "core/log.h"
#include "core/stopwatch.h"
#include "models/backend_choice.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/synthetic.h"
#include "models/cpu_fallback.h"
#include "models/model_impl.h"
#include "settings/presets.h"
#include "toto/settings.hpp"

namespace toto {
namespace {

std::shared_ptr<Model::Impl> build(const Checkpoint& checkpoint, const LoadOptions& options) {
  const WeightTable& weights = checkpoint.weights;
  auto impl = std::make_shared<Model::Impl>();
  impl->info = checkpoint.info;
  impl->mode = options.mode.value_or(Mode::reduce_overhead);
  impl->kv_cache = options.kv_cache.value_or(default_kv_cache(impl->mode));
  impl->precision = options.precision;
  // Beside the reading of the weights; where the system has no more threads, after it.
  auto hash = std::async([&] { return weights.source().content_hash(); });
  impl->configuration = checkpoint.config->to_json();
  impl->net = checkpoint.config->build(weights, make_backend(options),
                                       options.mode == Mode::eager ? Build::eager : Build::planned,
                                       impl->kv_cache);
  impl->content_hash = hash.get();
  return impl;
}

/// `open` gives the checkpoint; the options have nothing left open.
template <typename Open>
Model load_from(const Open& open, const LoadOptions& options) {
  double seconds = 0;
  std::shared_ptr<Model::Impl> impl;
  {
    const Stopwatch watch(seconds, "load");
    const auto checkpoint = std::make_shared<const Checkpoint>(open());
    impl = load_with_cpu_fallback(
        options, [checkpoint](const LoadOptions& where) { return build(*checkpoint, where); });
  }
  impl->load_seconds = seconds;
  Model model(std::move(impl));
  const LoadReport how = model.loaded();
  log_info(
      options.log, Topic::device, "model_loaded",
      fmt::format("model loaded: {}, weights {}, {}, {} on {} ({}), kv-cache {}, toto {}, "
                  "{:.2f} s",
                  model.info().name, how.weights.substr(0, 12), word(how.mode), word(how.precision),
                  how.device, how.isa, word(how.kv_cache), TOTO_VERSION, how.seconds));
  return model;
}

}  // namespace

Model Model::load(const ModelQuery& query, const LoadOptions& options) {
  ModelQuery where = query;
  if (options.environment == Environment::ignored) where.environment = Environment::ignored;
  return load_from([&where] { return open_checkpoint(where); }, complete(options));
}

Model Model::synthesise(std::string_view preset, std::uint64_t seed, const LoadOptions& options) {
  const auto open = [&] {
    const ConfigurationPtr config = find_preset(preset);
    const TensorList tensors = config->tensors();
    auto source = synthesise_weights(synthetic_tensors(tensors), seed, config->to_json());
    WeightTable weights(std::move(source), tensors);
    ModelInfo info = describe_model(*config, weights);
    info.name = fmt::format("{} (synthetic, seed {})", preset, seed);
    return Checkpoint{config, std::move(weights), std::move(info)};
  };
  return load_from(open, complete(options));
}

const Model::Impl& Model::impl() const {
  if (impl_) return *impl_;
  throw Error(ExitStatus::usage, "moved_from", "this model was moved from", "toto::Model",
              "use what it was moved to");
}

const ModelInfo& Model::info() const { return impl().info; }

LoadReport Model::loaded() const {
  const Impl& how = impl();
  const Backend& backend = how.net->backend();
  return {how.mode,
          how.kv_cache,
          how.precision,
          std::string(backend.device()),
          std::string(backend.isa()),
          how.content_hash,
          how.load_seconds};
}

}  // namespace toto
