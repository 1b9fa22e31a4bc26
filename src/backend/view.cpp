// SPDX-License-Identifier: Apache-2.0
#include "backend/view.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>

#include "toto/error.hpp"

namespace toto {
namespace {

std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "float32";
    case ElementType::f64:
      return "float64";
    case ElementType::bf16:
      return "bfloat16";
    case ElementType::none:
      break;
  }
  return "nothing";
}

}  // namespace

void refuse_type(const char* what, const ConstView& found, ElementType expected) {
  throw Error(
      ExitStatus::internal, "view_type",
      fmt::format("{}: expected {}, found {}", what, name_of(expected), name_of(found.type)));
}

void refuse_size(const char* what, const ConstView& found, std::int64_t rows, std::int64_t width) {
  const std::string least = rows > 0 ? fmt::format("at least {} rows", rows) : "rows";
  throw Error(ExitStatus::internal, "view_size",
              fmt::format("{}: expected {} of {} elements, found {} of {}", what, least, width,
                          found.rows.count, found.width));
}

template <typename Void>
BasicView<Void> BasicView<Void>::as(ElementType other, Rows count, std::int64_t columns) const {
  BasicView result = *this;
  result.type = other;
  result.rows = count;
  result.width = static_cast<std::int32_t>(columns);
  if (columns > std::numeric_limits<std::int32_t>::max() || result.bytes() > bytes()) {
    refuse_size("a part of memory", *this, count.count, columns);
  }
  return result;
}

template <typename Void>
BasicView<Void> BasicView<Void>::from(std::int64_t first, Rows count) const {
  BasicView result = *this;
  result.rows = count;
  if (first < 0 || first + count.count > rows.count) {
    refuse_size("rows of memory", *this, first + count.count, width);
  }
  using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
  result.data =
      static_cast<Byte*>(data) + first * stride() * static_cast<std::int64_t>(size_of(type));
  return result;
}

template struct BasicView<void>;
template struct BasicView<const void>;

}  // namespace toto
