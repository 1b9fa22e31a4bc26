// SPDX-License-Identifier: Apache-2.0
// config.json of Toto 1.0: every field is checked here, so that nothing behind it divides by zero
// or overflows.
#include "models/toto1/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/json.h"
#include "models/checkpoint/config_fields.h"

namespace toto {
namespace {

using config::Fields;
using config::kMaxHidden;
using config::kMaxLayers;
using config::kMaxPatch;
using config::kMaxWidth;
using nlohmann::json;

constexpr std::array<std::string_view, 15> kKeys = {"patch_size",
                                                    "stride",
                                                    "embed_dim",
                                                    "num_layers",
                                                    "num_heads",
                                                    "mlp_hidden_dim",
                                                    "dropout",
                                                    "spacewise_every_n_layers",
                                                    "spacewise_first",
                                                    "scaler_cls",
                                                    "output_distribution_classes",
                                                    "output_distribution_kwargs",
                                                    "use_memory_efficient_attention",
                                                    "stabilize_with_global",
                                                    "scale_factor_exponent"};

constexpr std::string_view kFamily = "Toto 1.0";
constexpr std::int64_t kMaxComponents = 1024;
constexpr double kMaxExponent = 300.0;  // 10^±E stays a normal double

constexpr std::array<std::pair<std::string_view, ScalerKind>, 3> kScalers = {
    {{"CausalPatchStdMeanScaler", ScalerKind::causal_patch},
     {"CausalStdMeanScaler", ScalerKind::causal_step},
     {"StdMeanScaler", ScalerKind::global}}};
constexpr std::array<std::pair<std::string_view, HeadKind>, 2> kHeads = {
    {{"MixtureOfStudentTsOutput", HeadKind::mixture}, {"StudentTOutput", HeadKind::student_t}}};

/// What a class string means. Accepted are Python's "<class 'a.b.Name'>", "a.b.Name" and "Name".
template <typename Kind, std::size_t N>
Kind class_kind(const Fields& fields, std::string_view key, const json& value,
                const std::array<std::pair<std::string_view, Kind>, N>& known) {
  if (!value.is_string()) fields.wrong(key, "the name of a class", value);
  const std::string text = value.get<std::string>();
  std::string_view name = text;
  constexpr std::string_view kOpen = "<class '";
  constexpr std::string_view kClose = "'>";
  if (name.starts_with(kOpen) && name.ends_with(kClose) &&
      name.size() >= kOpen.size() + kClose.size()) {
    name.remove_prefix(kOpen.size());
    name.remove_suffix(kClose.size());
  }
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) {
    name.remove_prefix(dot + 1);
  }
  std::vector<std::string_view> names;
  for (const auto& [known_name, kind] : known) {
    if (name == known_name) return kind;
    names.push_back(known_name);
  }
  fields.fail("unsupported_config", fmt::format("\"{}\" is {}; supported are {}", key, quote(text),
                                                fmt::join(names, ", ")));
}

void parse_head(const Fields& fields, bool strict, std::vector<std::string>& warnings,
                Toto1Config& config) {
  constexpr std::string_view kClasses = "output_distribution_classes";
  const json& classes = fields.at(kClasses);
  if (!classes.is_array() || classes.empty()) fields.wrong(kClasses, "a list of classes", classes);
  config.head = class_kind(fields, kClasses, classes.front(), kHeads);

  constexpr std::string_view kKwargs = "output_distribution_kwargs";
  const json* kwargs = fields.find(kKwargs);
  if (kwargs && !kwargs->is_object() && !kwargs->is_null()) {
    fields.wrong(kKwargs, "an object or null", *kwargs);
  }
  const json* components = nullptr;
  const json empty = json::object();
  const json& options = kwargs && kwargs->is_object() ? *kwargs : empty;
  for (const auto& [key, value] : options.items()) {
    if (key == "k_components" && config.head == HeadKind::mixture) {
      components = &value;
    } else {
      fields.unknown(fmt::format("{}.{}", kKwargs, key), kFamily, strict, warnings);
    }
  }
  if (config.head == HeadKind::student_t) return;
  const std::string name = fmt::format("{}.k_components", kKwargs);
  if (!components) fields.fail("missing_key", fmt::format("the key \"{}\" is missing", name));
  config.components = fields.size(name, *components, kMaxComponents);
}

void check_relations(const Fields& fields, const Toto1Config& config) {
  if (config.embed_dim % config.num_heads != 0) {
    fields.fail("invalid_value", fmt::format("\"num_heads\" must divide \"embed_dim\"; {} does not "
                                             "divide {}",
                                             config.num_heads, config.embed_dim));
  }
  if (config.head_dim() % 2 != 0) {
    fields.fail("invalid_value",
                fmt::format("\"embed_dim\" / \"num_heads\" must be even for the rotary embedding, "
                            "not {} / {} = {}",
                            config.embed_dim, config.num_heads, config.head_dim()));
  }
}

}  // namespace

Toto1Config toto_open_base_1_0() {
  return {.patch_size = 64,
          .embed_dim = 768,
          .num_layers = 12,
          .num_heads = 12,
          .mlp_hidden_dim = 3072,
          .spacewise_every_n_layers = 12,
          .spacewise_first = false,
          .scaler = ScalerKind::causal_patch,
          .head = HeadKind::mixture,
          .components = 24,
          .stabilize_with_global = true,
          .scale_factor_exponent = 10.0};
}

Toto1Config parse_toto1_config(std::string_view text, std::string_view where, bool strict,
                               std::vector<std::string>& warnings) {
  const JsonTree tree{parse_json(text, ExitStatus::bad_config, where)};
  const json& object = tree.root;
  const Fields fields(object, where);
  if (!object.is_object()) fields.fail("invalid_json", "expected an object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      fields.unknown(key, kFamily, strict, warnings);
    }
  }
  Toto1Config config;
  config.patch_size = fields.size("patch_size", kMaxPatch);
  if (const std::int64_t stride = fields.integer("stride"); stride != config.patch_size) {
    fields.fail("unsupported_config", fmt::format("\"stride\" is {} and \"patch_size\" {}; only "
                                                  "equal ones are supported",
                                                  stride, config.patch_size));
  }
  config.embed_dim = fields.size("embed_dim", kMaxWidth);
  config.num_layers = fields.size("num_layers", kMaxLayers);
  config.num_heads = fields.size("num_heads", kMaxWidth);
  config.mlp_hidden_dim = fields.size("mlp_hidden_dim", kMaxHidden);
  (void)fields.number("dropout", 0.0, 1.0);
  constexpr std::string_view kEvery = "spacewise_every_n_layers";
  const std::int64_t every = fields.integer(kEvery);
  if (every != -1 && (every < 1 || every > config.num_layers || config.num_layers % every != 0)) {
    fields.wrong(kEvery, fmt::format("-1 or a divisor of \"num_layers\" = {}", config.num_layers),
                 every);
  }
  config.spacewise_every_n_layers = static_cast<std::int32_t>(every);
  config.spacewise_first = fields.boolean("spacewise_first", true);
  config.scaler = class_kind(fields, "scaler_cls", fields.at("scaler_cls"), kScalers);
  parse_head(fields, strict, warnings, config);
  (void)fields.boolean("use_memory_efficient_attention", true);
  config.stabilize_with_global = fields.boolean("stabilize_with_global", true);
  config.scale_factor_exponent =
      fields.number("scale_factor_exponent", -kMaxExponent, kMaxExponent, 10.0);
  check_relations(fields, config);
  return config;
}

std::string to_json(const Toto1Config& config) {
  const auto name_of = [](const auto& known, auto kind) {
    return std::find_if(known.begin(), known.end(), [&](const auto& e) { return e.second == kind; })
        ->first;
  };
  json object = {
      {"dropout", 0.1},
      {"embed_dim", config.embed_dim},
      {"mlp_hidden_dim", config.mlp_hidden_dim},
      {"num_heads", config.num_heads},
      {"num_layers", config.num_layers},
      {"output_distribution_classes",
       json::array({fmt::format("<class 'model.distribution.{}'>", name_of(kHeads, config.head))})},
      {"patch_size", config.patch_size},
      {"scale_factor_exponent", config.scale_factor_exponent},
      {"scaler_cls", fmt::format("<class 'model.scaler.{}'>", name_of(kScalers, config.scaler))},
      {"spacewise_every_n_layers", config.spacewise_every_n_layers},
      {"spacewise_first", config.spacewise_first},
      {"stabilize_with_global", config.stabilize_with_global},
      {"stride", config.patch_size},
      {"use_memory_efficient_attention", true}};
  if (config.head == HeadKind::mixture) {
    object["output_distribution_kwargs"] = {{"k_components", config.components}};
  }
  return object.dump(2);
}

}  // namespace toto
