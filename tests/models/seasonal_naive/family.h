// SPDX-License-Identifier: Apache-2.0
// The seasonal naive as a family of models: {"season": 24, "patch_size": 8} and one tensor.
#pragma once

#include <fmt/format.h>

#include "core/json.h"
#include "models/checkpoint/config_fields.h"
#include "models/family.h"
#include "seasonal_naive/network.h"

namespace toto::test {

class SeasonalNaiveConfiguration final : public Configuration {
 public:
  SeasonalNaiveConfiguration(std::int32_t patch, std::int32_t season)
      : patch_(patch), season_(season) {}
  [[nodiscard]] std::string_view family() const override { return "seasonal-naive"; }
  [[nodiscard]] TensorList tensors() const override {
    return {{{"spread", {}, {1}, {0.0, 0.5}}}, {}, true};
  }
  [[nodiscard]] std::string to_json() const override {
    return fmt::format(R"({{"patch_size": {}, "season": {}}})", patch_, season_);
  }
  void describe(const WeightTable& /*weights*/, ModelInfo& info) const override {
    info.patch_size = patch_;
    info.head = "quantiles";
    info.components = 9;
    info.lowest_level = 0.1;
    info.highest_level = 0.9;
  }
  [[nodiscard]] std::unique_ptr<Network> build(const WeightTable& weights,
                                               std::shared_ptr<Backend> backend, Build /*how*/,
                                               ContextCache /*cache*/) const override {
    return std::make_unique<SeasonalNaive>(patch_, season_, weights, std::move(backend));
  }

 private:
  std::int32_t patch_, season_;
};

inline Family seasonal_naive_family() {
  return {"seasonal-naive",
          [](const nlohmann::json& object) { return object.contains("season"); },
          [](std::string_view text, std::string_view where, bool strict,
             std::vector<std::string>& warnings) -> ConfigurationPtr {
            const JsonTree tree{parse_json(text, ExitStatus::bad_config, where)};
            const config::Fields fields(tree.root, where);
            for (const auto& [key, value] : tree.root.items()) {
              if (key == "patch_size" || key == "season") continue;
              fields.unknown(key, "seasonal naive", strict, warnings);
            }
            return std::make_shared<SeasonalNaiveConfiguration>(
                fields.size("patch_size", config::kMaxPatch), fields.size("season", 10000));
          },
          {{"seasonal-naive-24", std::make_shared<SeasonalNaiveConfiguration>(8, 24)}}};
}

}  // namespace toto::test
