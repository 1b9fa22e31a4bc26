// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
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

std::vector<SyntheticTensor> synthetic_tensors(const TensorList& list) {
  std::vector<SyntheticTensor> tensors;
  tensors.reserve(list.tensors.size());
  for (const ExpectedTensor& tensor : list.tensors) {
    tensors.push_back({tensor.name, tensor.shape, tensor.scale});
  }
  return tensors;
}

std::vector<SyntheticTensor> synthetic_tensors(const TensorList& list,
                                               std::span<const std::string> names,
                                               std::string_view where) {
  std::map<std::string_view, const ExpectedTensor*> known;
  for (const auto* part : {&list.tensors, &list.together}) {
    for (const ExpectedTensor& tensor : *part) {
      known.emplace(tensor.name, &tensor);
      if (!tensor.alternative.empty()) known.emplace(tensor.alternative, &tensor);
    }
  }
  std::vector<SyntheticTensor> tensors;
  tensors.reserve(names.size());
  for (const std::string& name : names) {
    const auto at = known.find(name);
    if (at == known.end()) {
      throw Error(ExitStatus::bad_data, "unknown_tensor",
                  fmt::format("the model has no tensor {}", quote(name)), where);
    }
    tensors.push_back({name, at->second->shape, at->second->scale});
  }
  return tensors;
}

}  // namespace toto
