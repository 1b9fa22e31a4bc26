// SPDX-License-Identifier: Apache-2.0
// Errors as HTTP answers: the status of each code, and the body that each protocol's clients read.
#pragma once

#include <string>
#include <string_view>

#include "server/http.h"
#include "toto/error.hpp"

namespace toto::server {

/// Whose clients read the answer.
enum class Dialect {
  plain,   ///< {"error": {code, message, where, remedy}, "request_id"}
  kserve,  ///< {"error": {code, message, param, type}}, as kserve's ErrorResponse
  tsfm,    ///< {"error": message, "code", "endpoint"}
  oip,     ///< {"error": text}, as the Open Inference Protocol says
};

/// That of the clients of a path.
Dialect dialect_of(std::string_view path);

/// 400 for what a request says wrong, and so on (docs/serving.md, "Errors").
int http_status(const Error& error);

/// An answer that says all of an error. 429 and 503 have Retry-After.
HttpResponse error_response(const Error& error, Dialect dialect, const HttpRequest& request);
/// The same for what is wrong before there is an Error. `status` is what is sent.
HttpResponse error_response(int status, std::string_view code, std::string_view message,
                            std::string_view remedy, Dialect dialect, const HttpRequest& request);

/// The exception at hand as an Error: what is none is (70) internal, a lack of memory
/// out_of_memory.
Error current_error();

/// An error in a request's body; `where` is the path of the field: "inputs[2].series".
Error invalid_request(std::string_view message, std::string_view where,
                      std::string_view remedy = {});

}  // namespace toto::server
