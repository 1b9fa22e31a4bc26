// SPDX-License-Identifier: Apache-2.0
#include "server/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "server/errors.h"
#include "server/http.h"

namespace toto::server {
namespace {

using nlohmann::json;

json value_of(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  const char* const end = text.data() + text.size();
  std::uint64_t whole = 0;
  if (const auto got = std::from_chars(text.data(), end, whole); got.ptr == end && !text.empty()) {
    if (got.ec == std::errc()) return whole;
  }
  double number = 0;
  if (const auto got = std::from_chars(text.data(), end, number);
      got.ptr == end && got.ec == std::errc() && !text.empty()) {
    return number;
  }
  return text;
}

}  // namespace

Query parse_query(std::string_view query) {
  Query all;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const std::size_t equals = pair.find('=');
    std::string name;
    std::string value;
    if (equals == std::string_view::npos || !percent_decode(pair.substr(0, equals), name) ||
        !percent_decode(pair.substr(equals + 1), value)) {
      throw invalid_request("expected name=value", "query");
    }
    all[name] = value;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return all;
}

std::uint64_t whole_of(const Query& query, std::string_view name, std::uint64_t otherwise,
                       std::uint64_t least) {
  const auto found = query.find(name);
  if (found == query.end() || found->second.empty()) return otherwise;
  const std::string& text = found->second;
  const bool digits = text.size() < 19 && text.find_first_not_of("0123456789") == text.npos;
  const std::uint64_t value = digits ? std::stoull(text) : 0;
  if (!digits || value < least) {
    throw invalid_request(fmt::format("expected a whole number of at least {}", least), name);
  }
  return value;
}

json options_of(const Query& query) {
  json all = json::object();
  for (const auto& [name, text] : query) {
    if (text.find(',') == std::string::npos) {
      all[name] = value_of(text);
      continue;
    }
    json& list = all[name] = json::array();
    for (std::string_view rest = text;;) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      list.push_back(value_of(rest.substr(0, end)));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  }
  return all;
}

}  // namespace toto::server
