// SPDX-License-Identifier: Apache-2.0
// Hash weights of Toto 1.0 in the order and with the names of the golden cases.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/synthetic.h"
#include "models/toto1/tensors.h"

namespace toto::test {

/// The names in weights.json: published ones, the MLP unfused, the labels last if asked.
inline std::vector<std::string> toto1_order(const Toto1Config& config, bool labels) {
  const TensorList list = tensor_list(config);
  std::vector<std::string> order;
  for (const ExpectedTensor& tensor : list.tensors) {
    order.push_back(tensor.alternative.empty() ? tensor.name : tensor.alternative);
  }
  if (labels) {
    for (const ExpectedTensor& tensor : list.together) order.push_back(tensor.name);
  }
  return order;
}

/// Tensor i of `order` has the seed 1000*seed + i.
inline std::shared_ptr<const WeightSource> toto1_weights(const Toto1Config& config,
                                                         std::uint64_t seed,
                                                         const std::vector<std::string>& order) {
  return synthesise_weights(synthetic_tensors(tensor_list(config), order, "synthetic weights"),
                            seed, to_json(config));
}

}  // namespace toto::test
