// SPDX-License-Identifier: Apache-2.0
#include "server/unread.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/closest.h"
#include "core/json.h"
#include "server/options.h"

namespace toto::server {
namespace {

constexpr std::size_t kMaxName = 64;  // bytes; a longer name is near to none

std::vector<std::string> names_of(std::initializer_list<std::string_view> known, bool options) {
  std::vector<std::string> all(known.begin(), known.end());
  if (options) all.insert(all.end(), kOptionNames.begin(), kOptionNames.end());
  return all;
}

/// "did you mean x? " or nothing.
std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  const std::string_view near = name.size() > kMaxName ? "" : closest(name, known);
  return near.empty() ? "" : fmt::format("did you mean {}? ", near);
}

constexpr std::string_view kSee = "see /openapi.json";

}  // namespace

void Unread::look(const JsonField& object, std::string_view level,
                  std::initializer_list<std::string_view> known, bool options) {
  const std::vector<std::string> names = names_of(known, options);
  for (const auto& [name, value] : object.object().value().items()) {
    if (warnings_.size() == kMaxWarnings) return;
    if (value.is_null() || std::ranges::find(names, name) != names.end()) continue;
    const std::string place = object.path().empty() ? "body" : object.path();
    std::string key = fmt::format("{}.{}", level, quote(name));
    if (std::ranges::find(told_, key) != told_.end()) continue;
    warnings_.push_back(fmt::format("{}: nothing here reads {} ({}{})", place, quote(name),
                                    nearest(name, names), kSee));
    told_.push_back(std::move(key));
  }
}

void require_known(const JsonField& object, std::initializer_list<std::string_view> known,
                   bool options) {
  const std::vector<std::string> names = names_of(known, options);
  for (const auto& [name, unused] : object.object().value().items()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error(ExitStatus::usage, "unknown_option",
                fmt::format("nothing here is called {}", quote(name)),
                object.path().empty() ? "body" : object.path(),
                fmt::format("{}{}", nearest(name, names), kSee));
  }
}

void write_warnings(JsonText& out, const std::vector<std::string>& warnings) {
  if (warnings.empty()) return;
  out.key("warnings").open('[');
  for (const std::string& warning : warnings) out.string(warning);
  out.close(']');
}

}  // namespace toto::server
