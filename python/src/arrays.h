// SPDX-License-Identifier: Apache-2.0
// Arrays of Python as views of float32, without a copy where that can be.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace toto::python {

/// Any array (NumPy, DLPack, buffer, a sequence of numbers) in C order, as float32, or as float64
/// where it was asked for and float32 would round it. `data` or `wide` is the caller's own memory
/// where it has that type and order already; `owner` keeps it alive.
struct FloatArray {
  nanobind::object owner;
  const float* data = nullptr;   // null: it is
  const double* wide = nullptr;  // this
  std::size_t rank = 0;
  std::size_t shape[4] = {};
  [[nodiscard]] std::size_t size() const {
    std::size_t all = 1;
    for (std::size_t i = 0; i < rank; ++i) all *= shape[i];
    return all;
  }
};

enum class Digits { of_float, all };

/// Throws Error (2) invalid_input: `where` has more than `max_rank` axes, or holds no numbers.
FloatArray float_array(nanobind::handle given, std::size_t max_rank, const std::string& where,
                       Digits digits = Digits::of_float);

/// A mask of bool or uint8, 1 = observed, with as many elements as `size`.
struct MaskArray {
  nanobind::object owner;
  std::span<const std::uint8_t> values;
};
MaskArray mask_array(nanobind::handle given, std::size_t size, const std::string& where);

/// Group ids as int32.
struct GroupArray {
  nanobind::object owner;
  std::span<const std::int32_t> values;
};
GroupArray group_array(nanobind::handle given, const std::string& where);

/// Whether it is one series: an array, or a list of numbers; false: a list of series.
bool is_array(nanobind::handle given);

}  // namespace toto::python
