// SPDX-License-Identifier: Apache-2.0
// Lists of devices, and a replica of the model on each.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

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

std::vector<Model> load_replicas(const ModelQuery& query, const LoadOptions& options,
                                 std::span<const std::string> devices) {
  std::vector<Model> replicas;
  for (const std::string& device : devices) {
    LoadOptions on = options;
    on.backend.clear();
    for (const std::string& word : parse_devices(device)) {
      const std::optional<int> gpu = index_of_gpu(word);
      on.device = gpu ? Device::cuda : Device::cpu;
      on.device_index = gpu.value_or(0);
      replicas.push_back(Model::load(query, on));
    }
  }
  return replicas;
}

}  // namespace toto
