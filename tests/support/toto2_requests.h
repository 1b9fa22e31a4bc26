// SPDX-License-Identifier: Apache-2.0
// Small networks of Toto 2.0 with hash weights, and requests of every kind for them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "models/checkpoint/synthetic.h"
#include "models/toto2/generation.h"
#include "models/toto2/tensors.h"

namespace toto::test {

inline Toto2Config released() {  // the switches of every release, small
  Toto2Config c;
  c.patch_size = 8;
  c.d_model = 32;
  c.num_layers = 4;
  c.num_heads = c.num_groups = 2;
  c.qk_dim = c.v_dim = 16;
  c.d_ff = 88;
  c.layer_group_size = 4;
  c.variate_layers_per_group = 1;
  c.norm_eps = 1e-4;
  c.attn_bias = c.per_dim_scale = c.use_xpos = true;
  c.qk_norm = false;
  c.residual_mult = 0.75;
  c.residual_attn_ratio = 5.136215466577748;
  return c;
}

inline Toto2Config heads_of_64(std::int32_t heads, std::int32_t patch) {  // as every release has
  Toto2Config c = released();
  c.patch_size = patch;
  c.d_model = 64 * heads;
  c.num_heads = c.num_groups = heads;
  c.qk_dim = c.v_dim = 64;
  c.d_ff = 172 * heads;
  return c;
}

inline Toto2Config odd() {  // shared keys, heads wider than a panel, values of another width, norms
  Toto2Config c = released();
  c.patch_size = 5;
  c.d_model = 36;
  c.num_heads = 6;
  c.num_groups = 2;
  c.qk_dim = 264;
  c.v_dim = 7;
  c.d_ff = 51;
  c.layer_group_size = 2;
  c.norm_include_weight = c.qk_norm = c.qk_norm_include_weight = c.mlp_bias = true;
  c.attn_bias = false;
  return c;
}

inline std::unique_ptr<Toto2> network(const Toto2Config& config, std::shared_ptr<Backend> backend,
                                      bool trim = true) {
  const WeightTable weights(
      synthesise_weights(synthetic_tensors(tensor_list(config)), 3, to_json(config)),
      tensor_list(config));
  return std::make_unique<Toto2>(config, weights, std::move(backend), trim);
}

/// A request and what it refers to.
struct Made {
  std::vector<float> values, known;
  std::vector<std::uint8_t> mask, known_mask;
  std::vector<std::int32_t> groups, known_groups;
  toto2::Request request;

  [[nodiscard]] toto2::Request view() const {
    toto2::Request r = request;
    r.values = values;
    r.mask = mask;
    r.groups = groups;
    r.known = known;
    r.known_mask = known_mask;
    r.known_groups = known_groups;
    return r;
  }
};

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  std::int32_t whole(std::int32_t low, std::int32_t high) {
    return std::uniform_int_distribution<std::int32_t>(low, high)(random_);
  }
  std::vector<float> values(std::int32_t count) {
    std::normal_distribution<float> normal(3.0F, 2.0F);
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& v : out) v = normal(random_);
    return out;
  }
  /// Gaps of any length.
  std::vector<std::uint8_t> mask(std::int32_t count, bool gaps) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(count), 1);
    for (std::size_t t = 0; gaps && t < out.size();) {
      t += static_cast<std::size_t>(whole(1, 40));
      const auto end = std::min(out.size(), t + static_cast<std::size_t>(whole(1, 30)));
      for (; t < end; ++t) out[t] = 0;
    }
    return out;
  }
  std::vector<std::int32_t> groups(std::int32_t count) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(count));
    for (std::int32_t& g : out) g = whole(0, 2);
    return out;
  }

 private:
  std::mt19937 random_;
};

inline Made make(Dice& dice, std::int32_t patch, std::int32_t max_variates = 5,
                 std::int32_t max_patches = 12) {
  Made m;
  toto2::Request& r = m.request;
  r.targets = dice.whole(1, max_variates);
  r.steps = dice.whole(1, max_patches * patch);
  r.covariates = dice.whole(0, 2);
  r.known_steps = r.covariates == 0 ? 0 : dice.whole(1, r.steps + patch);
  r.horizon = dice.whole(1, 5 * patch);
  r.block = dice.whole(0, 3) * patch;
  r.has_missing_values = dice.whole(0, 3) != 0;
  r.fallback = dice.whole(0, 1) * 8;
  r.cap = dice.whole(0, 1) * 10.0;
  m.values = dice.values(r.targets * r.steps);
  m.mask = dice.mask(r.targets * r.steps, dice.whole(0, 1) == 1);
  m.groups = dice.groups(r.targets);
  m.known = dice.values(r.covariates * r.known_steps);
  m.known_mask = dice.mask(r.covariates * r.known_steps, true);
  m.known_groups = dice.groups(r.covariates);
  return m;
}

/// Quantiles of every request, block after block.
class Collector final : public toto2::Sink {
 public:
  void block(const toto2::Block& b) override {
    std::vector<double>& to = results[b.request];
    to.insert(to.end(), b.quantiles.begin(), b.quantiles.end());
  }
  std::map<std::size_t, std::vector<double>> results;
};

inline std::vector<std::vector<double>> forecast(const Toto2& net,
                                                 const std::vector<Made>& requests) {
  std::vector<toto2::Request> views;
  for (const Made& m : requests) views.push_back(m.view());
  Collector to;
  toto2::generate(net, views, to);
  std::vector<std::vector<double>> out;
  for (auto& [index, values] : to.results) out.push_back(std::move(values));
  return out;
}

inline std::vector<double> forecast(const Toto2& net, const Made& request) {
  return forecast(net, std::vector<Made>{request}).at(0);
}

inline double distance(const std::vector<double>& found, const std::vector<double>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(found[i] - expected[i]) / (2.0 + std::abs(expected[i])));
  }
  return worst;
}

}  // namespace toto::test
