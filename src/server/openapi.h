// SPDX-License-Identifier: Apache-2.0
// The description of the interface, as OpenAPI 3.1 has it.
#pragma once

#include <string_view>

namespace toto::server {

std::string_view openapi();

}  // namespace toto::server
