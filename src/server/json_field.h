// SPDX-License-Identifier: Apache-2.0
// Reading a request's JSON strictly: every error says where in the document it is.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace toto::server {

/// A value of a document and its path in it, "inputs[2].series". A view. Everything throws Error
/// invalid_request for a value of another kind.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// A member of an object; null counts as absent.
  [[nodiscard]] std::optional<JsonField> find(std::string_view name) const;
  [[nodiscard]] JsonField at(std::string_view name) const;
  /// An element of an array.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] JsonField operator[](std::size_t index) const;
  const JsonField& object() const;  ///< requires one

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool boolean() const;
  /// A whole number within limits, 3.0 included.
  [[nodiscard]] std::uint64_t whole(std::uint64_t least, std::uint64_t most) const;
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) const;
  [[nodiscard]] double number(double least, double most) const;
  /// A list of numbers that fit a float; null is a missing one where `missing` is given.
  [[nodiscard]] std::vector<float> floats(std::vector<bool>* missing) const;
  /// The number of one element; true and `value` 0 where it is null.
  [[nodiscard]] bool float_or_null(std::size_t index, float& value) const;

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

/// Quantile levels in (0, 1), ascending, each once. Throws Error invalid_quantile.
std::vector<double> read_levels(const JsonField& field, std::size_t most);

}  // namespace toto::server
