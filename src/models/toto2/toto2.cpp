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
  const bool exact_ends = ops_->exact_ends(config_.d_model);
  embed_ = load.residual_mlp("patch_proj", config_.d_model, 2 * config_.patch_size, {}, false,
                             exact_ends);
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
                        config_.d_model, out_gain_, true, exact_ends);
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

/// `a` from the rows on that a part has for itself alone; what is of the whole call stays.
Toto2Activations own(const CallPart& part, const Toto2Activations& a) {
  const auto rest = [&](const View& v) {
    return v.from(part.own, v.rows.count - static_cast<std::int32_t>(part.own));
  };
  Toto2Activations result = a;
  result.inner = rest(a.inner);
  result.normed = rest(a.normed);
  result.qkv = rest(a.qkv);
  result.attended = rest(a.attended);
  return result;
}

}  // namespace

void Toto2::residual_mlp(const toto2::ResidualMlp& mlp, const ConstView& x, const View& inner,
                         const View& y, const NormRoom& next) const {
  const View between = inner.as(backend_->operand_type(mlp.second), x.rows, mlp.first.out);
  ops_->linear_silu(mlp.first, x, between);
  if (ops_->linear_sum(mlp.second, between, mlp.skip, x, y, next)) return;
  backend_->linear(mlp.second, between, y, Epilogue::store);
  backend_->linear(mlp.skip, x, y, Epilogue::residual);
}

void Toto2::norm_linear(const ConstView& hidden, double epsilon, const NormRoom& room,
                        const Matrix& w, const View& y, Epilogue epilogue) const {
  if (ops_->norm_linear(hidden, epsilon, room, w, y, epilogue)) return;
  const View normed = room.room.as(backend_->operand_type(w), hidden.rows, w.in);
  ops_->rms_norm(hidden, normed, epsilon);
  backend_->linear(w, normed, y, epilogue);
}

/// Of the residual stream.
bool Toto2::norms_ahead(Rows rows) const {
  const std::int32_t longest = std::max(inner(), heads().attended());
  const std::int32_t summand = std::max(2 * config_.patch_size, config_.d_model);
  return ops_->norms_ahead(rows, config_.d_model, longest + summand);
}

/// Adds a product to the residual stream, of which the `next` norm is.
void Toto2::add_linear(const Matrix& w, const ConstView& x, const View& hidden,
                       const NormRoom& next) const {
  if (next.ahead) return ops_->linear_ahead(w, x, hidden, next.room);
  backend_->linear(w, x, hidden, Epilogue::residual);
}

/// Queries, keys and values that attention in a layer reads.
void Toto2::before_attention(const toto2::Layer& layer, const CallPart& part, bool last,
                             const ConstView& hidden, bool ahead, const Toto2Activations& own,
                             const View& qkv) const {
  const HeadShape shape = heads();
  const bool values = layer.variate && part.all.of_one_variate();
  const std::int32_t width = layer.qkv.in + shape.heads * shape.qk;  // of scratch
  const bool queries = last && 2 * part.wanted.rows <= part.all.rows && width <= 2 * inner();
  if (!ops_->skips_unread() || !(values || queries)) {
    return norm_linear(hidden, layer.epsilon1, {own.normed, ahead}, layer.qkv, qkv,
                       Epilogue::store);
  }
  const View normed =
      own.normed.as(backend_->operand_type(layer.qkv), hidden.rows, config_.d_model);
  ops_->rms_norm(hidden, normed, layer.epsilon1);
  if (values) return ops_->linear_values(layer.qkv, shape, normed, qkv);
  ops_->linear_wanted(part.all, part.wanted, layer.qkv, shape, normed,
                      own.inner.shaped(part.wanted.all_rows(), width), qkv);
}

/// What follows attention in a layer.
void Toto2::feed_forward(const toto2::Layer& layer, const ConstView& attended, const View& hidden,
                         const Toto2Activations& own) const {
  const View gated =
      own.inner.as(backend_->operand_type(layer.mlp_out), hidden.rows, layer.mlp_out.in);
  const NormRoom norm{own.normed, norms_ahead(hidden.rows)};
  add_linear(layer.out, attended, hidden, norm);
  norm_linear(hidden, layer.epsilon2, norm, layer.mlp_in, gated, Epilogue::gated);
  add_linear(layer.mlp_out, gated, hidden, norm);
}

void Toto2::forward(const Call& all, const Call& wanted, const SeriesArrays& arrays,
                    const Rotary& rotary, std::span<const KvCache> kv, const Toto2Activations& a,
                    const Toto2Observer* observer) const {
  const HeadShape shape = heads();
  const std::int32_t width = config_.d_model;
  const Rows wanted_rows = wanted.all_rows();
  const View all_hidden = a.hidden.shaped(all.all_rows(), width);
  const View wanted_hidden = a.wanted.shaped(wanted_rows, width);
  const Call* call = &all;  // becomes `wanted` once only those tokens matter
  View hidden = all_hidden;
  const auto keep_wanted = [&] {
    hidden = wanted_hidden;
    call = &wanted;
  };
  const bool observed = observer != nullptr && *observer;
  const auto observe = [&](std::int32_t layer, const ConstView& rows, double factor) {
    if (observed) (*observer)(layer, rows, factor, call == &wanted);
  };
  const auto wanted_of = [&](const CallPart& part) {
    return wanted_hidden.from(part.first_wanted, part.wanted.all_rows());
  };
  const auto gather = [&](const CallPart& part) {
    ops_->gather(part.all, part.wanted, all_hidden.from(part.first, part.all.all_rows()),
                 wanted_of(part));
  };

  // Whether what left `hidden` also left what a norm takes. It is not gathered.
  bool ahead = norms_ahead(all.all_rows());
  const View inputs = inputs_of(all, a);
  for_each_part(*ops_, all, wanted, [&](const CallPart& part) {
    const Rows rows = part.all.all_rows();
    const Toto2Activations mine = own(part, a);
    residual_mlp(embed_, inputs.from(part.first, rows), mine.inner, hidden.from(part.first, rows),
                 {mine.normed, ahead});
  });
  observe(-1, hidden, 1);
  if (trim_ && last_time_layer_ < 0) {
    gather({all, wanted});
    keep_wanted();
    ahead = false;
  }
  std::size_t cache = 0;
  for (std::int32_t i = 0; i < config_.num_layers; ++i) {
    const toto2::Layer& layer = layers_[static_cast<std::size_t>(i)];
    const bool last = trim_ && i == last_time_layer_;
    const bool keep = kv.size() > 1;
    const KvCache own_kv = layer.variate ? KvCache{} : kv[keep ? cache++ : 0];
    const ElementType operands = backend_->operand_type(layer.out);
    const auto wanted_attended = [&] {
      return a.attended.as(operands, wanted_rows, shape.attended());
    };
    for_each_part(*ops_, *call, wanted, [&](const CallPart& part) {
      const Toto2Activations mine = own(part, a);
      const Rows rows = part.all.all_rows();
      const View x = hidden.from(part.first, rows);
      const View qkv = mine.qkv.shaped(rows, shape.row());
      const View attended = mine.attended.as(operands, rows, shape.attended());
      if (layer.variate && part.all.of_one_variate() &&
          ops_->norm_values(x, layer.epsilon1, {mine.normed, ahead}, layer.qkv, shape, attended)) {
        return feed_forward(layer, attended, x, mine);
      }
      before_attention(layer, part, last, x, ahead, mine, qkv);
      if (last) {
        const View out = wanted_attended().from(part.first_wanted, part.wanted.all_rows());
        if (ops_->time_attention_and_gather(part.all, part.wanted, arrays, shape, layer.norm,
                                            rotary, qkv, own_kv, keep, out, x, wanted_of(part))) {
          return;
        }
        ops_->time_attention(part.all, part.wanted, arrays, shape, layer.norm, rotary, qkv, own_kv,
                             keep, out);
        return gather(part);
      }
      if (layer.variate) {
        ops_->variate_attention(part.all, arrays, shape, layer.norm, qkv, attended);
      } else {
        ops_->time_attention(part.all, part.all, arrays, shape, layer.norm, rotary, qkv, own_kv,
                             keep, attended);
      }
      feed_forward(layer, attended, x, mine);
    });
    if (last) {
      keep_wanted();
      for_each_part(*ops_, wanted, wanted, [&](const CallPart& part) {
        const Rows rows = part.all.all_rows();
        feed_forward(layer, wanted_attended().from(part.first, rows), hidden.from(part.first, rows),
                     own(part, a));
      });
    }
    ahead = norms_ahead(hidden.rows);
    observe(i, hidden, layer.factor);
  }
  if (call == &all) {
    gather({all, wanted});
    keep_wanted();
    ahead = false;
  }
  const View normed = a.normed.as(backend_->operand_type(head_.first), wanted_rows, width);
  for_each_part(*ops_, wanted, wanted, [&](const CallPart& part) {
    const Rows rows = part.all.all_rows();
    const Toto2Activations mine = own(part, a);
    const View own_normed = normed.from(part.first, rows);
    const View inner = mine.inner.as(backend_->operand_type(head_.second), rows, head_.first.out);
    if (ops_->norm_residual_mlp(hidden.from(part.first, rows), out_epsilon_, {mine.normed, ahead},
                                head_.first, head_.second, head_.skip, inner,
                                a.raw.from(part.first, rows))) {
      return;
    }
    ops_->rms_norm(hidden.from(part.first, rows), own_normed, out_epsilon_);
    residual_mlp(head_, own_normed, mine.inner, a.raw.from(part.first, rows), {});
  });
  if (!observed) return;
  const View seen = a.normed.shaped(wanted_rows, width);  // not as products take it
  if (seen.type != normed.type) ops_->rms_norm(hidden, seen, out_epsilon_);
  observe(config_.num_layers, seen, 1);
}

/// What the input MLP takes of a call.
View Toto2::inputs_of(const Call& call, const Toto2Activations& a) const {
  return a.inputs.as(backend_->operand_type(embed_.first), call.all_rows(), embed_.first.in);
}

}  // namespace toto
