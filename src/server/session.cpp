// SPDX-License-Identifier: Apache-2.0
#include "server/session.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include "server/errors.h"

namespace toto::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr double kDrainIdleSeconds = 1;                    // for its next request while draining
constexpr std::size_t kReadAhead = std::size_t{64} << 10;  // bytes of a body read at once

std::chrono::steady_clock::duration seconds(double s) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(s));
}

/// Asks whether there is something to read. A wait may end without: the other thread was told of
/// bytes that had been read by the time it said so.
ssize_t peek(int socket) {
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

}  // namespace

Session::Session(std::shared_ptr<Transport::Impl> owner, tcp::socket socket)
    : owner_(std::move(owner)),
      socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      read_timer_(socket_.get_executor()) {
  empty_buffer();
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  const auto end = socket_.remote_endpoint(ignored);
  if (!ignored) peer_ = end.address().to_string();
}

Session::~Session() {
  release();
  owner_->forget(this);
}

void Session::empty_buffer() {
  buffer_ = boost::beast::flat_buffer(owner_->options.max_header_bytes + kReadAhead);
}

void Session::start() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->wait_for_request(); });
}

void Session::hurry() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->phase_ == Phase::idle) self->arm(kDrainIdleSeconds);
  });
}

void Session::abandon() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Session::respond(HttpResponse response) {
  asio::post(socket_.get_executor(),
             [self = shared_from_this(), r = std::make_shared<HttpResponse>(std::move(response))] {
               self->answer(*r);
             });
}

void Session::post(std::function<void()> work) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), w = std::move(work)] { w(); });
}

void Session::on_gone(std::function<void()> gone) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), g = std::move(gone)]() mutable {
    if (self->phase_ != Phase::answer) return;
    if (self->peer_gone_) {
      g();
    } else {
      self->gone_ = std::move(g);
    }
  });
}

void Session::on_deadline(Clock::time_point time, std::function<void()> late) {
  asio::post(socket_.get_executor(),
             [self = shared_from_this(), time, l = std::move(late)]() mutable {
               if (self->phase_ != Phase::answer) return;
               self->late_ = std::move(l);
               self->arm(std::chrono::duration<double>(time - Clock::now()).count());
             });
}

void Session::arm(double time) {
  const std::uint64_t run = ++timer_run_;
  timer_.expires_after(seconds(time));
  timer_.async_wait([self = shared_from_this(), run](error_code ec) {
    if (!ec && run == self->timer_run_) self->timeout();
  });
}

void Session::timeout() {
  switch (phase_) {
    case Phase::header:
    case Phase::body: {
      timed_out_ = true;  // what reads is told, and answers
      error_code ignored;
      socket_.cancel(ignored);
      break;
    }
    case Phase::answer:
      if (late_) std::exchange(late_, {})();
      break;
    case Phase::write:
      if (!waiting_) return close();
      response_.source->tick();
      arm(kTickSeconds);
      break;
    default:
      close();
  }
}

void Session::close() {
  if (phase_ == Phase::answer && gone_) std::exchange(gone_, {})();
  phase_ = Phase::closed;
  late_ = {};
  ++timer_run_;
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (waiting_) finish(false);
}

bool Session::hold(std::size_t bytes) {
  if (bytes <= held_) return true;
  const std::size_t more = bytes - held_;
  if (owner_->held.fetch_add(more) + more > owner_->options.max_held_bytes) {
    owner_->held.fetch_sub(more);
    return false;
  }
  held_ = bytes;
  return true;
}

void Session::release() { owner_->held.fetch_sub(std::exchange(held_, 0)); }

void Session::wait_for_request() {
  if (phase_ == Phase::closed) return;
  parser_.reset();
  stream_.reset();
  request_ = {};
  exchange_.reset();
  response_ = {};
  timed_out_ = peer_gone_ = false;
  if (buffer_.size() > 0) {
    read_header();
    return;
  }
  empty_buffer();
  phase_ = Phase::idle;
  arm(owner_->draining ? kDrainIdleSeconds : owner_->options.idle_seconds);
  await_bytes();
}

void Session::await_bytes() {
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code ec) {
    if (self->phase_ != Phase::idle) return;
    if (ec) return self->close();
    if (peek(self->socket_.native_handle()) < 0 && (errno == EAGAIN || errno == EINTR)) {
      return self->await_bytes();
    }
    self->read_header();
  });
}

void Session::read_header() {
  phase_ = Phase::header;
  arm(owner_->options.header_seconds);
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(owner_->options.max_header_bytes));
  parser_->body_limit(boost::none);
  http::async_read_header(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](error_code ec, std::size_t) { self->have_header(ec); });
}

void Session::have_header(error_code ec) {
  if (phase_ == Phase::closed) return;
  request_.peer = peer_;
  request_.id = new_request_id();
  if (timed_out_) {
    return reject(
        408, "header_timeout",
        fmt::format("expected a whole header within {} s", owner_->options.header_seconds),
        "send it sooner");
  }
  if (ec == http::error::header_limit || ec == http::error::buffer_overflow) {
    return reject(
        431, "header_too_large",
        fmt::format("expected at most {} bytes of header", owner_->options.max_header_bytes),
        "send fewer or shorter headers");
  }
  if (ec == http::error::end_of_stream) return close();
  static const auto& http_errors = http::make_error_code(http::error::bad_method).category();
  if (ec.category() == http_errors && ec) {
    return reject(400, "invalid_http", "not HTTP/1.1: " + ec.message());
  }
  if (ec) return close();
  if (take_header()) read_body();
}

/// The header as a request. False: it was refused.
bool Session::take_header() {
  const auto& message = parser_->get();
  old_version_ = message.version() < 11;
  keep_alive_ = parser_->keep_alive();
  head_only_ = message.method() == http::verb::head;
  request_.method = std::string(message.method_string());
  std::string target(message.target());
  if (target.starts_with("http://") || target.starts_with("https://")) {  // the absolute form
    const std::size_t slash = target.find('/', target.find("//") + 2);
    target = slash == std::string::npos ? "/" : target.substr(slash);
  }
  const std::size_t mark = target.find('?');
  request_.path = target.substr(0, mark);
  if (mark != std::string::npos) request_.query = target.substr(mark + 1);
  for (const auto& field : message) {
    request_.headers.push_back({lower_case(field.name_string()), std::string(field.value())});
  }
  if (const auto id = request_.header("x-request-id"); good_request_id(id)) request_.id = id;
  request_.received = Clock::now();

  const auto refuse = [this](const auto&... what) {
    reject(what...);
    return false;
  };
  if (!old_version_ && message.count(http::field::host) != 1) {
    return refuse(400, "invalid_http", "expected one Host header");
  }
  if (message.count(http::field::transfer_encoding) > 0 &&
      (old_version_ || lower_case(request_.header("transfer-encoding")) != "chunked")) {
    return refuse(501, "unsupported_encoding", "the one Transfer-Encoding known is chunked");
  }
  const std::size_t limit = owner_->options.max_body_bytes;
  const auto length = parser_->content_length();
  const bool streams = owner_->hooks.streams && owner_->hooks.streams(request_);
  if (!streams && length && *length > limit) {
    const std::string text =
        fmt::format("expected a body of at most {} bytes (max-body), found {}, {} more", limit,
                    *length, *length - limit);
    return refuse(413, "body_too_large", text, "send fewer series at a time");
  }
  if (!streams && length && !hold(static_cast<std::size_t>(*length))) {
    return refuse(429, "memory_full", "the bodies of other requests take all the memory there is",
                  "try again in 1 s");
  }
  if (const auto expect = lower_case(request_.header("expect")); !expect.empty()) {
    if (expect != "100-continue") return refuse(417, "invalid_http", "unknown expectation");
    if (!parser_->is_done()) {
      constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
      // Never waits: who does not read has a full buffer, and is cut off.
      const auto sent =
          ::send(socket_.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent != static_cast<ssize_t>(text.size())) {
        close();
        return false;
      }
    }
  }
  if (streams) {  // of any length; whoever answers reads it
    stream_.emplace(std::move(*parser_));
    dispatch();
    return false;
  }
  parser_->body_limit(limit);
  phase_ = Phase::body;
  arm(owner_->options.body_seconds);
  return true;
}

void Session::read_body() {
  if (parser_->is_done()) return dispatch();
  http::async_read_some(
      socket_, buffer_, *parser_, [self = shared_from_this()](error_code ec, std::size_t) {
        if (self->phase_ == Phase::closed) return;
        const TransportOptions& o = self->owner_->options;
        if (self->timed_out_) {
          return self->reject(408, "body_timeout",
                              fmt::format("expected the whole body within {} s", o.body_seconds),
                              "send it sooner");
        }
        if (ec == http::error::body_limit) {
          return self->reject(
              413, "body_too_large",
              fmt::format("expected a body of at most {} bytes (max-body)", o.max_body_bytes),
              "send fewer series at a time");
        }
        if (ec == http::error::partial_message || ec == http::error::end_of_stream) {
          return self->reject(400, "incomplete_body", "the connection ended within the body");
        }
        static const auto& http_errors = http::make_error_code(http::error::bad_method).category();
        if (ec && ec.category() == http_errors) {
          return self->reject(400, "invalid_http", "not HTTP/1.1: " + ec.message());
        }
        if (ec) return self->close();
        if (!self->hold(self->parser_->get().body().capacity())) {
          return self->reject(429, "memory_full",
                              "the bodies of other requests take all the memory there is",
                              "try again in 1 s");
        }
        self->read_body();
      });
}

void Session::dispatch() {
  ++timer_run_;
  timer_.cancel();
  phase_ = Phase::answer;
  if (!stream_) request_.body = std::move(parser_->get().body());
  parser_.reset();
  owner_->in_flight.fetch_add(1);
  const auto own = std::make_shared<SessionExchange>(shared_from_this(), std::move(request_));
  exchange_ = own;
  request_ = {};
  // When the last handler lets go of it without an answer, there is one.
  const ExchangePointer exchange(own.get(), [own](Exchange*) { own->let_go(); });
  if (!stream_) watch();
  try {
    owner_->hooks.handler(exchange);
  } catch (...) {
    const HttpRequest& request = exchange->request();
    exchange->respond(error_response(current_error(), dialect_of(request.path), request));
  }
}

void SessionExchange::let_go() noexcept {
  if (answered_) return;
  try {
    respond(error_response(500, "internal", "the request was dropped without an answer",
                           "this is a defect of toto", dialect_of(request_.path), request_));
  } catch (...) {
    answered_ = true;  // for want of memory: the session ends with the client
  }
}

/// While an answer is computed: tells when the client goes. Bytes of a next request hide that.
void Session::watch() {
  if (buffer_.size() > 0) return;
  watching_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code ec) {
    self->watching_ = false;
    const bool waits = self->phase_ == Phase::answer || self->waiting_;
    if (ec || !waits) return;
    const auto n = peek(self->socket_.native_handle());
    if (n > 0) return;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch();
    if (self->waiting_) return self->finish(false);
    self->peer_gone_ = true;
    if (self->gone_) std::exchange(self->gone_, {})();
  });
}

/// An answer of this file's own, and the end of the connection.
void Session::reject(int status, std::string_view code, std::string_view message,
                     std::string_view remedy) {
  ++timer_run_;
  timed_out_ = false;
  parser_.reset();
  phase_ = Phase::answer;
  owner_->in_flight.fetch_add(1);
  HttpResponse response =
      error_response(status, code, message, remedy, dialect_of(request_.path), request_);
  response.close = true;
  response.account.route = "transport";
  exchange_ = std::make_shared<SessionExchange>(shared_from_this(), std::move(request_));
  answer(response);
}

}  // namespace toto::server
