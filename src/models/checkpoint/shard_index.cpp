// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/shard_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/input_file.h"
#include "core/json.h"

namespace toto {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxIndex = 16 << 20;

[[noreturn]] void fail(std::string_view code, std::string_view message, const std::string& index) {
  throw Error(ExitStatus::bad_config, code, message, index);
}

/// A shard lies in the folder of the index or below; where its link leads is the cache's business.
bool is_safe(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && name.find('\0') == name.npos && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

std::set<std::string> shard_names(const std::string& index) {
  const JsonTree tree{parse_json(read_text_file(index, kMaxIndex, ExitStatus::bad_config),
                                 ExitStatus::bad_config, index)};
  const json& object = tree.root;
  if (!object.is_object()) fail("invalid_json", "expected an object", index);
  const auto map = object.find("weight_map");
  if (map == object.end()) fail("missing_key", "the key \"weight_map\" is missing", index);
  if (!map->is_object() || map->empty()) {
    fail("invalid_value", "\"weight_map\" must be an object with a file for every tensor", index);
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) {
      fail("invalid_value", fmt::format("the file of tensor {} must be a string", quote(tensor)),
           index);
    }
    const std::string name = file.get<std::string>();
    if (!is_safe(name)) {
      fail("unsafe_path", fmt::format("shard {} leaves the folder of the index", quote(name)),
           index);
    }
    names.insert(name);
  }
  return names;
}

}  // namespace

std::vector<std::string> shards_of(const std::string& index, std::string_view remedy) {
  std::vector<std::string> shards;
  std::vector<std::string> absent;
  for (const std::string& name : shard_names(index)) {
    const fs::path path = fs::path(index).parent_path() / name;
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) absent.push_back(quote(name));
    shards.push_back(path.string());
  }
  if (!absent.empty()) {
    throw Error(ExitStatus::missing_input, "shard_not_found",
                fmt::format("{} of {} shards are missing: {}", absent.size(), shards.size(),
                            fmt::join(absent, ", ")),
                index, remedy);
  }
  return shards;
}

}  // namespace toto
