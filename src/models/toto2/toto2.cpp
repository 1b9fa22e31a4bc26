// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/toto2.h"

#include <algorithm>

#include "models/toto2/loader.h"
#include "toto/error.hpp"

namespace toto {

Toto2::Toto2(const Toto2Config& config, const WeightTable& weights,
             std::shared_ptr<Backend> backend, bool trim)
    : config_(config), backend_(std::move(backend)), ops_(backend_->ops2()), trim_(trim) {
  if (ops_ == nullptr) {
    throw Error(ExitStatus::bad_config, "unsupported_config",
                "the " + std::string(backend_->name()) + " backend cannot run Toto 2.0 yet", {},
                "use --device cpu");
  }
  toto2::Loader load(config_, weights, *backend_);
  embed_ = load.residual_mlp("patch_proj", config_.d_model, 2 * config_.patch_size, {}, false,
                             ops_->exact_inputs(4 * config_.d_model));
  double factor = 1;  // of the residual stream
  for (std::int32_t i = 0; i < config_.num_layers; ++i) {
    layers_.push_back(load.layer(i, factor));
    if (layers_.back().variate) continue;
    ++time_layers_;
    last_time_layer_ = i;
  }
  out_epsilon_ = config_.norm_eps / (factor * factor);
  if (config_.norm_include_weight) out_gain_ = load.vector("transformer.out_norm.weight");
  head_ =
      load.residual_mlp("output_head.param_projection.proj", kToto2Quantiles * config_.patch_size,
                        config_.d_model, out_gain_, true, true);
  vectors_ = load.take_vectors();
}

std::int32_t Toto2::inner() const { return std::max(4 * config_.d_model, config_.d_ff); }

void Toto2::for_each_matrix(const std::function<void(const Matrix&, Epilogue)>& visit) const {
  const auto visit_mlp = [&](const toto2::ResidualMlp& mlp) {
    visit(mlp.first, Epilogue::store);
    visit(mlp.second, Epilogue::store);
    visit(mlp.skip, Epilogue::residual);
  };
  visit_mlp(embed_);
  for (const toto2::Layer& layer : layers_) {
    visit(layer.qkv, Epilogue::store);
    visit(layer.out, Epilogue::residual);
    visit(layer.mlp_in, Epilogue::gated);
    visit(layer.mlp_out, Epilogue::residual);
  }
  visit_mlp(head_);
}

void Toto2::residual_mlp(const toto2::ResidualMlp& mlp, const void* x, void* inner, void* y,
                         Rows rows) const {
  ops_->linear_silu(mlp.first, x, inner, rows);
  backend_->linear(mlp.second, inner, y, rows, Epilogue::store);
  backend_->linear(mlp.skip, x, y, rows, Epilogue::residual);
}

void Toto2::forward(const Call& all, const Call& wanted, const SeriesArrays& arrays,
                    const Rotary& rotary, std::span<const KvCache> kv, const Toto2Activations& a,
                    const Toto2Observer* observer) const {
  const Backend& be = *backend_;
  const HeadShape shape = heads();
  const std::int32_t width = config_.d_model;

  const Call* call = &all;  // becomes `wanted` once only those tokens matter
  void* hidden = a.hidden;
  const auto keep_wanted = [&] {
    ops_->gather(all, wanted, hidden, a.wanted, width);
    hidden = a.wanted;
    call = &wanted;
  };
  const auto observe = [&](std::int32_t layer, const void* rows, double factor) {
    if (observer != nullptr && *observer) (*observer)(layer, rows, factor, call == &wanted);
  };

  const auto norm_linear = [&](double epsilon, const Matrix& w, void* y, Epilogue epilogue) {
    const Rows rows = call->all_rows();
    if (ops_->norm_linear(hidden, epsilon, a.normed, w, y, rows, epilogue)) return;
    ops_->rms_norm(hidden, a.normed, rows, w, epsilon);
    be.linear(w, a.normed, y, rows, epilogue);
  };

  residual_mlp(embed_, a.inputs, a.inner, hidden, all.all_rows());
  observe(-1, hidden, 1);
  if (trim_ && last_time_layer_ < 0) keep_wanted();
  std::size_t cache = 0;
  for (std::int32_t i = 0; i < config_.num_layers; ++i) {
    const toto2::Layer& layer = layers_[static_cast<std::size_t>(i)];
    norm_linear(layer.epsilon1, layer.qkv, a.qkv, Epilogue::store);
    if (layer.variate) {
      ops_->variate_attention(*call, arrays, shape, layer.norm, a.qkv, a.attended);
    } else {
      const bool last = trim_ && i == last_time_layer_;
      const bool keep = kv.size() > 1;
      ops_->time_attention(all, last ? wanted : all, arrays, shape, layer.norm, rotary, a.qkv,
                           kv[keep ? cache++ : 0], keep, a.attended);
      if (last) keep_wanted();
    }
    be.linear(layer.out, a.attended, hidden, call->all_rows(), Epilogue::residual);
    norm_linear(layer.epsilon2, layer.mlp_in, a.inner, Epilogue::gated);
    be.linear(layer.mlp_out, a.inner, hidden, call->all_rows(), Epilogue::residual);
    observe(i, hidden, layer.factor);
  }
  if (call == &all) keep_wanted();
  ops_->rms_norm(hidden, a.normed, wanted.all_rows(), head_.first, out_epsilon_);
  observe(config_.num_layers, a.normed, 1);
  residual_mlp(head_, a.normed, a.inner, a.raw, wanted.all_rows());
}

}  // namespace toto
