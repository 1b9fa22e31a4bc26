// SPDX-License-Identifier: Apache-2.0
// A checkpoint on disk as a source of weights.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "core/json.h"
#include "core/sha256.h"
#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/synthetic.h"
#include "models/checkpoint/weights.h"

namespace toto {
namespace {

/// Spec A2: constants that older files store although they follow from the configuration.
bool is_derived_constant(std::string_view name) {
  return name.ends_with("rotary_emb.freqs") || name.ends_with(".rotary_emb.scale") ||
         name.ends_with(".dummy") || name.find("cached_freqs") != std::string_view::npos ||
         name.find("cached_scales") != std::string_view::npos;
}

std::optional<DType> readable_type(StoredType type) {
  if (type == StoredType::f32) return DType::f32;
  if (type == StoredType::f16) return DType::f16;
  if (type == StoredType::bf16) return DType::bf16;
  return {};
}

class SafetensorsWeights final : public WeightSource {
 public:
  explicit SafetensorsWeights(std::span<const std::string> shards) {
    for (const std::string& path : shards) {
      files_.emplace_back(path);
      add(files_.back(), files_.size() - 1);
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
    description_ = shards.size() == 1
                       ? shards.front()
                       : fmt::format("{} and {} more", shards.front(), shards.size() - 1);
  }

  [[nodiscard]] std::span<const TensorInfo> tensors() const override { return tensors_; }
  [[nodiscard]] const TensorInfo* find(std::string_view name) const override {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &tensors_[at->second];
  }
  void read(std::string_view name, std::span<float> out) const override {
    const auto at = file_of_.find(name);
    files_[at == file_of_.end() ? 0 : at->second].read_floats(name, out);
  }
  [[nodiscard]] const std::string& description() const override { return description_; }
  [[nodiscard]] bool synthetic() const override { return synthetic_; }
  [[nodiscard]] std::string_view unreadable_type(std::string_view name) const override {
    const auto at = file_of_.find(name);
    if (at == file_of_.end()) return {};
    const StoredType type = files_[at->second].at(name).type;
    return readable_type(type) ? std::string_view() : name_of(type);
  }
  [[nodiscard]] std::vector<std::string> left_out() const override {
    std::vector<std::string> names;
    for (const auto& [name, file] : file_of_) {
      if (!by_name_.contains(name)) names.push_back(name);
    }
    return names;
  }
  [[nodiscard]] std::uint64_t file_bytes() const override {
    std::uint64_t sum = 0;
    for (const SafetensorsFile& file : files_) sum += file.file_bytes();
    return sum;
  }
  [[nodiscard]] std::string content_hash() const override {
    if (files_.size() == 1) return files_.front().content_hash();
    Sha256 hash;
    for (const SafetensorsFile& file : files_) hash.update(file.content_hash());
    return hash.hex();
  }

 private:
  void add(const SafetensorsFile& file, std::size_t index) {
    if (file.header().metadata.contains(std::string(kSyntheticKey))) synthetic_ = true;
    for (const SafetensorsEntry& entry : file.entries()) {
      if (!file_of_.emplace(entry.name, index).second) {
        throw Error(ExitStatus::bad_data, "duplicate_key",
                    fmt::format("tensor {} is in two shards", quote(entry.name)), file.path());
      }
      const auto type = readable_type(entry.type);
      if (type && !is_derived_constant(entry.name)) {
        tensors_.push_back({entry.name, entry.shape, *type});
      }
    }
  }

  std::vector<SafetensorsFile> files_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;  // what tensors() lists
  std::map<std::string, std::size_t, std::less<>> file_of_;  // every tensor
  std::string description_;
  bool synthetic_ = false;
};

}  // namespace

std::shared_ptr<const WeightSource> open_safetensors(std::span<const std::string> shards) {
  return std::make_shared<SafetensorsWeights>(shards);
}

std::shared_ptr<const WeightSource> open_safetensors(const std::string& path) {
  return open_safetensors(std::span(&path, 1));
}

}  // namespace toto
