// SPDX-License-Identifier: Apache-2.0
#include "model/backend_choice.h"

namespace toto {

std::shared_ptr<Backend> make_backend(const LoadOptions& options) {
  if (options.backend == "reference") {
    return options.precision == Precision::float64 ? make_reference_backend_f64()
                                                   : make_reference_backend_f32();
  }
  throw Error(ExitStatus::usage, "unknown_backend", "no backend '" + options.backend + "'", {},
              "valid backends: reference");
}

}  // namespace toto
