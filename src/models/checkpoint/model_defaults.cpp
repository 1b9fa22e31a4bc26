// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/model_defaults.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/input_file.h"
#include "core/json.h"
#include "models/checkpoint/config_fields.h"
#include "settings/words.h"

namespace toto {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

/// `value` stays as it is where the key is absent. "auto" is no answer.
template <typename Words, typename T>
void read_word(const config::Fields& fields, std::string_view key, const Words& words, T& value) {
  const nlohmann::json* const found = fields.find(key);
  if (found == nullptr) return;
  const auto word =
      found->is_string() ? find_word(words, found->get_ref<const std::string&>()) : std::nullopt;
  if (!word || *word == T::automatic) {
    fields.wrong(key, fmt::format("one of {}", list_words(std::span(words).template subspan<1>())),
                 *found);
  }
  value = *word;
}

}  // namespace

ModelDefaults parse_model_defaults(std::string_view text, std::string_view where) {
  const JsonTree tree{parse_json(text, ExitStatus::bad_config, where)};
  const config::Fields fields(tree.root, where);
  if (!tree.root.is_object()) fields.fail("invalid_json", "expected an object");
  ModelDefaults defaults;
  read_word(fields, "paths", kPaths, defaults.paths);
  read_word(fields, "tails", kTails, defaults.tails);
  return defaults;
}

ModelDefaults read_model_defaults(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / "generation_config.json";
  std::error_code unknown;
  // A link whose target is gone is a file that cannot be read.
  const std::filesystem::file_status found = std::filesystem::symlink_status(path, unknown);
  if (found.type() == std::filesystem::file_type::not_found) return {};
  return parse_model_defaults(read_text_file(path.string(), kMaxFile, ExitStatus::bad_config),
                              path.string());
}

}  // namespace toto
