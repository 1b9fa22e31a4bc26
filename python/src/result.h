// SPDX-License-Identifier: Apache-2.0
// What a call computed, as NumPy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <vector>

#include "batch.h"
#include "toto/forecast.hpp"

namespace toto::python {

using FloatOut = nanobind::ndarray<nanobind::numpy, float>;
using DoubleOut = nanobind::ndarray<nanobind::numpy, double>;

/// One kind of result: float32, or float64 where a series of the call has a value offset.
struct Numbers {
  std::vector<float> narrow;
  std::vector<double> wide;
  [[nodiscard]] std::size_t size() const { return narrow.size() + wide.size(); }
};

/// The forecasts of one call. Where the values of a series were differences from an offset, so are
/// its forecasts, and the offset is added to them here. The target variates of all series, one
/// after another, are R rows; offsets()[i] is the first row of series i. Arrays are views of this
/// object's memory, which they keep alive; None where nothing was computed.
class Result {
 public:
  Result(std::vector<Forecast>&& forecasts, std::vector<std::string> ids,
         std::vector<std::size_t> targets, std::size_t rank, bool univariate);

  [[nodiscard]] std::size_t count() const { return ids_.size(); }
  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] bool univariate() const { return univariate_; }
  [[nodiscard]] std::size_t horizon() const { return horizon_; }
  [[nodiscard]] std::size_t num_samples() const { return num_samples_; }
  [[nodiscard]] const std::vector<std::string>& ids() const { return ids_; }
  [[nodiscard]] const std::vector<std::size_t>& offsets() const { return offsets_; }
  [[nodiscard]] const std::vector<std::size_t>& exact_steps() const { return exact_steps_; }
  [[nodiscard]] const std::vector<double>& levels() const { return levels_; }

  Numbers mean, median;                ///< [R][H]
  std::vector<float> std;              ///< [R][H]
  Numbers quantiles;                   ///< [L][R][H]
  Numbers samples;                     ///< [S][R][H]
  std::vector<Parameters> parameters;  ///< of each series

  [[nodiscard]] std::size_t rows() const { return offsets_.back(); }

 private:
  void take(Forecast& forecast, std::size_t index);
  void add_offsets(Numbers& numbers) const;

  std::vector<std::string> ids_;
  std::vector<std::size_t> offsets_, exact_steps_;
  std::vector<double> value_offsets_;  // [R]
  std::vector<double> levels_;
  std::size_t rank_ = 1, horizon_ = 0, num_samples_ = 0;
  bool univariate_ = true;
};

void bind_result(nanobind::module_& module);

}  // namespace toto::python
