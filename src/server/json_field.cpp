// SPDX-License-Identifier: Apache-2.0
#include "server/json_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/json.h"
#include "server/call.h"
#include "server/errors.h"

namespace toto::server {
namespace {

/// What a value is, for messages: numbers and words as they stand, shortened.
std::string found(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::object:
      return "an object";
    case nlohmann::json::value_t::array:
      return fmt::format("a list of {}", value.size());
    case nlohmann::json::value_t::string:
      return quote(value.get_ref<const std::string&>());
    default:
      return shorten(value.dump());
  }
}

/// A member's name in a path: as it is if it is a word, else as JSON.
std::string in_path(std::string_view name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  return name.size() <= 80 && std::ranges::all_of(name, plain) ? std::string(name) : quote(name);
}

constexpr double kLargestFloat = std::numeric_limits<float>::max();

}  // namespace

void JsonField::fail(std::string_view expected) const {
  throw invalid_request(fmt::format("expected {}, found {}", expected, found(*value_)),
                        path_.empty() ? "body" : path_);
}

const JsonField& JsonField::object() const {
  if (!value_->is_object()) fail("an object");
  return *this;
}

std::optional<JsonField> JsonField::find(std::string_view name) const {
  object();
  const auto at = value_->find(name);
  if (at == value_->end() || at->is_null()) return std::nullopt;
  return JsonField(*at, path_.empty() ? in_path(name) : path_ + "." + in_path(name));
}

JsonField JsonField::at(std::string_view name) const {
  if (const auto member = find(name)) return *member;
  throw invalid_request(fmt::format("expected a member {}", quote(name)),
                        path_.empty() ? "body" : path_, "add it");
}

std::size_t JsonField::size() const {
  if (!value_->is_array()) fail("a list");
  return value_->size();
}

JsonField JsonField::operator[](std::size_t index) const {
  return {(*value_)[index], fmt::format("{}[{}]", path_, index)};
}

const std::string& JsonField::text() const {
  if (!value_->is_string()) fail("a text");
  return value_->get_ref<const std::string&>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

std::uint64_t JsonField::whole(std::uint64_t least, std::uint64_t most) const {
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  std::uint64_t number = 0;
  if (value_->is_number_unsigned()) {
    number = value_->get<std::uint64_t>();
  } else if (value_->is_number_float()) {
    const double real = value_->get<double>();
    if (!(real >= 0) || real > 9.0e15 || real != std::floor(real)) fail(expected);
    number = static_cast<std::uint64_t>(real);
  } else {
    fail(expected);
  }
  if (number < least || number > most) fail(expected);
  return number;
}

std::int64_t JsonField::integer(std::int64_t least, std::int64_t most) const {
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  if (!value_->is_number_integer()) fail(expected);
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t{1} << 62) {
    fail(expected);
  }
  const auto number = value_->get<std::int64_t>();
  if (number < least || number > most) fail(expected);
  return number;
}

double JsonField::number(double least, double most) const {
  const std::string expected = fmt::format("a number from {} to {}", least, most);
  if (!value_->is_number()) fail(expected);
  const auto number = value_->get<double>();
  if (!(number >= least && number <= most)) fail(expected);
  return number;
}

bool JsonField::float_or_null(std::size_t index, float& value) const {
  const nlohmann::json& element = (*value_)[index];
  value = 0;
  if (element.is_null()) return true;
  if (!element.is_number()) (*this)[index].fail("a number or null");
  const auto number = element.get<double>();
  if (!(std::abs(number) <= kLargestFloat)) {
    throw Error(ExitStatus::usage, "not_finite",
                fmt::format("expected a number within float32, found {}", number),
                (*this)[index].path(), "null is a missing value");
  }
  value = static_cast<float>(number);
  return false;
}

std::vector<float> JsonField::floats(std::vector<bool>* missing) const {
  std::vector<float> out(size());
  if (missing != nullptr) missing->assign(out.size(), false);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!float_or_null(i, out[i])) continue;
    if (missing == nullptr) (*this)[i].fail("a number");
    (*missing)[i] = true;
  }
  return out;
}

std::vector<double> read_levels(const JsonField& field, std::size_t most) {
  const std::size_t count = field.size();
  require_limit(count, most, "quantile levels", "--max-quantiles", field.path());
  std::vector<double> levels;
  for (std::size_t i = 0; i < count; ++i) {
    const JsonField one = field[i];
    const auto& value = one.value();
    if (!value.is_number() || !(value.get<double>() > 0) || !(value.get<double>() < 1)) {
      throw Error(ExitStatus::usage, "invalid_quantile",
                  "expected a level above 0 and below 1, found " + found(value), one.path(),
                  "0.1, 0.5 and 0.9, for example");
    }
    levels.push_back(value.get<double>());
  }
  std::ranges::sort(levels);
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

}  // namespace toto::server
