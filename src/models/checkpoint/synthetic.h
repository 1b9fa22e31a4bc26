// SPDX-License-Identifier: Apache-2.0
// Hash weights (docs/verification.md): reproducible numbers of a sensible size, so that a model of
// any shape can be had without a file. They are no trained model; whatever is made of them is
// labelled.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/checkpoint/weights.h"

namespace toto {

/// The key in a file's __metadata__ that marks its weights as synthetic.
inline constexpr std::string_view kSyntheticKey = "toto.synthetic";

/// Elements `first`, `first + 1`, ... of the tensor with seed `tensor_seed`.
void fill_synthetic(std::uint64_t tensor_seed, const SyntheticScale& scale, std::uint64_t first,
                    std::span<float> out);

/// A tensor to be made: of the i-th of a list the seed is 1000*seed + i.
struct SyntheticTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  SyntheticScale scale;
};

/// Hash weights in memory. `identity` tells models apart: it goes into the content hash. Throws
/// Error (65) duplicate_key.
std::shared_ptr<const WeightSource> synthesise_weights(std::vector<SyntheticTensor> tensors,
                                                       std::uint64_t seed,
                                                       std::string_view identity);

/// Those that every checkpoint of a model has, in state order.
std::vector<SyntheticTensor> synthetic_tensors(const TensorList& list);
/// Those of these names, in their order. Names are published ones, alternatives, or ones of
/// TensorList::together. Throws Error (65) unknown_tensor with `where`.
std::vector<SyntheticTensor> synthetic_tensors(const TensorList& list,
                                               std::span<const std::string> names,
                                               std::string_view where);

}  // namespace toto
