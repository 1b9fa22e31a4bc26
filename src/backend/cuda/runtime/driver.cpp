// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/driver.h"

#include <fmt/format.h>

#include <algorithm>

namespace toto::cuda {
namespace {

bool is_release(std::string_view word) {
  const auto allowed = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  return !word.empty() && word.front() != '.' && word.back() != '.' &&
         word.find('.') != std::string_view::npos && std::all_of(word.begin(), word.end(), allowed);
}

}  // namespace

std::string driver_name(std::string_view kernel_module, int version) {
  std::string cuda = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  std::string_view rest = kernel_module;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string_view word = rest.substr(0, end);
    if (is_release(word)) return fmt::format("{} ({})", word, cuda);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return cuda;
}

}  // namespace toto::cuda
