// SPDX-License-Identifier: Apache-2.0
#include "models/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "core/json.h"
#include "models/toto1/family.h"
#include "models/toto2/family.h"

namespace toto {
namespace {

/// The oldest first. Listed, not registered by static objects: a linker drops those of a static
/// library that nothing refers to.
class Families {
 public:
  void add(Family family) {
    const std::scoped_lock turn(mutex_);
    for (const auto& known : all_) {
      if (known->name != family.name) continue;
      throw Error(ExitStatus::internal, "internal",
                  fmt::format("the family {} is registered twice", quote(family.name)));
    }
    all_.push_back(std::make_shared<const Family>(std::move(family)));
  }
  [[nodiscard]] std::vector<std::shared_ptr<const Family>> all() const {
    const std::scoped_lock turn(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Family>> all_ = {
      std::make_shared<const Family>(toto1_family()),
      std::make_shared<const Family>(toto2_family())};
};

Families& families() {
  static Families all;
  return all;
}

std::vector<std::pair<std::string, std::uint64_t>> count_types(const WeightSource& source) {
  std::array<std::uint64_t, 3> counts = {};
  for (const TensorInfo& tensor : source.tensors())
    ++counts[static_cast<std::size_t>(tensor.dtype)];
  constexpr std::array<std::string_view, 3> kNames = {"F32", "F16", "BF16"};
  std::vector<std::pair<std::string, std::uint64_t>> types;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) types.emplace_back(kNames[i], counts[i]);
  }
  return types;
}

}  // namespace

void register_family(Family family) { families().add(std::move(family)); }

ConfigurationPtr parse_model_config(std::string_view text, std::string_view where, bool strict,
                                    std::vector<std::string>& warnings) {
  const auto all = families().all();
  auto family = all.rend() - 1;
  {
    const JsonTree tree{parse_json(text, ExitStatus::bad_config, where)};
    if (tree.root.is_object()) {
      const auto found = std::find_if(all.rbegin(), all.rend(),
                                      [&](const auto& one) { return one->recognises(tree.root); });
      if (found != all.rend()) family = found;
    }
  }
  return (*family)->parse(text, where, strict, warnings);
}

ModelInfo describe_model(const Configuration& config, const WeightTable& weights) {
  ModelInfo info;
  info.architecture = config.family();
  config.describe(weights, info);
  info.synthetic = weights.source().synthetic();
  info.parameters = weights.parameters();
  info.file_bytes = weights.source().file_bytes();
  info.stored_types = count_types(weights.source());
  for (const std::string& name : weights.unused()) {
    info.warnings.push_back(fmt::format("tensor {} is not used by the model", quote(name)));
  }
  return info;
}

ConfigurationPtr find_preset(std::string_view preset) {
  std::vector<std::string> names;
  for (const auto& family : families().all()) {
    for (const auto& [name, config] : family->presets) {
      if (name == preset) return config;
      names.push_back(name);
    }
  }
  throw Error(ExitStatus::usage, "unknown_preset",
              fmt::format("{} is no preset; there are {}", quote(preset), fmt::join(names, ", ")));
}

}  // namespace toto
