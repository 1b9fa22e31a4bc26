// SPDX-License-Identifier: Apache-2.0
#include "core/sizes.h"

#include <charconv>

namespace toto {

std::vector<std::size_t> parse_sizes(std::string_view text, std::size_t most) {
  std::vector<std::size_t> sizes;
  for (std::string_view rest = text;; rest.remove_prefix(1)) {
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (error != std::errc() || n == 0 || n > most) return {};
    sizes.push_back(n);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty()) return sizes;
    if (rest.front() != 'x') return {};
  }
}

}  // namespace toto
