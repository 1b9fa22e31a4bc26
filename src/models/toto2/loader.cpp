// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/loader.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace toto::toto2 {
namespace {

// Spec B3: exp(0.8 ln sqrt(2/(1 - 1/pi)) + 0.2 ln 2).
const double kSiluGain = std::exp(0.8 * std::log(std::sqrt(2.0 / (1.0 - 1.0 / std::numbers::pi))) +
                                  0.2 * std::numbers::ln2);

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

/// Values [p][9] become [9][p]: what the quantile operation works on lies together.
void by_quantile(FoldedMatrix& matrix, std::int32_t patch) {
  const std::vector<double> bias = matrix.bias;
  matrix.order.resize(static_cast<std::size_t>(matrix.out));
  for (std::int32_t p = 0; p < patch; ++p) {
    for (std::int32_t q = 0; q < kToto2Quantiles; ++q) {
      const std::int32_t from = p * kToto2Quantiles + q;
      const std::int32_t to = q * patch + p;
      matrix.order[static_cast<std::size_t>(to)] = from;
      matrix.bias[static_cast<std::size_t>(to)] = bias[static_cast<std::size_t>(from)];
    }
  }
}

/// The queries, which come first, [heads][scale.size()], times `scale`.
void scale_queries(FoldedMatrix& qkv, std::span<const double> scale, std::int32_t heads) {
  const std::size_t queries = static_cast<std::size_t>(heads) * scale.size();
  qkv.rows.assign(static_cast<std::size_t>(qkv.out), 1.0);
  for (std::size_t row = 0; row < queries; ++row) {
    qkv.rows[row] = scale[row % scale.size()];
    if (!qkv.bias.empty()) qkv.bias[row] *= qkv.rows[row];
  }
}

/// Rows [half, 2 half) come first.
void swap_halves(FoldedMatrix& matrix) {
  const std::int32_t half = matrix.out / 2;
  matrix.order.resize(static_cast<std::size_t>(matrix.out));
  std::iota(matrix.order.begin(), matrix.order.end(), 0);
  std::rotate(matrix.order.begin(), matrix.order.begin() + half, matrix.order.end());
  if (!matrix.bias.empty()) {
    std::rotate(matrix.bias.begin(), matrix.bias.begin() + half, matrix.bias.end());
  }
}

}  // namespace

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

std::span<float> Loader::memory(std::size_t count) {
  if (room_ < count) {
    room_ = 0;
    memory_.reset();  // before the next: not both at once
    memory_ = std::make_unique_for_overwrite<float[]>(count);
    room_ = count;
  }
  return {memory_.get(), count};
}

FoldedMatrix Loader::read(const std::string& name, std::int32_t out, std::int32_t in, bool bias,
                          double by) {
  FoldedMatrix matrix;
  const std::span<float> values =
      memory(static_cast<std::size_t>(out) * static_cast<std::size_t>(in));
  weights_.read(name + ".weight", values);
  matrix.stored = values;
  matrix.out = out;
  matrix.in = in;
  matrix.before = by;
  if (bias) {
    std::vector<float> stored(static_cast<std::size_t>(out));
    weights_.read(name + ".bias", stored);
    matrix.bias.assign(stored.begin(), stored.end());
    for (double& b : matrix.bias) b *= by;
  }
  return matrix;
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
  // The head's last layers are divided by their fan-in, all others by its root.
  const auto fan_in = [&](std::int32_t columns) {
    return head ? static_cast<double>(columns) : std::sqrt(static_cast<double>(columns));
  };
  const auto upload_last = [&](FoldedMatrix& matrix, Epilogue use) {
    if (head) by_quantile(matrix, config_.patch_size);
    return backend_.upload_folded_matrix(matrix, use, exact);
  };
  ResidualMlp mlp;
  {
    FoldedMatrix first =
        read(name + ".linear1", inner, in, true, 1 / std::sqrt(static_cast<double>(in)));
    first.columns = gain;
    mlp.first = backend_.upload_folded_matrix(first, Epilogue::store, exact);
  }
  {
    FoldedMatrix second =
        read(name + ".linear2", out, inner, true, 1 / fan_in(inner) / std::numbers::sqrt2);
    second.after = kSiluGain;  // of its input: not of the bias
    mlp.second = upload_last(second, Epilogue::store);
  }
  {
    FoldedMatrix skip =
        read(name + ".skip_proj", out, in, true, 1 / fan_in(in) / std::numbers::sqrt2);
    skip.columns = gain;
    mlp.skip = upload_last(skip, Epilogue::residual);
  }
  return mlp;
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
  const auto branch = [&](const std::string& matrix, std::int32_t in, bool bias,
                          const std::string& of) {
    const double multiplier = vector(name + of).front();
    const double by = multiplier / factor / std::sqrt(static_cast<double>(in));
    factor /= std::sqrt(1 + multiplier * multiplier);
    return backend_.upload_folded_matrix(read(name + matrix, width, in, bias, by),
                                         Epilogue::residual, false);
  };
  const double of_input = 1 / std::sqrt(static_cast<double>(width));
  layer.epsilon1 = config_.norm_eps / (factor * factor);
  {
    FoldedMatrix qkv =
        read(name + "attn.in_proj", config_.qkv_rows(), width, config_.attn_bias, of_input);
    const std::vector<float> gains = gain(name + "norm1.weight");
    qkv.columns = gains;
    const std::vector<double> scale = query_scale(name);
    if (config_.qk_norm) {
      layer.norm = head_norm(name, scale);
    } else {
      scale_queries(qkv, scale, config_.num_heads);
    }
    layer.qkv = backend_.upload_folded_matrix(qkv, Epilogue::store, false);
  }
  layer.out = branch("attn.out_proj", attended, config_.attn_bias, "attn_tau");
  layer.epsilon2 = config_.norm_eps / (factor * factor);
  {
    FoldedMatrix in = read(name + "ffn.fc1", 2 * config_.d_ff, width, config_.mlp_bias, of_input);
    const std::vector<float> gains = gain(name + "norm2.weight");
    in.columns = gains;
    swap_halves(in);  // the file has the values first; Epilogue::gated wants the gate first
    layer.mlp_in = backend_.upload_folded_matrix(in, Epilogue::gated, false);
  }
  layer.mlp_out = branch("ffn.fc2", config_.d_ff, config_.mlp_bias, "mlp_tau");
  layer.factor = factor;
  return layer;
}

}  // namespace toto::toto2
