// SPDX-License-Identifier: Apache-2.0
#include "server/openapi.h"

namespace toto::assets {
std::string_view openapi_json();  // cmake/TotoAssets.cmake
}

namespace toto::server {

std::string_view openapi() { return assets::openapi_json(); }

}  // namespace toto::server
