// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/json.h"
#include "core/sha256.h"
#include "models/checkpoint/weights.h"

namespace toto {
namespace {

class SyntheticWeights final : public WeightSource {
 public:
  SyntheticWeights(std::vector<SyntheticTensor> tensors, std::uint64_t seed,
                   std::string_view identity)
      : seed_(seed), description_(fmt::format("synthetic weights, seed {}", seed)) {
    Sha256 hash;
    hash.update(fmt::format("{}\n{}\n", identity, seed));
    for (SyntheticTensor& tensor : tensors) {
      if (!index_.emplace(tensor.name, tensors_.size()).second) {
        throw Error(ExitStatus::bad_data, "duplicate_key",
                    fmt::format("tensor {} is listed twice", quote(tensor.name)), description_);
      }
      hash.update(tensor.name + '\n');
      tensors_.push_back({std::move(tensor.name), std::move(tensor.shape), DType::f32});
      scales_.push_back(tensor.scale);
    }
    content_hash_ = hash.hex();
  }

  [[nodiscard]] std::span<const TensorInfo> tensors() const override { return tensors_; }
  [[nodiscard]] const TensorInfo* find(std::string_view name) const override {
    const auto at = index_.find(name);
    return at == index_.end() ? nullptr : &tensors_[at->second];
  }
  void read(std::string_view name, std::span<float> out) const override {
    const auto at = index_.find(name);
    if (at == index_.end()) {
      throw Error(ExitStatus::bad_data, "missing_tensor",
                  fmt::format("there is no tensor {}", quote(name)), description_);
    }
    const TensorInfo& tensor = tensors_[at->second];
    if (out.size() != static_cast<std::size_t>(tensor.elements())) {
      throw Error(ExitStatus::internal, "internal",
                  fmt::format("{} was read into memory for {}", name, out.size()));
    }
    fill_synthetic(1000 * seed_ + at->second, scales_[at->second], 0, out);
  }
  [[nodiscard]] const std::string& description() const override { return description_; }
  [[nodiscard]] bool synthetic() const override { return true; }
  [[nodiscard]] std::string content_hash() const override { return content_hash_; }

 private:
  std::uint64_t seed_;
  std::string description_;
  std::string content_hash_;
  std::vector<TensorInfo> tensors_;
  std::vector<SyntheticScale> scales_;  // of each tensor
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace

SyntheticScale synthetic_scale(std::string_view name, std::span<const std::int64_t> shape) {
  if (name.ends_with("norm1.scale") || name.ends_with("norm2.scale")) return {0.4, 1.0};
  if (shape.size() == 2) return {3.0 / std::sqrt(static_cast<double>(shape[1])), 0.0};
  if (name.ends_with("_variate_label")) return {2.0, 0.0};
  return {0.4, 0.0};
}

void fill_synthetic(std::uint64_t tensor_seed, const SyntheticScale& scale, std::uint64_t first,
                    std::span<float> out) {
  constexpr std::uint32_t kStep = 0x85EBCA6BU;
  constexpr std::size_t kBlock = 4096;  // counted in 32 bits, as the hash is: so that it vectorises
  for (std::size_t begin = 0; begin < out.size(); begin += kBlock) {
    const std::uint32_t start = static_cast<std::uint32_t>(tensor_seed + 1) * 0x9E3779B9U +
                                static_cast<std::uint32_t>(first + begin) * kStep;
    const auto count = static_cast<std::uint32_t>(std::min(kBlock, out.size() - begin));
    float* block = out.data() + begin;
    for (std::uint32_t j = 0; j < count; ++j) {
      std::uint32_t s = start + j * kStep;
      s = (s ^ s >> 16) * 0x7FEB352DU;
      s = (s ^ s >> 15) * 0x846CA68BU;
      s ^= s >> 16;
      // s / 2^32 - 1/2 without an unsigned conversion, which few vector units have.
      const double u = static_cast<double>(static_cast<std::int32_t>(s ^ 0x80000000U)) * 0x1p-32;
      block[j] = static_cast<float>(scale.base + scale.amplitude * u);
    }
  }
}

std::shared_ptr<const WeightSource> synthesise_weights(std::vector<SyntheticTensor> tensors,
                                                       std::uint64_t seed,
                                                       std::string_view identity) {
  return std::make_shared<SyntheticWeights>(std::move(tensors), seed, identity);
}

std::shared_ptr<const WeightSource> synthesise_weights(const Toto1Config& config,
                                                       std::uint64_t seed,
                                                       std::vector<std::string> order) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    shapes.emplace(tensor.name, tensor.shape);
    if (!tensor.alternative.empty()) shapes.emplace(tensor.alternative, tensor.shape);
  }
  for (const std::string_view label : {kTargetLabel, kExogenousLabel}) {
    shapes.emplace(label, std::vector<std::int64_t>{config.embed_dim});
  }
  std::vector<SyntheticTensor> tensors;
  for (std::string& name : order) {
    const auto shape = shapes.find(name);
    if (shape == shapes.end()) {
      throw Error(ExitStatus::bad_data, "unknown_tensor",
                  fmt::format("the model has no tensor {}", quote(name)),
                  fmt::format("synthetic weights, seed {}", seed));
    }
    const SyntheticScale scale = synthetic_scale(name, shape->second);
    tensors.push_back({std::move(name), shape->second, scale});
  }
  return synthesise_weights(std::move(tensors), seed, to_json(config));
}

std::vector<SyntheticTensor> synthetic_tensors(const Toto1Config& config) {
  std::vector<SyntheticTensor> tensors;
  for (ExpectedTensor& tensor : expected_tensors(config)) {
    const SyntheticScale scale = synthetic_scale(tensor.name, tensor.shape);
    tensors.push_back({std::move(tensor.name), std::move(tensor.shape), scale});
  }
  return tensors;
}

std::vector<std::string> default_tensor_order(const Toto1Config& config, bool labels) {
  std::vector<std::string> order;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    order.push_back(tensor.alternative.empty() ? tensor.name : tensor.alternative);
  }
  if (labels) {
    order.emplace_back(kTargetLabel);
    order.emplace_back(kExogenousLabel);
  }
  return order;
}

}  // namespace toto
