// SPDX-License-Identifier: Apache-2.0
// One line of JSON for each request, and for what happens to the server.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/http.h"
#include "toto/log.hpp"

namespace toto::server {

/// Takes whole lines, newline included, on any thread.
using LineSink = std::function<void(std::string_view)>;

std::string access_line(const HttpRequest& request, const HttpResponse& response, std::size_t bytes,
                        double seconds, bool sent);

/// {"time", "level", "event", "message"}.
std::string event_line(std::string_view level, std::string_view event, std::string_view message);

}  // namespace toto::server
