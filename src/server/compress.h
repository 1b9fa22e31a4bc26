// SPDX-License-Identifier: Apache-2.0
// Bodies that are compressed by gzip, deflate or zstd.
#pragma once

#include <string>
#include <string_view>

#include "server/http.h"

namespace toto::server {

/// The body that a Content-Encoding stands for, at most `limit` bytes of it. Throws Error
/// unsupported_encoding, invalid_encoding, body_too_large (what a zip bomb gives).
std::string decode_body(std::string_view body, std::string_view encoding, std::size_t limit);

/// gzip, quickly.
std::string gzip(std::string_view body);

/// Compresses a large answer where the client takes gzip.
void compress_if_taken(const HttpRequest& request, HttpResponse& response);

}  // namespace toto::server
