// SPDX-License-Identifier: Apache-2.0
// Answers that come piece by piece: a line for each line of a body, or events of one long request.
#pragma once

#include "server/call.h"
#include "server/errors.h"
#include "server/models.h"

namespace toto::server {

/// How requests of one path are read and answered.
struct Protocol {
  std::string_view route;
  Dialect dialect = Dialect::plain;
  ParsedCall (*parse)(const HttpRequest& request, const Limits& limits) = nullptr;
};

/// Whether the body is NDJSON: application/x-ndjson, application/jsonl.
bool is_lines(const HttpRequest& request);
/// Whether the client asks for server-sent events (Accept: text/event-stream).
bool wants_events(const HttpRequest& request);

/// Each line of the body is a request, each line of the answer its answer, in the same order: the
/// bytes that the request gets alone, errors too. At most `kMaxLines` of them are in memory, and
/// fewer where they are long; the client is read from no faster than it takes answers. A line above
/// `max_line` bytes ends the answer with an error. `models` must outlive the exchange.
constexpr std::size_t kMaxLines = 64;
void answer_lines(const ExchangePointer& exchange, const Models& models, const Limits& limits,
                  const Protocol& protocol, std::size_t max_line);

/// Events of one request: `progress` at once, every second and after each series, `series` (or
/// `error`) with the answer that the series gets in a request of its own, as they are ready, and
/// `done`. Throws what is wrong at once.
void answer_events(const ModelPointer& model, ParsedCall parsed, const ExchangePointer& exchange,
                   const Limits& limits, const Protocol& protocol);

}  // namespace toto::server
