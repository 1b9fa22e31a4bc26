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

namespace {

/// Calls work(part) for parts that together are the call.
template <typename Work>
void for_each_part(const Ops2& ops, const Call& all, const Call& wanted, const Work& work) {
  ops.for_each_part(
      all, wanted,
      [](const void* context, const CallPart& part) { (*static_cast<const Work*>(context))(part); },
      &work);
}

}  // namespace

void Toto2::residual_mlp(const toto2::ResidualMlp& mlp, const void* x, void* inner, void* y,
                         Rows rows) const {
  ops_->linear_silu(mlp.first, x, inner, rows);
  backend_->linear(mlp.second, inner, y, rows, Epilogue::store);
  backend_->linear(mlp.skip, x, y, rows, Epilogue::residual);
}

void Toto2::norm_linear(const void* hidden, double epsilon, void* normed, const Matrix& w, void* y,
                        Rows rows, Epilogue epilogue) const {
  if (ops_->norm_linear(hidden, epsilon, normed, w, y, rows, epilogue)) return;
  ops_->rms_norm(hidden, normed, rows, w, epsilon);
  backend_->linear(w, normed, y, rows, epilogue);
}

/// What follows attention in a layer.
void Toto2::feed_forward(const toto2::Layer& layer, const void* attended, void* hidden,
                         const Toto2Activations& own, Rows rows) const {
  backend_->linear(layer.out, attended, hidden, rows, Epilogue::residual);
  norm_linear(hidden, layer.epsilon2, own.normed, layer.mlp_in, own.inner, rows, Epilogue::gated);
  backend_->linear(layer.mlp_out, own.inner, hidden, rows, Epilogue::residual);
}

/// `a` from the rows on that a part has for itself alone; what is of the whole call stays.
Toto2Activations Toto2::own(const CallPart& part, Toto2Activations a) const {
  a.inner = at(a.inner, part.own, inner());
  a.normed = at(a.normed, part.own, config_.d_model);
  a.qkv = at(a.qkv, part.own, heads().row());
  a.attended = at(a.attended, part.own, heads().attended());
  return a;
}

void* Toto2::at(void* base, std::int64_t row, std::int64_t width) const {
  return static_cast<std::byte*>(base) +
         static_cast<std::size_t>(row * width) * backend_->element_size();
}

void Toto2::forward(const Call& all, const Call& wanted, const SeriesArrays& arrays,
                    const Rotary& rotary, std::span<const KvCache> kv, const Toto2Activations& a,
                    const Toto2Observer* observer) const {
  const HeadShape shape = heads();
  const std::int32_t width = config_.d_model;
  const Call* call = &all;  // becomes `wanted` once only those tokens matter
  void* hidden = a.hidden;
  const auto keep_wanted = [&] {
    hidden = a.wanted;
    call = &wanted;
  };
  const auto observe = [&](std::int32_t layer, const void* rows, double factor) {
    if (observer != nullptr && *observer) (*observer)(layer, rows, factor, call == &wanted);
  };
  const auto gather = [&](const CallPart& part) {
    ops_->gather(part.all, part.wanted, at(a.hidden, part.first, width),
                 at(a.wanted, part.first_wanted, width), width);
  };

  for_each_part(*ops_, all, wanted, [&](const CallPart& part) {
    residual_mlp(embed_, at(a.inputs, part.first, std::int64_t{2} * config_.patch_size),
                 own(part, a).inner, at(hidden, part.first, width), part.all.all_rows());
  });
  observe(-1, hidden, 1);
  if (trim_ && last_time_layer_ < 0) {
    gather({all, wanted});
    keep_wanted();
  }
  std::size_t cache = 0;
  for (std::int32_t i = 0; i < config_.num_layers; ++i) {
    const toto2::Layer& layer = layers_[static_cast<std::size_t>(i)];
    const bool last = trim_ && i == last_time_layer_;
    const bool keep = kv.size() > 1;
    const KvCache own_kv = layer.variate ? KvCache{} : kv[keep ? cache++ : 0];
    for_each_part(*ops_, *call, wanted, [&](const CallPart& part) {
      const Toto2Activations mine = own(part, a);
      void* const x = at(hidden, part.first, width);
      const Rows rows = part.all.all_rows();
      norm_linear(x, layer.epsilon1, mine.normed, layer.qkv, mine.qkv, rows, Epilogue::store);
      if (layer.variate) {
        ops_->variate_attention(part.all, arrays, shape, layer.norm, mine.qkv, mine.attended);
      } else if (last) {
        ops_->time_attention(part.all, part.wanted, arrays, shape, layer.norm, rotary, mine.qkv,
                             own_kv, keep, at(a.attended, part.first_wanted, shape.attended()));
        return gather(part);
      } else {
        ops_->time_attention(part.all, part.all, arrays, shape, layer.norm, rotary, mine.qkv,
                             own_kv, keep, mine.attended);
      }
      feed_forward(layer, mine.attended, x, mine, rows);
    });
    if (last) {
      keep_wanted();
      for_each_part(*ops_, wanted, wanted, [&](const CallPart& part) {
        feed_forward(layer, at(a.attended, part.first, shape.attended()),
                     at(hidden, part.first, width), own(part, a), part.all.all_rows());
      });
    }
    observe(i, hidden, layer.factor);
  }
  if (call == &all) {
    gather({all, wanted});
    keep_wanted();
  }
  for_each_part(*ops_, wanted, wanted, [&](const CallPart& part) {
    void* const normed = at(a.normed, part.first, width);
    const Rows rows = part.all.all_rows();
    ops_->rms_norm(at(hidden, part.first, width), normed, rows, head_.first, out_epsilon_);
    residual_mlp(head_, normed, own(part, a).inner,
                 at(a.raw, part.first, std::int64_t{kQuantiles} * config_.patch_size), rows);
  });
  observe(config_.num_layers, a.normed, 1);
}

}  // namespace toto
