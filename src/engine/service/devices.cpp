// SPDX-License-Identifier: Apache-2.0
// Lists of devices, and a replica of the model on each.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "settings/resolver.h"
#include "settings/words.h"
#include "toto/service.hpp"

namespace toto {
namespace {

[[noreturn]] void refuse(std::string_view word) {
  throw Error(ExitStatus::usage, "invalid_device", fmt::format("no device '{}'", word), {},
              "expected cpu, cuda:N or cuda:all, each once, separated by commas");
}

[[noreturn]] void refuse_all() {
  throw Error(ExitStatus::device_unavailable, "device_unavailable", cuda_unavailable(), "cuda:all",
              "use cpu");
}

}  // namespace

std::vector<std::string> parse_devices(std::string_view text) {
  std::vector<std::string> devices;
  const auto add = [&](std::string device, std::string_view word) {
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) refuse(word);
    devices.push_back(std::move(device));
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word == "cuda:all") {
      const int count = cuda_devices();
      if (count == 0) refuse_all();
      for (int i = 0; i < count; ++i) add(fmt::format("cuda:{}", i), word);
    } else if (word == "cuda") {
      add("cuda:0", word);
    } else if (const auto index = index_of_gpu(word)) {
      add(fmt::format("cuda:{}", *index), word);
    } else if (word == "cpu") {
      add("cpu", word);
    } else {
      refuse(word);
    }
  }
  return devices;
}

int threads_of_each(const LoadOptions& options, std::span<const std::string> devices) {
  const auto gpus = static_cast<int>(std::count_if(
      devices.begin(), devices.end(), [](const std::string& d) { return index_of_gpu(d); }));
  if (gpus < 2) return options.threads;
  const SettingsFlags flags;
  const Variables variables =
      options.environment == Environment::obeyed ? process_variables() : Variables{};
  const int threads =
      options.threads > 0 ? options.threads : Resolver(flags, variables).threads("cuda").value;
  return std::max(1, threads / gpus);
}

std::vector<Model> load_replicas(const ModelQuery& query, const LoadOptions& options,
                                 std::span<const std::string> devices) {
  std::vector<std::string> words;
  for (const std::string& device : devices) {
    for (std::string& word : parse_devices(device)) words.push_back(std::move(word));
  }
  const int shared = threads_of_each(options, words);
  std::vector<Model> replicas;
  for (const std::string& word : words) {
    LoadOptions on = options;
    on.backend.clear();
    const std::optional<int> gpu = index_of_gpu(word);
    on.device = gpu ? Device::cuda : Device::cpu;
    on.device_index = gpu.value_or(0);
    if (gpu) on.threads = shared;
    replicas.push_back(Model::load(query, on));
  }
  return replicas;
}

}  // namespace toto
