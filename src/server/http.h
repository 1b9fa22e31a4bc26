// SPDX-License-Identifier: Apache-2.0
// A request and its answer as plain data, and the exchange that ties them together. Nothing here
// knows of sockets, so that everything above the transport is tested without one.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace toto::server {

using Clock = std::chrono::steady_clock;

struct HttpHeader {
  std::string name;  ///< in lower case
  std::string value;
};

struct HttpRequest {
  std::string method;
  std::string path;   ///< as it was sent: percent signs and all, without the query
  std::string query;  ///< behind the question mark
  std::vector<HttpHeader> headers;
  std::string body;
  std::string id;                             ///< X-Request-Id of the client, or one of ours
  std::string peer;                           ///< address of the client
  Clock::time_point received = Clock::now();  ///< when the header was there

  /// The first header of that name (lower case); empty where there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

/// What the log and the metrics say of one request besides its status.
struct Account {
  std::string route;  ///< of a fixed set: "/v1/forecast", "other"
  std::string code;   ///< of the error; empty: none
  std::string model;
  std::size_t series = 0;
  double queue_seconds = 0, compute_seconds = 0;
};

/// Gives a body piece by piece, as the client takes it.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// Calls `take` once, now or later, on any thread: the next piece, and whether it is the last.
  virtual void next(std::function<void(std::string piece, bool last)> take) = 0;
  /// Called about every second while a piece is waited for.
  virtual void tick() {}
  /// What is known at the end; nullptr: what the response says.
  virtual const Account* account() const { return nullptr; }
};

/// A piece of a body that is read while it is answered.
struct BodyPiece {
  std::string bytes;
  bool last = false;
  std::string wrong;  ///< code of the error that ended it: incomplete_body, body_timeout, cancelled
  std::string message;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<HttpHeader> headers;     ///< besides content type and length
  std::shared_ptr<BodySource> source;  ///< instead of `body`; sent in chunks
  bool close = false;                  ///< the connection ends with it
  Account account;
};

/// One request and the place for its answer. All members but request() may be called from any
/// thread.
class Exchange {
 public:
  virtual ~Exchange() = default;
  [[nodiscard]] virtual HttpRequest& request() = 0;
  /// Once. An exchange that goes without it answers 500.
  virtual void respond(HttpResponse response) = 0;
  /// Runs `work` on a thread of the transport, not at once.
  virtual void post(std::function<void()> work) = 0;
  /// Called once if the client goes before the answer is there.
  virtual void on_gone(std::function<void()> gone) = 0;
  /// Called once at that time, if the answer is not there by then. At most one for an exchange.
  virtual void on_deadline(Clock::time_point time, std::function<void()> late) = 0;
  /// Of a request that TransportHooks::streams named: calls `take` once, with the next piece of the
  /// body, on a thread of the transport. To be called again after that.
  virtual void read(std::function<void(BodyPiece)> take) {
    const auto once = std::move(take);
    once({std::exchange(request().body, {}), true, {}, {}});
  }
  /// Of such a request, within `take`: so many bytes of it are kept now. False: there is no room.
  virtual bool keep(std::size_t) { return true; }
};

using ExchangePointer = std::shared_ptr<Exchange>;
using Handler = std::function<void(const ExchangePointer&)>;

/// "OK", "Too Many Requests"; empty for what has no name.
std::string_view reason_phrase(int status);

/// Whether a header that lists words ("gzip, deflate;q=0.5") has this one, not with q=0.
bool lists(std::string_view header, std::string_view word);

/// Text with %XX decoded. Nothing where a percent sign is followed by other than two digits.
bool percent_decode(std::string_view text, std::string& out);

std::string lower_case(std::string_view text);

/// Whether a client's X-Request-Id is short and printable, so that it may go into answers and logs.
bool good_request_id(std::string_view id);
std::string new_request_id();

/// Now, as the header Date has it.
std::string http_date();

}  // namespace toto::server
