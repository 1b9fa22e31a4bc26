// SPDX-License-Identifier: Apache-2.0
// Structs that cross the binary interface: the caller's may be older or newer than the library's.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "capi/guard.h"
#include "toto/toto.h"

namespace toto::capi {

/// The first version of every struct was as long as it is now. When a field is added, its struct
/// keeps the old length here.
template <typename T>
inline constexpr std::size_t kFirstSize = sizeof(T);
template <>
inline constexpr std::size_t kFirstSize<toto_forecast_options> = offsetof(toto_forecast_options,
                                                                          paths);

inline constexpr std::size_t kMaxStructSize = 4096;

template <typename T>
void check_size(std::size_t size, std::string_view name) {
  if (size >= kFirstSize<T> && size <= kMaxStructSize) return;
  refuse("invalid_struct_size", name,
         fmt::format("expected a struct_size of {} to {}, found {}", kFirstSize<T>, kMaxStructSize,
                     size),
         "set it to sizeof the struct, as the *_INIT macros do");
}

/// What `given` says, and zero in what its writer does not know. Throws invalid_struct_size, also
/// where it says something that this library does not know.
template <typename T>
T read_struct(const void* given, std::string_view name) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  check_size<T>(size, name);
  T own{};
  std::memcpy(&own, given, std::min(size, sizeof own));
  const auto* bytes = static_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(size, sizeof own), bytes + size,
                  [](unsigned char byte) { return byte != 0; })) {
    refuse("invalid_struct_size", name,
           fmt::format("the struct of {} bytes asks for what this version of the library, with {}, "
                       "does not know",
                       size, sizeof own),
           "use the header that belongs to the library, or a newer library");
  }
  own.struct_size = size;
  return own;
}

/// The same of element `index` of an array whose elements all have the size of the first.
template <typename T>
T read_element(const T* first, std::size_t index, std::string_view name) {
  std::size_t size = 0;
  std::memcpy(&size, first, sizeof size);
  check_size<T>(size, name);
  const T own = read_struct<T>(reinterpret_cast<const unsigned char*>(first) + index * size, name);
  if (own.struct_size == size) return own;
  refuse("invalid_struct_size", name,
         fmt::format("expected the {} bytes of the first element, found {}", size, own.struct_size),
         "elements of an array have one size");
}

/// Writes as much of `own` as the caller knows, and zeros into what only the caller knows.
template <typename T>
void write_struct(T own, T* to, std::string_view name) {
  const std::size_t size = required(to, name).struct_size;
  check_size<T>(size, name);
  own.struct_size = size;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &own, std::min(size, sizeof own));
}

}  // namespace toto::capi
