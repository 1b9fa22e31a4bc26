// SPDX-License-Identifier: Apache-2.0
// Many series of one variate from the columns of a table, without an object of Python for each.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"
#include "toto/forecast.hpp"

namespace toto::python {

class ModelHandle;

/// N series one after another in one array: of series i the values [begins[i], begins[i] +
/// lengths[i]), of which those that are NaN are missing. One of `narrow` and `wide` is not empty.
struct Lists {
  std::span<const float> narrow;
  std::span<const double> wide;
  std::span<const std::int64_t> begins, lengths;  ///< [N]
  std::vector<std::string_view> names;            ///< of those that are forecast
  std::span<const std::int64_t> rows;             ///< which they are
};

/// The series `rows` of lists as the engine takes them: views of the lists, and of memory of this
/// object where a value is missing or has to be rounded. Made without the GIL.
class ListBatch {
 public:
  ListBatch(const Lists& lists, const Options& options);
  ListBatch(const ListBatch&) = delete;
  ListBatch& operator=(const ListBatch&) = delete;

  [[nodiscard]] std::span<const Series> series() const { return series_; }
  /// What the values of series i, and so its forecasts, are differences from.
  [[nodiscard]] double offset(std::size_t i) const {
    const std::span<const double> own = series_[i].value_offsets;
    return own.empty() ? 0.0 : own[0];
  }

 private:
  void add(const Lists& lists, std::size_t index, const Options& options);

  std::vector<Series> series_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<std::uint8_t>> masks_;
  std::deque<double> offsets_;
};

/// ModelHandle.forecast_lists.
void bind_lists(nanobind::class_<ModelHandle>& model);

}  // namespace toto::python
