// SPDX-License-Identifier: Apache-2.0
// Reading the fields of config.json, whatever the family: types, ranges, and errors that name the
// field.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"

namespace toto::config {

// Ten times what any Toto has. Together they keep the element count of every tensor far below 2^63
// and its rows and columns far below 2^31.
inline constexpr std::int64_t kMaxPatch = 4096;
inline constexpr std::int64_t kMaxWidth = 16384;
inline constexpr std::int64_t kMaxHidden = 65536;
inline constexpr std::int64_t kMaxLayers = 1024;

/// The fields of one object, with errors that name file and field.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string_view where) : object_(object), where_(where) {}

  [[noreturn]] void fail(std::string_view code, std::string_view message) const {
    throw Error(ExitStatus::bad_config, code, message, where_);
  }

  /// nullptr where the key is absent.
  [[nodiscard]] const nlohmann::json* find(std::string_view key) const {
    const auto at = object_.find(key);
    return at == object_.end() ? nullptr : &*at;
  }
  [[nodiscard]] const nlohmann::json& at(std::string_view key) const {
    const nlohmann::json* value = find(key);
    if (!value) fail("missing_key", fmt::format("the key \"{}\" is missing", key));
    return *value;
  }

  [[nodiscard]] std::int64_t integer(std::string_view key) const { return integer(key, at(key)); }
  [[nodiscard]] std::int64_t integer(std::string_view key, const nlohmann::json& value) const {
    const bool fits =
        value.is_number_integer() &&
        !(value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX});
    if (!fits) wrong(key, "an integer", value);
    return value.get<std::int64_t>();
  }

  /// A size: at least 1. One beyond `limit` cannot agree with the tensors of any file, and is told
  /// so here, before anything multiplies it.
  [[nodiscard]] std::int32_t size(std::string_view key, std::int64_t limit) const {
    return size(key, at(key), limit);
  }
  [[nodiscard]] std::int32_t size(std::string_view key, const nlohmann::json& json_value,
                                  std::int64_t limit) const {
    const std::int64_t value = integer(key, json_value);
    if (value < 1) wrong(key, "at least 1", json_value);
    if (value > limit) {
      fail("config_tensor_mismatch",
           fmt::format("\"{}\" is {}; no checkpoint has tensors for more than {}", key, value,
                       limit));
    }
    return static_cast<std::int32_t>(value);
  }

  [[nodiscard]] double number(std::string_view key, double low, double high,
                              std::optional<double> absent = {}) const {
    if (absent && !find(key)) return *absent;
    const nlohmann::json& value = at(key);
    const double x = value.is_number() ? value.get<double>() : std::nan("");
    if (!(x >= low && x <= high)) {
      wrong(key, fmt::format("a number from {} to {}", low, high), value);
    }
    return x;
  }

  [[nodiscard]] bool boolean(std::string_view key, bool absent) const {
    const nlohmann::json* value = find(key);
    if (!value) return absent;
    if (!value->is_boolean()) wrong(key, "true or false", *value);
    return value->get<bool>();
  }

  /// A key that the model does not know: an error where `strict`, else a warning.
  void unknown(std::string_view key, std::string_view family, bool strict,
               std::vector<std::string>& warnings) const {
    std::string message = fmt::format("{} is not a key of a {} configuration", quote(key), family);
    if (strict) fail("unknown_key", message);
    warnings.push_back(std::move(message) + "; it is ignored");
  }

  [[noreturn]] void wrong(std::string_view key, std::string_view expected,
                          const nlohmann::json& found) const {
    const std::string text = found.dump(-1, ' ', true);
    fail("invalid_value", fmt::format("\"{}\" must be {}, not {}", key, expected, shorten(text)));
  }

 private:
  const nlohmann::json& object_;
  std::string_view where_;
};

}  // namespace toto::config
