// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/golden_folder.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <span>

#include "core/input_file.h"
#include "core/json.h"
#include "models/checkpoint/resolve.h"
#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/synthetic.h"
#include "models/golden.h"

namespace toto {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kTextLimit = std::size_t{1} << 20;
constexpr std::int64_t kMaxSteps = 1 << 24;

json read_json(const fs::path& path) {
  const std::string name = path.string();
  return parse_json(read_text_file(name, kTextLimit, ExitStatus::bad_data), ExitStatus::bad_data,
                    name);
}

/// The field, which must convert to T; anything else is a malformed folder.
template <typename T>
T field(const json& object, const std::string& key, const std::string& where) {
  try {
    return object.at(key).get<T>();
  } catch (const json::exception&) {
    refuse_golden(where, fmt::format("\"{}\" is missing or of another type", key));
  }
}

template <typename T>
std::vector<T> read_as(const SafetensorsFile& file, const std::string& name, StoredType type,
                       const std::vector<std::int64_t>& shape) {
  const SafetensorsEntry& entry = file.at(name);
  if (entry.type != type || entry.shape != shape) {
    refuse_golden(file.path(), fmt::format("tensor {} has an unexpected type or shape", name));
  }
  std::vector<T> values(entry.bytes() / sizeof(T));
  file.read_bytes(name, std::as_writable_bytes(std::span(values)));
  return values;
}

std::shared_ptr<const WeightSource> read_weights(const fs::path& folder,
                                                 const Toto2Config& config) {
  if (!fs::exists(folder / "weights.json")) {
    const ResolvedModel files = resolve_model({.model = folder.string()});
    return open_safetensors(std::span(files.weights));
  }
  const std::string path = (folder / "weights.json").string();
  const json listed = read_json(path);
  const auto order = field<std::vector<std::string>>(listed, "tensor_order", path);
  const auto shapes = field<std::vector<std::vector<std::int64_t>>>(listed, "shapes", path);
  const auto amplitudes = field<std::vector<double>>(listed, "amp", path);
  const auto bases = field<std::vector<double>>(listed, "base", path);
  if (shapes.size() != order.size() || amplitudes.size() != order.size() ||
      bases.size() != order.size()) {
    refuse_golden(path, "expected a shape, an amplitude and a base for every tensor");
  }
  std::vector<SyntheticTensor> tensors;
  tensors.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    tensors.push_back({order[i], shapes[i], {amplitudes[i], bases[i]}});
  }
  return synthesise_weights(std::move(tensors), field<std::uint64_t>(listed, "weight_seed", path),
                            to_json(config));
}

std::int32_t checked_size(std::int64_t size, const std::string& where) {
  if (size < 1 || size > kMaxSteps) refuse_golden(where, "a size of the inputs is out of range");
  return static_cast<std::int32_t>(size);
}

void read_inputs(const fs::path& folder, Toto2GoldenFolder& g) {
  const SafetensorsFile file((folder / "inputs.safetensors").string());
  const std::vector<std::int64_t> shape = file.at("target").shape;
  if (shape.size() != 3) refuse_golden(file.path(), "expected target of shape [B,V,T]");
  g.batch = checked_size(shape[0], file.path());
  g.targets = checked_size(shape[1], file.path());
  g.steps = checked_size(shape[2], file.path());
  g.values = read_as<float>(file, "target", StoredType::f32, shape);
  g.mask = read_as<std::uint8_t>(file, "target_mask", StoredType::u8, shape);
  g.groups = read_as<std::int32_t>(file, "series_ids", StoredType::i32, {shape[0], shape[1]});
  const SafetensorsEntry* known = file.find("known_dynamic");
  if (known == nullptr) return;
  const std::vector<std::int64_t> wide = known->shape;
  if (wide.size() != 3 || wide[0] != shape[0]) {
    refuse_golden(file.path(), "expected known_dynamic of shape [B,E,n]");
  }
  g.covariates = checked_size(wide[1], file.path());
  g.known_steps = checked_size(wide[2], file.path());
  g.known = read_as<float>(file, "known_dynamic", StoredType::f32, wide);
  g.known_mask = read_as<std::uint8_t>(file, "known_dynamic_mask", StoredType::u8, wide);
  g.known_groups =
      read_as<std::int32_t>(file, "known_dynamic_series_ids", StoredType::i32, {wide[0], wide[1]});
}

void read_calls(const fs::path& folder, Toto2GoldenFolder& g) {
  const std::string path = (folder / "case.json").string();
  for (const json& listed : field<std::vector<json>>(read_json(path), "calls", path)) {
    Toto2GoldenCall call;
    call.name = field<std::string>(listed, "name", path);
    call.horizon = checked_size(field<std::int64_t>(listed, "horizon", path), path);
    if (listed.contains("decode_block_size") && !listed["decode_block_size"].is_null()) {
      call.block = field<std::int32_t>(listed, "decode_block_size", path);
    }
    call.has_missing_values = field<bool>(listed, "has_missing_values", path);
    call.fallback = field<std::int32_t>(listed, "scaler_fallback_min_obs", path);
    call.cap = field<double>(listed, "quantile_real_cap_k", path);
    g.calls.push_back(std::move(call));
  }
  if (g.calls.empty()) refuse_golden(path, "there is no call");
}

void read_expected(const fs::path& folder, Toto2GoldenFolder& g) {
  const SafetensorsFile file((folder / "expected.safetensors").string());
  for (const SafetensorsEntry& entry : file.entries()) {
    Toto2GoldenTensor& tensor = g.expected[entry.name];
    tensor.shape = entry.shape;
    if (entry.type == StoredType::f64) {
      tensor.values = read_as<double>(file, entry.name, StoredType::f64, entry.shape);
    } else {
      // Infinities are expected where a forecast overflows.
      const auto values = read_as<float>(file, entry.name, StoredType::f32, entry.shape);
      tensor.values.assign(values.begin(), values.end());
    }
  }
}

}  // namespace

const Toto2GoldenTensor* Toto2GoldenFolder::find(const std::string& name) const {
  const auto at = expected.find(name);
  return at == expected.end() ? nullptr : &at->second;
}

std::vector<toto2::Request> Toto2GoldenFolder::requests(const Toto2GoldenCall& call) const {
  std::vector<toto2::Request> all;
  const auto v = static_cast<std::size_t>(targets);
  const auto e = static_cast<std::size_t>(covariates);
  const std::size_t cells = v * static_cast<std::size_t>(steps);
  const std::size_t known_cells = e * static_cast<std::size_t>(known_steps);
  for (std::size_t b = 0; b < static_cast<std::size_t>(batch); ++b) {
    toto2::Request r;
    r.targets = targets;
    r.steps = steps;
    r.values = std::span(values).subspan(b * cells, cells);
    r.mask = std::span(mask).subspan(b * cells, cells);
    r.groups = std::span(groups).subspan(b * v, v);
    r.covariates = covariates;
    r.known_steps = known_steps;
    r.known = std::span(known).subspan(b * known_cells, known_cells);
    r.known_mask = std::span(known_mask).subspan(b * known_cells, known_cells);
    r.known_groups = std::span(known_groups).subspan(b * e, e);
    r.horizon = call.horizon;
    r.block = call.block;
    r.has_missing_values = call.has_missing_values;
    r.fallback = call.fallback;
    r.cap = call.cap;
    all.push_back(r);
  }
  return all;
}

Toto2GoldenFolder read_toto2_golden_folder(const Toto2Config& config, const std::string& folder) {
  Toto2GoldenFolder g;
  g.path = folder;
  g.config = config;
  g.weights = read_weights(folder, g.config);
  read_inputs(folder, g);
  read_calls(folder, g);
  read_expected(folder, g);
  return g;
}

}  // namespace toto
