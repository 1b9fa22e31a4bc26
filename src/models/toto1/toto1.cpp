// SPDX-License-Identifier: Apache-2.0
#include "models/toto1/toto1.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/toto1/fold.h"
#include "models/toto1/program.h"

namespace toto {
namespace {

std::vector<float> read(const WeightTable& weights, const std::string& name, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  weights.read(name, values);
  return values;
}

/// `exact`: kept in float32 whatever the type of the other weights. That is the way in and the way
/// out, where few weights carry all of the signal.
Matrix read_matrix(const WeightTable& weights, Backend& backend, const std::string& name,
                   std::int64_t out, std::int64_t in, Epilogue use, bool exact = false) {
  const std::vector<float> bias = read(weights, name + ".bias", out);
  auto matrix = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(out * in));
  weights.read(name + ".weight", {matrix.get(), static_cast<std::size_t>(out * in)});
  const auto upload = exact ? &Backend::upload_exact_matrix : &Backend::upload_matrix;
  return (backend.*upload)(std::move(matrix), static_cast<std::int32_t>(out),
                           static_cast<std::int32_t>(in), bias, use);
}

/// File row c*D + e*H + h (head fastest) becomes row c*D + h*d + e (spec A2.1). `width` elements a
/// row.
void order_heads(const float* from, float* to, std::int64_t heads, std::int64_t d,
                 std::int64_t width) {
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t e = 0; e < d; ++e) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t source = (c * d + e) * heads + h;
        const std::int64_t target = (c * heads + h) * d + e;
        std::copy_n(from + source * width, width, to + target * width);
      }
    }
  }
}

}  // namespace

Toto1::Toto1(const Toto1Config& config, const WeightTable& weights,
             std::shared_ptr<Backend> backend, const Execution& execution)
    : config_(config), execution_(execution), backend_(std::move(backend)) {
  embed_ = read_matrix(weights, *backend_, "model.patch_embed.projection", config_.embed_dim,
                       config_.patch_size, Epilogue::store, true);
  load_layers(weights);
  load_head(weights);
  if (weights.has_together()) load_labels(weights);
  if (execution_.trim) {
    stack_ = backend_->prepare_stack(
        {embed_, labels_, layers_, config_.num_heads, config_.head_dim(), after_layers()});
  }
}

ConstView Toto1::upload_vector(std::span<const float> values, std::int32_t rows) {
  vectors_.emplace_back(backend_->allocate(values.size() * backend_->element_size()),
                        [backend = backend_](void* memory) { backend->release(memory); });
  const View to{vectors_.back().get(), backend_->element_type(),
                static_cast<std::int32_t>(values.size()) / rows, rows};
  backend_->upload(values, to);
  return to;
}

void Toto1::load_layers(const WeightTable& weights) {
  const std::int64_t width = config_.embed_dim;
  const std::int64_t hidden = config_.mlp_hidden_dim;
  for (std::int32_t i = 0; i < config_.num_layers; ++i) {
    const std::string prefix = "model.transformer.layers." + std::to_string(i) + ".";
    LayerWeights layer;
    layer.space = config_.is_space_layer(i);
    if (!layer.space) {
      ++time_layers_;
      last_time_layer_ = i;
    }
    layer.norm1 = upload_vector(read(weights, prefix + "norm1.scale", width));
    layer.norm2 = upload_vector(read(weights, prefix + "norm2.scale", width));
    {
      auto packed =
          std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(3 * width * width));
      const auto stored = read(weights, prefix + "attention.wQKV.weight", 3 * width * width);
      const auto stored_bias = read(weights, prefix + "attention.wQKV.bias", 3 * width);
      std::vector<float> bias(stored_bias.size());
      order_heads(stored.data(), packed.get(), config_.num_heads, config_.head_dim(), width);
      order_heads(stored_bias.data(), bias.data(), config_.num_heads, config_.head_dim(), 1);
      layer.qkv = backend_->upload_matrix(std::move(packed), 3 * config_.embed_dim,
                                          config_.embed_dim, bias, Epilogue::store);
    }
    layer.out =
        read_matrix(weights, *backend_, prefix + "attention.wO", width, width, Epilogue::residual);
    layer.mlp_in =
        read_matrix(weights, *backend_, prefix + "mlp.0.w12", 2 * hidden, width, Epilogue::gated);
    layer.mlp_out =
        read_matrix(weights, *backend_, prefix + "mlp.0.w3", width, hidden, Epilogue::residual);
    layers_.push_back(layer);
  }
}

void Toto1::load_head(const WeightTable& weights) {
  const std::int64_t width = config_.embed_dim;
  const std::int64_t patch = config_.patch_size;
  const std::int64_t k = config_.components;
  const std::int64_t parts = config_.head == HeadKind::mixture ? 4 : 3;
  // The four heads one under the other: [4K][D]; a single Student-T has no mixture weights: zeros.
  static constexpr const char* kNames[] = {"df", "loc_proj", "scale_proj", "mixture_weights"};
  auto head = std::make_unique<float[]>(static_cast<std::size_t>(4 * k * width));
  std::vector<float> head_bias(static_cast<std::size_t>(4 * k), 0.0F);
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::string name = std::string("model.output_distribution.") + kNames[part];
    weights.read(name + ".weight",
                 {head.get() + part * k * width, static_cast<std::size_t>(k * width)});
    weights.read(name + ".bias", std::span(head_bias).subspan(static_cast<std::size_t>(part * k),
                                                              static_cast<std::size_t>(k)));
  }
  if (!execution_.fold_head) {
    unembed_ = read_matrix(weights, *backend_, "model.unembed", patch * width, width,
                           Epilogue::store, true);
    head_ = backend_->upload_exact_matrix(std::move(head), static_cast<std::int32_t>(4 * k),
                                          config_.embed_dim, head_bias, Epilogue::store);
    return;
  }
  const auto unembed = read(weights, "model.unembed.weight", patch * width * width);
  const auto unembed_bias = read(weights, "model.unembed.bias", patch * width);
  FoldedHead folded =
      fold_head(unembed, unembed_bias, {head.get(), static_cast<std::size_t>(4 * k * width)},
                head_bias, patch, width);
  head_ = backend_->upload_exact_matrix(std::move(folded.weights),
                                        static_cast<std::int32_t>(patch * 4 * k), config_.embed_dim,
                                        folded.bias, Epilogue::store);
}

void Toto1::load_labels(const WeightTable& weights) {
  std::vector<float> both;
  for (const char* name : {"model.target_variate_label", "model.exogenous_variate_label"}) {
    const auto label = read(weights, name, config_.embed_dim);
    double squares = 0;
    for (const float v : label) squares += static_cast<double>(v) * v;
    const auto length = static_cast<float>(std::max(std::sqrt(squares), 1e-12));
    for (const float v : label) both.push_back(v / length);
  }
  labels_ = upload_vector(both, 2);
}

ScalerSpec Toto1::scaler_spec() const {
  ScalerSpec spec;
  switch (config_.scaler) {
    case ScalerKind::causal_patch:
      spec.kind = ScalerSpec::Kind::causal_patch;
      break;
    case ScalerKind::causal_step:
      spec.kind = ScalerSpec::Kind::causal_step;
      break;
    case ScalerKind::global:
      spec.kind = ScalerSpec::Kind::global;
      break;
  }
  spec.patch = config_.patch_size;
  spec.stabilize_with_global = config_.stabilize_with_global;
  spec.exponent = config_.scale_factor_exponent;
  return spec;
}

void Toto1::for_each_matrix(const std::function<void(const Matrix&, Epilogue)>& visit) const {
  visit(embed_, Epilogue::store);
  for (const LayerWeights& layer : layers_) {
    visit(layer.qkv, Epilogue::store);
    visit(layer.out, Epilogue::residual);
    visit(layer.mlp_in, Epilogue::gated);
    visit(layer.mlp_out, Epilogue::residual);
  }
  if (unembed_.weights != nullptr) visit(unembed_, Epilogue::store);
  visit(head_, Epilogue::store);
}

std::unique_ptr<Program> Toto1::program() const { return std::make_unique<Toto1Program>(*this); }

EarlyResults Toto1::forward(const Batch& all, const Batch& last, const Rotary& rotary,
                            const std::vector<KvLayer>& kv, const Activations& a,
                            std::int32_t steps, const LayerObserver* observer, bool raw) const {
  const Backend& be = *backend_;
  const std::int32_t heads = config_.num_heads;
  const std::int32_t width = config_.embed_dim;

  Matrix after = after_layers();
  after.out = steps * (execution_.fold_head ? 4 * config_.components : width);
  const View after_to =
      (execution_.fold_head ? a.params : a.unembedded).shaped(all.all_lanes(), after.out);
  const bool context = &all != &last;
  EarlyResults early;
  if (stack_ != nullptr && context && (observer == nullptr || !*observer)) {
    if (a.all_params) {
      if (stack_of_all(a, all, rotary, kv, after_to)) {
        finish_head(a, all, steps, raw);
        return {};
      }
    } else if (be.stack(*stack_, all, last, rotary, kv, a.scaled, a.hidden, a.last, after_to,
                        early)) {
      finish_head(a, all, steps, raw);
      return early;
    }
  }
  const Batch* batch = &all;  // becomes `last` once only the last tokens matter
  View hidden = a.hidden.shaped(all.all_rows(), width);
  const View last_hidden = a.last.shaped(all.all_lanes(), width);
  be.linear(embed_, a.scaled.shaped(all.all_rows(), config_.patch_size), hidden, Epilogue::store);
  if (labels_) be.set_labels(all, labels_, hidden);

  std::size_t cache = 0;
  for (std::int32_t i = 0; i < config_.num_layers; ++i) {
    const LayerWeights& layer = layers_[static_cast<std::size_t>(i)];
    const auto attended = [&] {  // of the tokens that go on
      return a.attended.as(be.operand_type(layer.out), batch->all_rows(), width);
    };
    const View qkv = a.qkv.shaped(batch->all_rows(), 3 * width);
    be.norm_linear(hidden, layer.norm1, a.normed, layer.qkv, qkv, Epilogue::store);
    if (layer.space) {
      be.variate_attention(*batch, qkv, attended(), heads);
    } else {
      const Batch& seen = *batch;
      const bool trim = execution_.trim && i == last_time_layer_ && !a.all_params;
      if (trim) batch = &last;
      be.append_and_attend(seen, rotary, qkv, kv[cache], attended(), heads, trim, a.keep);
      ++cache;
      if (trim) {
        be.gather_last(all, hidden, last_hidden);
        hidden = last_hidden.shaped(last.all_rows(), width);
      }
    }
    const View gated =
        a.gated.as(be.operand_type(layer.mlp_out), batch->all_rows(), config_.mlp_hidden_dim);
    be.linear(layer.out, attended(), hidden, Epilogue::residual);
    be.norm_linear(hidden, layer.norm2, a.normed, layer.mlp_in, gated, Epilogue::gated);
    be.linear(layer.mlp_out, gated, hidden, Epilogue::residual);
    if (observer != nullptr && *observer) (*observer)(i, hidden, batch == &last);
  }
  if (a.all_params) head_of_all(a, all);
  if (batch == &all) be.gather_last(all, hidden, last_hidden);
  be.linear(after, last_hidden, after_to, Epilogue::store);
  finish_head(a, all, steps, raw);
  return early;
}

/// Backend::stack() with the whole head of every token, of which `first` has the first outputs of
/// the last ones. false: nothing was done.
bool Toto1::stack_of_all(const Activations& a, const Batch& all, const Rotary& rotary,
                         const std::vector<KvLayer>& kv, const View& first) const {
  if (!execution_.fold_head) return false;
  const View params = a.all_params.shaped(all.all_rows(), head_.out);
  EarlyResults early;  // of every token: nobody reads it
  if (!backend_->stack(*stack_, all, all, rotary, kv, a.scaled, a.hidden, a.hidden, params,
                       early)) {
    return false;
  }
  backend_->gather_last(all, params, first);
  distribution_of_all(a, all);
  return true;
}

/// The whole head of every token, from the hidden rows.
void Toto1::head_of_all(const Activations& a, const Batch& all) const {
  const std::int32_t patch = config_.patch_size;
  const std::int32_t width = config_.embed_dim;
  const std::int32_t each = 4 * config_.components;  // of a step
  const View hidden = a.hidden.shaped(all.all_rows(), width);
  const View params = a.all_params.shaped(all.all_rows(), std::int64_t{patch} * each);
  if (execution_.fold_head) {
    backend_->linear(head_, hidden, params, Epilogue::store);
  } else {
    for (std::int64_t row = 0; row < all.rows; ++row) {  // what lies between is large
      backend_->linear(unembed_, hidden.from(row, 1), a.all_unembedded, Epilogue::store);
      backend_->linear(head_, a.all_unembedded.shaped(patch, width),
                       params.from(row, 1).shaped(patch, each), Epilogue::store);
    }
  }
  distribution_of_all(a, all);
}

void Toto1::distribution_of_all(const Activations& a, const Batch& all) const {
  Rows steps = all.all_rows();
  steps.count *= config_.patch_size;
  steps.times *= config_.patch_size;
  backend_->distribution(a.all_params.shaped(steps, std::int64_t{4} * config_.components),
                         config_.head == HeadKind::mixture);
}

void Toto1::finish_head(const Activations& a, const Batch& all, std::int32_t steps,
                        bool raw) const {
  const Rows rows = all.all_lanes(steps);
  const View params = a.params.shaped(rows, 4 * config_.components);
  if (!execution_.fold_head) {
    backend_->linear(head_, a.unembedded.shaped(rows, config_.embed_dim), params, Epilogue::store);
  }
  if (raw) return;
  backend_->distribution(params, config_.head == HeadKind::mixture);
}

RotaryTables rotary_tables(std::int32_t positions, std::int32_t head_dim) {
  const std::int32_t half = head_dim / 2;
  RotaryTables tables;
  std::vector<float> frequency;
  std::vector<float> base;
  const auto width = static_cast<float>(head_dim);
  for (std::int32_t i = 0; i < half; ++i) {
    const auto even = static_cast<float>(2 * i);
    frequency.push_back(1.0F / std::pow(10000.0F, even / width));
    base.push_back((even + 0.4F * width) / (1.4F * width));
  }
  for (std::int32_t t = 0; t < positions; ++t) {
    for (std::int32_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(t) * frequency[static_cast<std::size_t>(i)];
      tables.cosine.push_back(std::cos(static_cast<double>(angle)));
      tables.sine.push_back(std::sin(static_cast<double>(angle)));
    }
  }
  for (std::int32_t offset = -positions; offset < positions; ++offset) {
    const float power = static_cast<float>(offset) / 512.0F;
    for (std::int32_t i = 0; i < half; ++i) {
      tables.factor.push_back(std::pow(static_cast<double>(base[static_cast<std::size_t>(i)]),
                                       static_cast<double>(power)));
    }
  }
  return tables;
}

}  // namespace toto
