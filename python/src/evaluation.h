// SPDX-License-Identifier: Apache-2.0
// Backtests for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace toto::python {

void bind_evaluation(nanobind::module_& module);

}  // namespace toto::python
