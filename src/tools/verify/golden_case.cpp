// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/input_file.h"
#include "core/json.h"
#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/synthetic.h"

namespace toto {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTextLimit = std::size_t{1} << 20;

template <typename T>
std::vector<T> read_as(const SafetensorsFile& file, const std::string& name, StoredType type,
                       const std::vector<std::int64_t>& shape) {
  const SafetensorsEntry& entry = file.at(name);
  if (entry.type != type || entry.shape != shape) {
    refuse_golden(file.path(),
                  fmt::format("tensor {} has an unexpected type or shape [{}], expected [{}]", name,
                              fmt::join(entry.shape, ","), fmt::join(shape, ",")));
  }
  std::vector<T> values(entry.bytes() / sizeof(T));
  file.read_bytes(name, std::as_writable_bytes(std::span(values)));
  return values;
}

std::shared_ptr<const WeightSource> read_weights(const fs::path& folder,
                                                 const Configuration& config) {
  std::error_code ignored;
  if (fs::exists(folder / "model.safetensors", ignored)) {
    return open_safetensors((folder / "model.safetensors").string());
  }
  const std::string path = (folder / "weights.json").string();
  const auto json = parse_json(read_text_file(path, kTextLimit, ExitStatus::bad_data),
                               ExitStatus::bad_data, path);
  if (!json.contains("weight_seed") || !json["weight_seed"].is_number_unsigned() ||
      !json.contains("tensor_order") || !json["tensor_order"].is_array()) {
    refuse_golden(path, "expected weight_seed and tensor_order");
  }
  std::vector<std::string> order;
  for (const auto& name : json["tensor_order"]) {
    if (!name.is_string()) refuse_golden(path, "expected names in tensor_order");
    order.push_back(name.get<std::string>());
  }
  const auto seed = json["weight_seed"].get<std::uint64_t>();
  return synthesise_weights(
      synthetic_tensors(config.tensors(), order, fmt::format("synthetic weights, seed {}", seed)),
      seed, config.to_json());
}

void read_inputs(const fs::path& folder, GoldenFolder& g) {
  const SafetensorsFile file((folder / "inputs.safetensors").string());
  const SafetensorsEntry& series = file.at("series");
  if (series.shape.size() != 3 || series.elements() == 0) {
    refuse_golden(file.path(), "expected series of shape [B,V,T], none of them 0");
  }
  g.batch = static_cast<std::size_t>(series.shape[0]);
  g.variates = static_cast<std::size_t>(series.shape[1]);
  g.steps = static_cast<std::size_t>(series.shape[2]);
  g.values = read_as<float>(file, "series", StoredType::f32, series.shape);
  g.mask = read_as<std::uint8_t>(file, "padding_mask", StoredType::u8, series.shape);
  g.groups = read_as<std::int32_t>(file, "id_mask", StoredType::i32, series.shape);
  if (const SafetensorsEntry* future = file.find("future_exogenous"); future != nullptr) {
    if (future->shape.size() != 3 || future->shape[1] >= series.shape[1]) {
      refuse_golden(file.path(), "expected future_exogenous of shape [B,E,horizon] with E below V");
    }
    g.exogenous = static_cast<std::size_t>(future->shape[1]);
    g.future_exogenous =
        read_as<float>(file, "future_exogenous", StoredType::f32,
                       {series.shape[0], future->shape[1], static_cast<std::int64_t>(g.horizon)});
  }
  for (std::size_t b = 0; b < g.batch; ++b) g.ids.push_back(fmt::format("{}", b));
}

}  // namespace

const GoldenTensor* GoldenFolder::find(const std::string& name) const {
  for (const GoldenTensor& t : expected) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

const GoldenTensor& GoldenFolder::at(const std::string& name,
                                     const std::vector<std::int64_t>& shape) const {
  const GoldenTensor* tensor = find(name);
  if (tensor == nullptr) refuse_golden(path, fmt::format("expected.safetensors lacks {}", name));
  if (tensor->shape != shape) {
    refuse_golden(path, fmt::format("{} has shape [{}], expected [{}]", name,
                                    fmt::join(tensor->shape, ","), fmt::join(shape, ",")));
  }
  return *tensor;
}

Series GoldenFolder::series(std::size_t b) const {
  const std::size_t cells = variates * steps;
  Series s;
  s.id = ids[b];
  s.variates = variates;
  s.steps = steps;
  s.values = std::span(values).subspan(b * cells, cells);
  s.mask = std::span(mask).subspan(b * cells, cells);
  s.groups = std::span(groups).subspan(b * cells, cells);
  s.exogenous = exogenous;
  s.future_exogenous =
      std::span(future_exogenous).subspan(b * exogenous * horizon, exogenous * horizon);
  return s;
}

GoldenFolder read_golden_folder(const Configuration& config, const std::string& path) {
  const fs::path folder(path);
  GoldenFolder g;
  g.path = path;
  g.weights = read_weights(folder, config);

  const SafetensorsFile expected((folder / "expected.safetensors").string());
  for (const SafetensorsEntry& entry : expected.entries()) {
    GoldenTensor tensor{entry.name, entry.shape, std::vector<float>(entry.elements())};
    expected.read_floats(entry.name, tensor.values);
    g.expected.push_back(std::move(tensor));
  }
  const GoldenTensor* mean = g.find("mean.cached");
  if (mean == nullptr || mean->shape.size() != 3 || mean->values.empty()) {
    refuse_golden(path, "expected.safetensors lacks mean.cached of shape [B,V,horizon]");
  }
  g.horizon = static_cast<std::size_t>(mean->shape[2]);
  read_inputs(folder, g);
  return g;
}

}  // namespace toto
