// SPDX-License-Identifier: Apache-2.0
// Options by the words and keywords that Python programs write.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "effects.h"
#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"

namespace toto::python {

/// The options of one forecast; immutable, so that one object may serve many calls.
struct Options {
  ForecastOptions forecast;
  data::Missing missing = data::Missing::ffill;
  std::size_t season = 0;  // of Missing::seasonal; 0: none is known
  std::size_t context = 4096;
  CovariatesBy covariates_by = CovariatesBy::automatic;
  bool value_offset = true;
};

void bind_options(nanobind::module_& module);

}  // namespace toto::python
