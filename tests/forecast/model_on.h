// SPDX-License-Identifier: Apache-2.0
// A model on a backend of the test's own.
#pragma once

#include <memory>

#include "model/spare.h"
#include "requests.h"

namespace toto::test {

inline std::shared_ptr<Model::Impl> model_on(const std::shared_ptr<Backend>& backend) {
  const WeightTable weights(
      synthesise_weights(odd_config(), 5, default_tensor_order(odd_config(), false)), odd_config());
  auto impl = std::make_shared<Model::Impl>();
  impl->info.name = "small";
  impl->content_hash = "small";
  impl->net = std::make_unique<Toto1>(odd_config(), weights, backend, Execution{});
  return impl;
}

}  // namespace toto::test
