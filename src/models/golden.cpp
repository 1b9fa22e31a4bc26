// SPDX-License-Identifier: Apache-2.0
#include "models/golden.h"

#include "toto/error.hpp"

namespace toto {

void refuse_golden(const std::string& where, const std::string& message) {
  throw Error(ExitStatus::bad_data, "invalid_golden", message, where,
              "docs/verification.md describes the folder");
}

}  // namespace toto
