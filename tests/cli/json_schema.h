// SPDX-License-Identifier: Apache-2.0
// As much of JSON Schema as docs/verify.schema.json uses. A keyword that is not among it is a
// problem, so that a schema cannot ask for what nobody checks.
#pragma once

#include <regex.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace toto::test {

/// The patterns of the schema are extended regular expressions too. (std::regex does not get
/// through g++ 12 with -Werror and a sanitizer.)
inline bool looks_like(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  if (::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return false;
  const bool found = ::regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  ::regfree(&compiled);
  return found;
}

inline bool has_type(const nlohmann::json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

/// What is wrong with `value`, each with its place.
inline void validate(const nlohmann::json& schema, const nlohmann::json& value,
                     const std::string& at, std::vector<std::string>& problems) {
  const auto problem = [&](const std::string& text) { problems.push_back(at + ": " + text); };
  for (const auto& [keyword, rule] : schema.items()) {
    if (keyword == "$schema" || keyword == "title" || keyword == "description") continue;
    if (keyword == "type") {
      const nlohmann::json types = rule.is_array() ? rule : nlohmann::json::array({rule});
      if (std::none_of(types.begin(), types.end(),
                       [&](const nlohmann::json& type) { return has_type(value, type); })) {
        problem("is no " + rule.dump());
      }
    } else if (keyword == "const") {
      if (value != rule) problem("is not " + rule.dump());
    } else if (keyword == "enum") {
      if (std::find(rule.begin(), rule.end(), value) == rule.end()) problem("is none of the words");
    } else if (keyword == "minimum") {
      if (value < rule) problem("is below " + rule.dump());
    } else if (keyword == "pattern") {
      if (!looks_like(value.get<std::string>(), rule.get<std::string>())) {
        problem("does not look like " + rule.dump());
      }
    } else if (keyword == "required") {
      for (const auto& name : rule) {
        if (!value.contains(name.get<std::string>())) problem("lacks " + name.dump());
      }
    } else if (keyword == "additionalProperties") {
      for (const auto& [name, part] : value.items()) {
        if (!schema["properties"].contains(name)) problem("has '" + name + "'");
      }
    } else if (keyword == "properties") {
      for (const auto& [name, part] : rule.items()) {
        if (value.contains(name)) validate(part, value[name], at + "/" + name, problems);
      }
    } else if (keyword == "items") {
      for (std::size_t i = 0; i < value.size(); ++i) {
        validate(rule, value[i], at + "/" + std::to_string(i), problems);
      }
    } else {
      problem("the schema has a keyword that this test does not know: " + keyword);
    }
  }
}

inline std::vector<std::string> problems_of(const nlohmann::json& schema,
                                            const nlohmann::json& value) {
  std::vector<std::string> problems;
  validate(schema, value, "", problems);
  return problems;
}

}  // namespace toto::test
