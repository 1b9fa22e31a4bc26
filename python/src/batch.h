// SPDX-License-Identifier: Apache-2.0
// From what a Python program hands over to series that the engine takes.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "arrays.h"
#include "effects.h"
#include "toto/forecast.hpp"
#include "toto/model.hpp"
#include "toto/tools/data.hpp"

namespace toto::python {

/// Everything about series but their values, each None, one for all series, or one for each.
struct SeriesExtras {
  nanobind::object ids;                ///< names; None: "0", "1", ...
  nanobind::object mask;               ///< as the values
  nanobind::object groups;             ///< [V] or [V][T]
  nanobind::object covariates;         ///< [E][T + horizon], known ahead
  nanobind::object exogenous_futures;  ///< [E][horizon] in the model's own form
  nanobind::object future_mask;        ///< as exogenous_futures, 1 where known
  std::size_t exogenous = 0;           ///< E, with the former: the last E variates of the values
  data::Missing missing = data::Missing::ffill;
  std::size_t season = 0;
  std::size_t context = 4096;  ///< steps, the last ones
  bool across_missing = true;  ///< counted up to the last observation
  CovariatesBy covariates_by = CovariatesBy::automatic;
  Digits digits = Digits::all;  ///< of_float: values are rounded, with no offset
};

/// Series of one call. The views point into Python's arrays where they are float32 in C order,
/// whole, and have no missing value; else into memory of this object. Values of float64 that
/// float32 has too few digits for are differences from an offset (data::keep_digits). Made and
/// destroyed with the GIL held.
class Batch {
 public:
  Batch(nanobind::handle inputs, const SeriesExtras& extras, const ModelInfo& model,
        std::size_t horizon);
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// Of those whose covariates are regressed, the values are there once effects are taken out.
  [[nodiscard]] const std::vector<Series>& series() const { return series_; }
  /// Without the GIL, before the series are forecast.
  void take_out_effects() { effects_.take_out(series_); }
  [[nodiscard]] Effects& effects() { return effects_; }
  /// 1: one series of one variate, 2: one series, 3: a batch.
  [[nodiscard]] std::size_t rank() const { return rank_; }
  /// Of each series so many variates are targets, the first ones.
  [[nodiscard]] const std::vector<std::size_t>& targets() const { return targets_; }
  /// Every input was [T].
  [[nodiscard]] bool univariate() const { return univariate_; }

 private:
  void add(const FloatArray& values, std::size_t rank, std::size_t offset, std::size_t index,
           const SeriesExtras& extras, const ModelInfo& model, std::size_t horizon);
  std::span<const float> narrow(std::span<const double> values, std::span<const std::uint8_t> mask,
                                std::size_t variates, std::size_t exogenous, Series& series);

  std::deque<nanobind::object> owners_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<double>> offsets_;
  std::deque<std::vector<std::uint8_t>> masks_;
  std::deque<std::vector<std::int32_t>> groups_;
  std::deque<std::string> ids_;
  std::vector<Series> series_;
  Effects effects_;
  std::vector<std::size_t> targets_;
  std::size_t rank_ = 1;
  std::size_t count_ = 1;
  bool univariate_ = true;
};

}  // namespace toto::python
