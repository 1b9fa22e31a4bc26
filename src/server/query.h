// SPDX-License-Identifier: Apache-2.0
// What stands behind the question mark of a path.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace toto::server {

using Query = std::map<std::string, std::string, std::less<>>;

/// "a=1&b=x%20y". Throws Error invalid_request for what is no name=value.
Query parse_query(std::string_view query);

/// A whole number of at least `least`; `otherwise` where it is absent or empty. Throws Error
/// invalid_request.
std::uint64_t whole_of(const Query& query, std::string_view name, std::uint64_t otherwise,
                       std::uint64_t least);

/// As the object of options that a body would have: numbers, true and false as such, a list where
/// commas are, everything else as text.
nlohmann::json options_of(const Query& query);

}  // namespace toto::server
