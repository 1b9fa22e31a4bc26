// SPDX-License-Identifier: Apache-2.0
// toto_cpp._core: what the Python package calls. Programs use toto_cpp, not this.
#include <nanobind/nanobind.h>

#include "errors.h"
#include "evaluation.h"
#include "model.h"
#include "options.h"
#include "plot.h"
#include "result.h"
#include "service.h"

NB_MODULE(_core, module) {
  using namespace toto::python;  // NOLINT(google-build-using-namespace): what this file is made of
  nanobind::set_leak_warnings(false);
  module.attr("version") = TOTO_VERSION;
  translate_errors();
  watch_forks();
  bind_options(module);
  bind_result(module);
  bind_model(module);
  bind_service(module);
  bind_evaluation(module);
  bind_plot(module);
}
