// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/loader.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace toto::toto2 {
namespace {

// Spec B3: exp(0.8 ln sqrt(2/(1 - 1/pi)) + 0.2 ln 2).
const double kSiluGain = std::exp(0.8 * std::log(std::sqrt(2.0 / (1.0 - 1.0 / std::numbers::pi))) +
                                  0.2 * std::numbers::ln2);

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

/// Rows p*9 + q become rows q*P + p: what the quantile operation works on lies together.
template <typename T>
std::vector<T> by_quantile(const std::vector<T>& rows, std::int32_t patch, std::int32_t width) {
  std::vector<T> out(rows.size());
  for (std::int32_t p = 0; p < patch; ++p) {
    for (std::int32_t q = 0; q < kToto2Quantiles; ++q) {
      std::copy_n(rows.begin() + std::ptrdiff_t{p * kToto2Quantiles + q} * width, width,
                  out.begin() + std::ptrdiff_t{q * patch + p} * width);
    }
  }
  return out;
}

}  // namespace

void Loader::Linear::scale_rows(std::int32_t first, std::int32_t count, double by) {
  const auto from = weights.begin() + std::ptrdiff_t{first} * in;
  std::for_each(from, from + std::ptrdiff_t{count} * in, [by](double& w) { w *= by; });
  if (bias.empty()) return;
  std::for_each(bias.begin() + first, bias.begin() + first + count, [by](double& b) { b *= by; });
}

void Loader::Linear::scale_columns(std::span<const float> gain) {
  if (gain.empty()) return;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= gain[i % gain.size()];
}

std::vector<float> Loader::vector(const std::string& name) const {
  const std::int32_t size =
      name.ends_with("_norm.weight") && name.find(".attn.") != std::string::npos ? config_.qk_dim
      : name.ends_with("per_dim_scale")                                          ? config_.qk_dim
      : name.ends_with("_tau")                                                   ? 1
                                                                                 : config_.d_model;
  std::vector<float> values(static_cast<std::size_t>(size));
  weights_.read(name, values);
  return values;
}

std::vector<float> Loader::gain(const std::string& name) const {
  return config_.norm_include_weight ? vector(name) : std::vector<float>();
}

Loader::Linear Loader::read(const std::string& name, std::int32_t out, std::int32_t in,
                            bool bias) const {
  Linear linear{out, in, {}, {}};
  std::vector<float> values(static_cast<std::size_t>(out) * static_cast<std::size_t>(in));
  weights_.read(name + ".weight", values);
  linear.weights.assign(values.begin(), values.end());
  if (bias) {
    values.resize(static_cast<std::size_t>(out));
    weights_.read(name + ".bias", values);
    linear.bias.assign(values.begin(), values.end());
  }
  return linear;
}

Matrix Loader::upload(const Linear& linear, Epilogue use, bool exact) {
  return backend_.upload_folded_matrix(linear.weights, linear.out, linear.in, linear.bias, use,
                                       exact);
}

ConstView Loader::upload(std::span<const double> values) {
  vectors_.emplace_back(backend_.allocate(values.size() * backend_.element_size()),
                        [&backend = backend_](void* memory) { backend.release(memory); });
  const View to{vectors_.back().get(), backend_.element_type(),
                static_cast<std::int32_t>(values.size()), 1};
  backend_.upload(values, to);
  return to;
}

ResidualMlp Loader::residual_mlp(const std::string& name, std::int32_t out, std::int32_t in,
                                 std::span<const float> gain, bool head, bool exact) {
  const std::int32_t inner = 4 * config_.d_model;
  Linear first = read(name + ".linear1", inner, in, true);
  Linear second = read(name + ".linear2", out, inner, true);
  Linear skip = read(name + ".skip_proj", out, in, true);
  // The head's last layers are divided by their fan-in, all others by its root.
  const auto fan_in = [&](std::int32_t columns) {
    return head ? static_cast<double>(columns) : std::sqrt(static_cast<double>(columns));
  };
  first.scale(1 / std::sqrt(static_cast<double>(in)));
  first.scale_columns(gain);
  second.scale(1 / fan_in(inner) / std::numbers::sqrt2);
  for (double& w : second.weights) w *= kSiluGain;  // of its input: not of the bias
  skip.scale(1 / fan_in(in) / std::numbers::sqrt2);
  skip.scale_columns(gain);
  if (head) {
    for (Linear* last : {&second, &skip}) {
      last->weights = by_quantile(last->weights, config_.patch_size, last->in);
      last->bias = by_quantile(last->bias, config_.patch_size, 1);
    }
  }
  return {upload(first, Epilogue::store, exact), upload(second, Epilogue::store, exact),
          upload(skip, Epilogue::residual, exact)};
}

std::vector<double> Loader::query_scale(const std::string& layer) const {
  std::vector<double> scale(static_cast<std::size_t>(config_.qk_dim), 1.0 / config_.qk_dim);
  if (config_.per_dim_scale) {
    const std::vector<float> stored = vector(layer + "attn._pds.per_dim_scale");
    for (std::size_t i = 0; i < scale.size(); ++i) {
      scale[i] *= softplus(stored[i]) / std::numbers::ln2;
    }
  }
  return scale;
}

HeadNorm Loader::head_norm(const std::string& layer, std::span<const double> query_scale) {
  std::vector<double> query(query_scale.begin(), query_scale.end());
  std::vector<double> key(query.size(), 1.0);
  if (config_.qk_norm_include_weight) {
    const std::vector<float> of_query = vector(layer + "attn.q_norm.weight");
    const std::vector<float> of_key = vector(layer + "attn.k_norm.weight");
    for (std::size_t i = 0; i < key.size(); ++i) {
      query[i] *= of_query[i];
      key[i] *= of_key[i];
    }
  }
  return {upload(query), upload(key), config_.norm_eps};
}

Layer Loader::layer(std::int32_t index, double& factor) {
  const std::string name = "transformer.layers." + std::to_string(index) + ".";
  const std::int32_t width = config_.d_model;
  const std::int32_t attended = config_.num_heads * config_.v_dim;
  Layer layer;
  layer.variate = config_.is_variate_layer(index);
  // The stream is `factor` times what is carried: a branch is divided by the factor after it.
  const auto branch = [&](const std::string& of, Linear& last) {
    const double multiplier = vector(name + of).front();
    last.scale(multiplier / factor / std::sqrt(static_cast<double>(last.in)));
    factor /= std::sqrt(1 + multiplier * multiplier);
  };
  layer.epsilon1 = config_.norm_eps / (factor * factor);
  {
    Linear qkv = read(name + "attn.in_proj", config_.qkv_rows(), width, config_.attn_bias);
    qkv.scale(1 / std::sqrt(static_cast<double>(width)));
    qkv.scale_columns(gain(name + "norm1.weight"));
    const std::vector<double> scale = query_scale(name);
    if (config_.qk_norm) {
      layer.norm = head_norm(name, scale);
    } else {
      for (std::int32_t row = 0; row < config_.num_heads * config_.qk_dim; ++row) {
        qkv.scale_rows(row, 1, scale[static_cast<std::size_t>(row % config_.qk_dim)]);
      }
    }
    layer.qkv = upload(qkv, Epilogue::store, false);
  }
  {
    Linear out = read(name + "attn.out_proj", width, attended, config_.attn_bias);
    branch("attn_tau", out);
    layer.out = upload(out, Epilogue::residual, false);
  }
  layer.epsilon2 = config_.norm_eps / (factor * factor);
  {
    Linear in = read(name + "ffn.fc1", 2 * config_.d_ff, width, config_.mlp_bias);
    in.scale(1 / std::sqrt(static_cast<double>(width)));
    in.scale_columns(gain(name + "norm2.weight"));
    // The file has the values first; Epilogue::gated wants the gate first.
    std::rotate(in.weights.begin(), in.weights.begin() + std::ptrdiff_t{config_.d_ff} * width,
                in.weights.end());
    if (!in.bias.empty()) {
      std::rotate(in.bias.begin(), in.bias.begin() + config_.d_ff, in.bias.end());
    }
    layer.mlp_in = upload(in, Epilogue::gated, false);
  }
  {
    Linear out = read(name + "ffn.fc2", width, config_.d_ff, config_.mlp_bias);
    branch("mlp_tau", out);
    layer.mlp_out = upload(out, Epilogue::residual, false);
  }
  layer.factor = factor;
  return layer;
}

}  // namespace toto::toto2
