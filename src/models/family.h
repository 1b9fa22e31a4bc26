// SPDX-License-Identifier: Apache-2.0
// What must be known of a family of models before there is a network: which config.json is one of
// its own, which tensors a checkpoint has, and how a network is built of them. Behind it stands
// models/network.h. registry.h finds the family; docs/design.md says how to add one.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "models/checkpoint/weights.h"
#include "models/golden.h"
#include "models/network.h"
#include "toto/model.hpp"

namespace toto {

/// How a network is built. All of them compute the same function in real arithmetic.
enum class Build {
  planned,  ///< what is fastest: constants folded into weights, nothing computed that nobody reads
  eager,    ///< the reference's order of operations
  exact,    ///< what float64 is run with, as near to the checkpoint as the network can be: a fold
            ///< that rounds to float32 is left out where it can be
};

/// All that config.json decides. Immutable.
class Configuration {
 public:
  Configuration() = default;
  virtual ~Configuration() = default;
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;

  /// The name of the family, which is ModelInfo::architecture.
  [[nodiscard]] virtual std::string_view family() const = 0;
  /// The tensors of a checkpoint, with the amplitudes of synthetic ones.
  [[nodiscard]] virtual TensorList tensors() const = 0;
  /// The text of a config.json that gives this configuration again.
  [[nodiscard]] virtual std::string to_json() const = 0;
  /// Fills in what `info` says of the network: patch_size .. variate_labels.
  virtual void describe(const WeightTable& weights, ModelInfo& info) const = 0;
  /// Reads and uploads the weights. `cache`: of a network that trajectories go through; others take
  /// no notice. Throws what WeightTable::read() throws, and Error
  /// unsupported_config (78) for a backend that cannot run the network.
  [[nodiscard]] virtual std::unique_ptr<Network> build(const WeightTable& weights,
                                                       std::shared_ptr<Backend> backend, Build how,
                                                       ContextCache cache) const = 0;
  /// Reads a folder of golden outputs in a format of the family's own. nullptr: it has none, and
  /// such folders are in the format of mixtures (tools/verify/golden_mixture.h).
  [[nodiscard]] virtual std::unique_ptr<GoldenOutputs> read_golden(
      const std::string& /*folder*/) const {
    return nullptr;
  }
};

using ConfigurationPtr = std::shared_ptr<const Configuration>;

struct Family {
  std::string name;
  /// Whether a config.json, which is an object, is one of this family.
  std::function<bool(const nlohmann::json& object)> recognises;
  /// Parses the text of config.json. `where` names the file in errors. Unknown keys are appended to
  /// `warnings`, or an error where `strict`. Throws Error (78): docs/errors.md, *Configuration*.
  std::function<ConfigurationPtr(std::string_view text, std::string_view where, bool strict,
                                 std::vector<std::string>& warnings)>
      parse;
  /// Published architectures by name.
  std::vector<std::pair<std::string, ConfigurationPtr>> presets;
};

}  // namespace toto
