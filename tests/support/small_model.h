// SPDX-License-Identifier: Apache-2.0
// A small model with hash weights, and series to forecast with it.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/backend_choice.h"
#include "models/model_impl.h"
#include "models/toto1/toto1.h"
#include "support/toto1_weights.h"
#include "toto/forecast.hpp"

namespace toto::test {

/// The model of spec C5.
inline Toto1Config spec_config() {
  Toto1Config c;
  c.patch_size = 8;
  c.embed_dim = 32;
  c.num_layers = 4;
  c.num_heads = 2;
  c.mlp_hidden_dim = 48;
  c.spacewise_every_n_layers = 4;
  c.spacewise_first = false;
  c.components = 3;
  return c;
}

/// On a backend of the test's own.
inline std::shared_ptr<Model::Impl> impl_on(std::shared_ptr<Backend> backend,
                                            const Toto1Config& config, bool labels = false,
                                            const Execution& execution = {},
                                            std::uint64_t seed = 0) {
  const WeightTable weights(toto1_weights(config, seed, toto1_order(config, labels)),
                            tensor_list(config));
  auto impl = std::make_shared<Model::Impl>();
  impl->info.name = "small";
  impl->content_hash = "small";
  impl->configuration = to_json(config);
  impl->net = std::make_unique<Toto1>(config, weights, std::move(backend), execution);
  return impl;
}

inline std::shared_ptr<Model::Impl> make_impl(const Toto1Config& config, bool labels = false,
                                              const Execution& execution = {},
                                              std::uint64_t seed = 0,
                                              const LoadOptions& options = {}) {
  auto impl = impl_on(make_backend(options), config, labels, execution, seed);
  impl->mode = options.mode.value_or(Mode::reduce_overhead);
  impl->precision = options.precision;
  return impl;
}

inline Model make_model(const Toto1Config& config, bool labels = false,
                        const Execution& execution = {}, std::uint64_t seed = 0,
                        const LoadOptions& options = {}) {
  return Model(make_impl(config, labels, execution, seed, options));
}

/// A series that owns its values.
struct OwnedSeries {
  std::string id;
  std::size_t variates = 1;
  std::vector<float> values;
  std::vector<std::uint8_t> mask;
  std::vector<std::int32_t> groups;
  std::size_t exogenous = 0;
  std::vector<float> future;
  std::vector<std::uint8_t> future_mask;

  [[nodiscard]] Series view() const {
    Series s;
    s.id = id;
    s.variates = variates;
    s.steps = values.size() / variates;
    s.values = values;
    s.mask = mask;
    s.groups = groups;
    s.exogenous = exogenous;
    s.future_exogenous = future;
    s.future_mask = future_mask;
    return s;
  }
};

/// Something with a season, a trend and a level that depends on `which`.
inline OwnedSeries wave(std::size_t which, std::size_t steps, std::size_t variates = 1) {
  OwnedSeries s;
  s.id = "wave-" + std::to_string(which);
  s.variates = variates;
  for (std::size_t v = 0; v < variates; ++v) {
    for (std::size_t t = 0; t < steps; ++t) {
      const double x = static_cast<double>(t) * (0.21 + 0.05 * static_cast<double>(v));
      s.values.push_back(static_cast<float>(std::sin(x + static_cast<double>(which)) * 3 +
                                            0.02 * x + static_cast<double>(which * 10 + v)));
    }
  }
  return s;
}

}  // namespace toto::test
