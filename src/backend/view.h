// SPDX-License-Identifier: Apache-2.0
// Views of a backend's memory: what operations of the seam take. A view says what type its elements
// are of and how many there are, so that a mistake is an error that names it (Error view_type,
// view_size: 70) and no wrong read. Kernels take raw pointers of one type; a backend gets those by
// typed(), in one place for each operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backend/batch.h"

namespace toto {

enum class ElementType : std::uint8_t { none, f32, f64, bf16 };

constexpr std::size_t size_of(ElementType type) {
  return type == ElementType::f64    ? 8
         : type == ElementType::f32  ? 4
         : type == ElementType::bf16 ? 2
                                     : 0;
}

/// The type of elements that T stands for.
template <typename T>
inline constexpr ElementType kTypeOf = ElementType::none;
template <>
inline constexpr ElementType kTypeOf<float> = ElementType::f32;
template <>
inline constexpr ElementType kTypeOf<double> = ElementType::f64;

/// Rows lie this many elements apart: in bfloat16 in whole sixteen bytes, zero beyond their end.
constexpr std::int64_t stride_of(ElementType type, std::int64_t width) {
  return type == ElementType::bf16 ? (width + 7) / 8 * 8 : width;
}

/// A matrix [rows][width] in the memory of a backend. On a device the rows may be an upper bound
/// (Rows::live). Whoever has one with data == nullptr has nothing. Not to be made for each row:
/// kernels take the pointers.
template <typename Void>
struct BasicView {
  Void* data = nullptr;
  ElementType type = ElementType::none;
  std::int32_t width = 0;
  Rows rows = 0;

  // NOLINTNEXTLINE(google-explicit-constructor): what may be written may be read
  operator BasicView<const void>() const requires(!std::is_const_v<Void>) {
    return {data, type, width, rows};
  }
  explicit operator bool() const { return data != nullptr; }

  [[nodiscard]] std::int64_t stride() const { return stride_of(type, width); }
  [[nodiscard]] std::int64_t elements() const { return std::int64_t{rows.count} * width; }
  [[nodiscard]] std::int64_t bytes() const {
    return rows.count * stride() * static_cast<std::int64_t>(size_of(type));
  }

  /// The beginning of the same memory as another matrix. Error view_size where it does not fit.
  [[nodiscard]] BasicView as(ElementType other, Rows count, std::int64_t columns) const;
  [[nodiscard]] BasicView shaped(Rows count, std::int64_t columns) const {
    return as(type, count, columns);
  }
  /// `count` rows from row `first` on.
  [[nodiscard]] BasicView from(std::int64_t first, Rows count) const;
};
using View = BasicView<void>;
using ConstView = BasicView<const void>;

extern template struct BasicView<void>;
extern template struct BasicView<const void>;

/// [rows][width] of what a host has there as T.
template <typename T>
auto view_of(T* data, Rows rows, std::int64_t width) {
  using Element = std::remove_const_t<T>;
  using Void = std::conditional_t<std::is_const_v<T>, const void, void>;
  return BasicView<Void>{data, kTypeOf<Element>, static_cast<std::int32_t>(width), rows};
}

// What is found to be wrong: throws Error view_type, view_size (70).
[[noreturn]] void refuse_type(const char* what, const ConstView& found, ElementType expected);
[[noreturn]] void refuse_size(const char* what, const ConstView& found, std::int64_t rows,
                              std::int64_t width);

/// The elements of a view as T; nullptr if there are none. Error view_type where they are not.
template <typename T>
T* typed(const View& v) {
  if (v.data != nullptr && v.type != kTypeOf<T>) refuse_type("memory", v, kTypeOf<T>);
  return static_cast<T*>(v.data);
}
template <typename T>
const T* typed(const ConstView& v) {
  if (v.data != nullptr && v.type != kTypeOf<T>) refuse_type("memory", v, kTypeOf<T>);
  return static_cast<const T*>(v.data);
}

/// An operation takes `what`: [rows][width] of that type, where there may be more rows.
inline void expect(const char* what, const ConstView& v, ElementType type, std::int64_t rows,
                   std::int64_t width) {
  if (v.type != type) refuse_type(what, v, type);
  if (v.rows.count < rows || v.width != width) refuse_size(what, v, rows, width);
}

}  // namespace toto
