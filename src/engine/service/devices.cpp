// SPDX-License-Identifier: Apache-2.0
// Lists of devices, and a replica of the model on each.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "toto/service.hpp"

namespace toto {
namespace {

constexpr std::string_view kCuda = "cuda:";

[[noreturn]] void refuse(std::string_view word) {
  throw Error(ExitStatus::usage, "invalid_device", fmt::format("no device '{}'", word), {},
              "expected cpu or cuda:0, each once, separated by commas");
}

}  // namespace

std::vector<std::string> parse_devices(std::string_view text) {
  std::vector<std::string> devices;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string word(text.substr(at, end - at));
    at = end + 1;
    if (word == "cuda") word = "cuda:0";
    const std::string_view index = std::string_view(word).starts_with(kCuda)
                                       ? std::string_view(word).substr(kCuda.size())
                                       : std::string_view();
    const bool number = !index.empty() && index.size() <= 4 &&
                        index.find_first_not_of("0123456789") == std::string_view::npos;
    if (word != "cpu" && !number) refuse(word);
    if (std::find(devices.begin(), devices.end(), word) != devices.end()) refuse(word);
    if (number && index != "0") {
      throw Error(ExitStatus::device_unavailable, "device_unavailable",
                  fmt::format("expected the first device, found '{}'", word), {},
                  "this version uses cuda:0 only; choose another one with CUDA_VISIBLE_DEVICES, "
                  "in a process for each device");
    }
    devices.push_back(std::move(word));
  }
  return devices;
}

std::vector<Model> load_replicas(const ModelQuery& query, const LoadOptions& options,
                                 std::span<const std::string> devices) {
  std::vector<Model> replicas;
  for (const std::string& device : devices) {
    LoadOptions on = options;
    on.backend = parse_devices(device).front() == "cpu" ? "cpu" : "cuda";
    replicas.push_back(Model::load(query, on));
  }
  return replicas;
}

}  // namespace toto
