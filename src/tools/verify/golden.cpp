// SPDX-License-Identifier: Apache-2.0
// `toto verify --golden`: folders of golden outputs, each with a model of its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/input_file.h"
#include "models/backend_choice.h"
#include "models/registry.h"
#include "tools/verify/compare.h"
#include "tools/verify/golden_mixture.h"
#include "toto/settings.hpp"
#include "toto/tools/verify.hpp"

namespace toto {
namespace {

constexpr std::size_t kMaxConfig = std::size_t{1} << 20;

ConfigurationPtr read_config(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ExitStatus::missing_input, "file_not_found", "no such folder", folder);
  }
  const std::string path = (fs::path(folder) / "config.json").string();
  std::vector<std::string> warnings;
  return parse_model_config(read_text_file(path, kMaxConfig, ExitStatus::bad_config), path, false,
                            warnings);
}

/// What bounds of float32 are multiplied by where a type rounds more: more than the folders in
/// tests/data/golden need (docs/verification.md).
double looser(const LoadOptions& options) {
  switch (options.precision) {
    case Precision::tf32:
      return options.backend == "cuda" ? 1e3 : 1;  // float32 on a CPU
    case Precision::bfloat16:
    case Precision::int8:
      return 3e4;
    case Precision::float32:
    case Precision::float64:
      break;
  }
  return 1;
}

GoldenCase verify_folder(const std::string& folder, const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const ConfigurationPtr config = read_config(folder);
  std::unique_ptr<GoldenOutputs> golden = config->read_golden(folder);
  if (golden == nullptr) golden = read_mixture_golden(*config, folder);
  const WeightTable table(golden->weights(), config->tensors());
  const ModelInfo info = describe_model(*config, table);
  GoldenCase result;
  result.folder = folder;
  result.full_size = golden->full_size(info);
  result.model = fmt::format("{} layers, width {}, {}", info.num_layers, info.embed_dim,
                             golden->weights()->description());
  for (const Build how : {Build::eager, Build::planned}) {
    const ContextCache cache =
        how == Build::eager ? ContextCache::per_trajectory : ContextCache::shared;
    const auto net = config->build(table, make_backend(options), how, cache);
    for (const GoldenDifference& d :
         golden->compare(*net, info, options.precision == Precision::float64)) {
      result.checks.push_back({d.tensor, how == Build::eager ? "eager" : "planned", d.measure,
                               d.worst.error, d.bound * looser(options),
                               place_of(d.worst.index, d.shape), d.worst.expected, d.worst.found});
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

bool GoldenCase::holds() const {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const auto& c) { return c.holds(); });
}

bool GoldenReport::holds() const {
  return !cases.empty() &&
         std::all_of(cases.begin(), cases.end(), [](const auto& c) { return c.holds(); });
}

GoldenReport verify_golden(std::span<const std::string> folders, const LoadOptions& asked) {
  const LoadOptions options = complete(asked);
  GoldenReport report;
  report.backend = options.backend;
  report.precision = word(options.precision);
  for (const std::string& folder : folders) {
    report.cases.push_back(verify_folder(folder, options));
  }
  return report;
}

}  // namespace toto
