// SPDX-License-Identifier: Apache-2.0
// What a Python call of a forecast hands over besides the inputs.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>

#include "batch.h"
#include "options.h"

namespace toto::python {

inline SeriesExtras extras_of(const Options& options, nanobind::object ids, nanobind::object mask,
                              nanobind::object groups, nanobind::object covariates,
                              std::int64_t exogenous, nanobind::object futures,
                              nanobind::object future_mask) {
  SeriesExtras extras;
  extras.ids = std::move(ids);
  extras.mask = std::move(mask);
  extras.groups = std::move(groups);
  extras.covariates = std::move(covariates);
  extras.exogenous = static_cast<std::size_t>(std::max<std::int64_t>(exogenous, 0));
  extras.exogenous_futures = std::move(futures);
  extras.future_mask = std::move(future_mask);
  extras.missing = options.missing;
  extras.season = options.season;
  extras.context = options.context;
  extras.covariates_by = options.covariates_by;
  extras.digits = options.value_offset ? Digits::all : Digits::of_float;
  extras.across_missing = options.forecast.across_missing;
  return extras;
}

}  // namespace toto::python
