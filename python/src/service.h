// SPDX-License-Identifier: Apache-2.0
// toto::Service for Python: answers are delivered by one thread, so that no device waits for the
// GIL.
#pragma once

#include <nanobind/nanobind.h>

namespace toto::python {

void bind_service(nanobind::module_& module);

}  // namespace toto::python
