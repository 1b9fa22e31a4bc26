// SPDX-License-Identifier: Apache-2.0
// Any bytes as config.json: refused with an Error, or a configuration that everything behind it can
// compute with and that survives being written and read again.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/registry.h"
#include "models/toto1/family.h"
#include "models/toto1/tensors.h"
#include "models/toto2/family.h"
#include "models/toto2/tensors.h"
#include "toto/error.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void use(const toto::Toto1Config& config) {
  require(config.head_dim() >= 2 && config.head_dim() % 2 == 0);
  std::int32_t space_layers = 0;
  for (std::int32_t i = 0; i < config.num_layers; ++i) space_layers += config.is_space_layer(i);
  const std::int32_t every = config.spacewise_every_n_layers;
  require(space_layers == (every < 0 ? 0 : config.num_layers / every));
  std::int64_t parameters = 0;
  for (const toto::ExpectedTensor& tensor : toto::tensor_list(config).tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    require(count > 0);
    parameters += count;
  }
  require(parameters > 0);
  std::vector<std::string> warnings;
  require(toto::parse_toto1_config(toto::to_json(config), "again", true, warnings) == config);
  require(warnings.empty());
}

void use(const toto::Toto2Config& config) {
  require(config.qk_dim % 4 == 0 && config.v_dim > 0 && config.d_ff > 0);
  require(config.heads_per_group() * config.num_groups == config.num_heads);
  std::int32_t variate_layers = 0;
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    variate_layers += config.is_variate_layer(i);
    require(std::isfinite(toto::tau(config, 2 * i)) && std::isfinite(toto::tau(config, 2 * i + 1)));
  }
  require(variate_layers ==
          config.num_layers / config.layer_group_size * config.variate_layers_per_group);
  std::int64_t parameters = 0;
  for (const toto::ExpectedTensor& tensor : toto::tensor_list(config).tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    require(count > 0);
    parameters += count;
  }
  require(parameters > 0);
  std::vector<std::string> warnings;
  require(toto::parse_toto2_config(toto::to_json(config), "again", true, warnings) == config);
  require(warnings.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try {
    std::vector<std::string> warnings;
    const auto config = toto::parse_model_config(text, "input", false, warnings);
    if (const auto* toto1 = dynamic_cast<const toto::Toto1Configuration*>(config.get())) {
      use(toto1->config());
    } else {
      use(dynamic_cast<const toto::Toto2Configuration&>(*config).config());
    }
  } catch (const toto::Error& error) {
    require(error.status() == toto::ExitStatus::bad_config && !error.code().empty());
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
