// SPDX-License-Identifier: Apache-2.0
// Synthetic weights as a checkpoint on disk.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/json.h"
#include "models/checkpoint/safetensors_writer.h"
#include "models/checkpoint/synthetic.h"
#include "models/registry.h"
#include "toto/model.hpp"

namespace toto {
namespace {

namespace fs = std::filesystem;

/// Makes a folder, and removes it again (and the parents it had to make) unless kept. What it has
/// not made stays, also a link that leads nowhere.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& folder) {
    if (folder.empty()) fail(folder, std::strerror(ENOENT));
    fs::path at;
    for (const fs::path& part : folder) {
      at /= part;
      std::error_code error;
      if (fs::create_directory(at, error)) made_.push_back(at);
      std::error_code ignored;
      if (fs::is_directory(at, ignored)) continue;
      remove();
      fail(folder, error ? error.message() : std::strerror(ENOTDIR));
    }
  }
  ~NewFolder() { remove(); }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  void keep() { made_.clear(); }

 private:
  [[noreturn]] static void fail(const fs::path& folder, const std::string& reason) {
    throw Error(ExitStatus::io, "write_failed", "cannot make the folder: " + reason,
                folder.string());
  }
  void remove() {
    std::error_code ignored;
    for (; !made_.empty(); made_.pop_back()) fs::remove(made_.back(), ignored);  // innermost first
  }
  std::vector<fs::path> made_;  // outermost first
};

}  // namespace

std::string preset_config(std::string_view preset) { return find_preset(preset)->to_json(); }

void write_synthetic_checkpoint(std::string_view config_json, std::uint64_t seed,
                                const std::string& folder,
                                const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  std::vector<std::string> warnings;
  const std::vector<SyntheticTensor> wanted =
      synthetic_tensors(parse_model_config(config_json, "config.json", false, warnings)->tensors());
  std::vector<SafetensorsWriter::Tensor> tensors;
  tensors.reserve(wanted.size());
  for (const SyntheticTensor& tensor : wanted) {
    tensors.push_back({tensor.name, StoredType::f32, tensor.shape});
  }
  NewFolder place(folder);
  AtomicFile config_file(folder + "/config.json");
  config_file.write(config_json);
  SafetensorsWriter writer(
      folder + "/model.safetensors", tensors,
      {{"format", "pt"}, {std::string(kSyntheticKey), fmt::format("seed {}", seed)}});

  std::vector<float> chunk(1 << 18);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::uint64_t count = 1;
    for (const std::int64_t size : tensors[i].shape) count *= static_cast<std::uint64_t>(size);
    for (std::uint64_t at = 0; at < count; at += chunk.size()) {
      const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), count - at));
      fill_synthetic(1000 * seed + i, wanted[i].scale, at, part);
      writer.write(std::as_bytes(part));
      if (progress) progress(writer.written(), writer.file_bytes());
    }
  }
  writer.sync();  // nothing appears before both files are on the disk
  config_file.sync();
  // The old ones go before a new one comes: a kill in between leaves no weights beside the
  // configuration of others.
  config_file.remove_old();
  writer.remove_old();
  writer.commit();
  config_file.commit();
  place.keep();
}

}  // namespace toto
